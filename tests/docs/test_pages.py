"""What the pages name is there: options, files, public names."""

import contextlib
import io
import re
import runpy
import sys
from xml.etree import ElementTree

import pytest

import hybrid
from bench.__main__ import parser
from hybrid.cli import main

from .pages import PAGES, ROOT, prose

HELP = [
    *(["train", "language", "--readout", name] for name in "full head mixture neighbours sampled tree".split()),
    *(["train", "factors", "--trunk", name] for name in ("attention", "torch")),
    *(["train", model] for model in ("language", "words", "factors", "labels", "pvm")),
    *([name] for name in "sweep eval export recommend predict next neighbours demo doctor launch".split()),
    *(["data", action] for action in ("list", "get")),
    *(["pvm", action] for action in ("watch", "dream", "fields", "compare", "import", "configs")),
]
OTHERS = {"--help", "--debug"}  # of every command


@pytest.fixture(scope="module")
def options():
    """Every option that any command's help tells of."""
    told = io.StringIO()
    for command in HELP:
        with contextlib.redirect_stdout(told), pytest.raises(SystemExit):
            main([*command, "--help"])
    benchmarks = parser().format_help()
    return set(re.findall(r"--[a-z][a-z-]+", told.getvalue() + benchmarks)) | OTHERS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_exist(page, options):
    inline = re.findall(r"`([^`]+)`", prose(page))
    named = {option for code in inline if "bench" not in code for option in re.findall(r"--[a-z][a-z-]+", code)}
    assert named <= options


@pytest.mark.parametrize(
    "page",
    [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "bench" / "NOTES.md", *(ROOT / "docs/design").glob("*.md")],
    ids=lambda page: page.stem,
)
def test_files_exist(page):
    inline = re.findall(r"`((?:hybrid|cpu|gpu|tests|bench|examples|docs)/[\w/.*]+)`", prose(page))
    links = re.findall(r"\]\((?!http)([^)#]+)", prose(page))
    assert not [path for path in inline if not list(ROOT.glob(path.replace("NAME", "*")))]
    assert not [path for path in links if not (page.parent / path).exists()]


def test_all_public_names_are_in_the_reference():
    told = re.findall(r"^::: hybrid\.(\w+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert sorted(told) == hybrid.__all__


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 130


def test_every_example_is_in_the_gallery():
    shown = re.findall(r"^\[(examples/\w+\.py)\]\(\.\./\1\)$", (ROOT / "docs" / "gallery.md").read_text(), re.MULTILINE)
    assert sorted(shown) == sorted(f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py"))


def test_a_code_host_shows_what_the_site_does():
    """A code host knows no includes; the hooks put into the site what pages link to."""
    assert not [page.name for page in (ROOT / "docs").rglob("*.md") if "8<--" in page.read_text()]
    pytest.importorskip("mkdocs")
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import hooks
    finally:
        sys.path.pop(0)
    gallery = hooks.on_page_markdown((ROOT / "docs" / "gallery.md").read_text())
    for path in (ROOT / "examples").glob("*.py"):
        assert "".join(f"    {line}\n" if line else "\n" for line in path.read_text().splitlines()) in gallery
    assert hooks.on_page_markdown("[notes](../bench/NOTES.md#a)") == "[notes](notes.md#a)"


def test_the_picture_of_a_batch_is_what_its_script_draws(tmp_path, monkeypatch):
    script = runpy.run_path(str(ROOT / "docs" / "draw_batch.py"))
    kept = script["FILE"].read_text()
    monkeypatch.setitem(script["main"].__globals__, "FILE", tmp_path / "batch.svg")
    script["main"]()
    assert (tmp_path / "batch.svg").read_text() == kept
    assert ElementTree.fromstring(kept).tag.endswith("svg")
