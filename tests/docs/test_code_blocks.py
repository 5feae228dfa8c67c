"""Every block of code of README and docs works as it stands there.

Python runs, the blocks of a page in one namespace. Commands of `hybrid` run too, on small files of the names that they
use; those for a GPU are parsed, and then meet that there is none. Of other commands what they name must be there.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from bench.__main__ import WANTED, benchmarks
from hybrid.cli import main, options
from hybrid.cli.options import COMMANDS

from . import files
from .pages import PAGES, ROOT, blocks, commands

LONG = ("train pvm", "eval runs/pvm", "pvm compare")  # of videos; the first by default takes a minute
LANGUAGES = {"python", "sh", "text", "toml"}
RUN = {page: [block for block in blocks(page) if block.language in LANGUAGES] for page in PAGES}


@pytest.mark.parametrize("page", [page for page in PAGES if RUN[page]], ids=lambda page: page.stem)
def test_blocks(page, tmp_path, monkeypatch, capsys):
    files.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    space: dict = {"printed": []}
    printed = ""  # by the block before; a block of text after it shows that
    for block in RUN[page]:
        if block.language == "python":
            exec(compile(block.code, page.name, "exec"), space)
            printed = capsys.readouterr().out
            space["printed"].append(printed)
        elif block.language == "sh":
            for command in commands(block.code):
                _run(command, capsys)
            printed = ""
        elif block.language == "toml":
            tomllib.loads(block.code)
        elif printed:
            assert _plain(block.code) == _plain(printed)
    CHECKS.get(page.stem, lambda space: None)(space)


def _language(space):
    assert space["losses"][-1] < space["losses"][0] and len(space["ids"][0]) == 5
    assert any("nats; the value of the:" in line for line in space["printed"])
    assert Path("vectors.txt").read_text().startswith("20 100\n")


def _readout(space):
    assert np.isfinite(space["loss"]) and space["ids"].shape == (256, 10) and space["log_probs"].max() < 0


def _units(space):
    *_, collection, ensemble = (line.split() for line in space["printed"] if line)
    assert float(collection[0]) < 1.0  # it begins near 6
    assert float(ensemble[-1]) > 0.01  # the slowest have hardly moved


def _video(space):
    assert space["out"].tick == 19 and space["printed"][-1].count("(40, 40, 3)") == 1
    assert {"watch.mp4", "report.json", "last.png"} <= {path.name for path in Path("runs/pvm").iterdir()}
    assert Path("dream.gif").stat().st_size


CHECKS = {
    "language": _language,
    "output-layers": _readout,
    "units": _units,
    "pvm": _video,
}  # of pages, by name


def test_the_first_model_is_ten_lines():
    first = next(block.code for block in RUN[PAGES[0]] if block.language == "python")
    assert len([line for line in first.splitlines() if line.strip()]) <= 12


def test_every_command_is_shown():
    shown = {
        line.split()[1]
        for page in PAGES
        for block in RUN[page]
        if block.language == "sh"
        for line in commands(block.code)
    }
    assert COMMANDS.keys() <= shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_languages_of_blocks(page):
    """A block in another language would not be run."""
    assert {block.language for block in blocks(page)} <= LANGUAGES


def _run(command: str, capsys) -> None:
    program, *rest = shlex.split(command)
    if program == "hybrid":
        _hybrid(command.removeprefix("hybrid "), capsys)
    elif program == "make":
        assert f"\n{rest[0]}:" in (ROOT / "Makefile").read_text(), command
    elif program == "pip":
        assert set(re.findall(r"\w+", (re.search(r"\[(.*)\]", command) or [""])[0])) <= _extras(), command
    elif rest[:2] == ["-m", "bench"]:
        assert rest[2] in {*benchmarks(), *WANTED}, command
    elif rest[:1] == ["-m"]:
        assert list((ROOT / rest[1].replace(".", "/")).parent.glob(f"{rest[1].split('.')[-1]}*")), command
    else:
        assert program in ("python", "bash") and (ROOT / rest[0]).is_file(), command


def _hybrid(command: str, capsys) -> None:
    if command.startswith(LONG):
        command = re.sub(r" --steps \d+", "", command) + " --steps 40"
    if command.startswith("data get"):  # there is no network in tests; tests/hybrid/cli/test_data.py has a server
        options.read(shlex.split(command))
        return
    if command.startswith("launch"):  # it becomes another program
        subprocess.run([sys.executable, "-m", "hybrid.cli", *shlex.split(command)], check=True, capture_output=True)
        return
    code = main(shlex.split(command))
    error = capsys.readouterr().err
    if "cuda" in command:
        assert code == 2 and "these tests are the CPU's" in error, command
    else:
        assert code == 0, (command, error)


def _extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def _plain(text: str) -> list[str]:
    """Words of an output, every number as #: what is printed must be shown so, but figures differ between machines."""
    return re.sub(r"\d[\d.,]*", "#", text).split()
