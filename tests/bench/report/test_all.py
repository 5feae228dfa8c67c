"""`python -m bench all`: what it refuses; and its quick mode, which measures every section and writes the report."""

import html
import json
import os
import subprocess
import sys

import pytest

from bench.__main__ import main
from bench.report.section import found_sections, found_steps, lacks
from tests.support import records

LIMIT = 1800  # seconds on a machine with much other work; alone it takes about one minute


@pytest.fixture(autouse=True)
def the_page_can_be_made():
    pytest.importorskip("markdown_it")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "--out DIR: not given"),
        (["--out", "there", "--json", "results.jsonl"], "--json: all keeps its results"),
        (["--out", "there", "--page"], "results.jsonl is not there"),
    ],
)
def test_what_is_refused_before_anything_is_measured(options, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["all", *options]) == 2
    assert told in capsys.readouterr().err


def test_small_and_full_sizes_are_kept_apart(tmp_path, capsys):
    records.write(tmp_path / "results.jsonl", [records.step(quick=True)])
    assert main(["all", "--out", str(tmp_path)]) == 2
    assert "has results of quick mode" in capsys.readouterr().err


@pytest.mark.slow
def test_quick_mode_measures_every_section(tmp_path):
    """All of it as its user runs it."""
    command = [sys.executable, "-m", "bench", "all", "--quick", "--threads", "2", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    became = {one["params"]["step"]: one["state"] for one in found if one["work"] == "all.step"}
    able = {step.name for _, step in found_steps() if lacks(step, True) is None}
    assert able and {name for name, state in became.items() if state == "done"} == able
    text = (tmp_path / "report.html").read_text()
    for name, module in found_sections().items():
        section = module.section(found)
        assert f"<h2>{html.escape(section.title)}</h2>" in text
        for table in section.tables:
            assert (tmp_path / "tables" / f"{table.name}.csv").exists()
        if any(step.name in able for step in module.STEPS):
            assert section.tables, name
    again = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=os.environ)
    assert again.returncode == 0 and again.stdout.count("done before") == len(able)
