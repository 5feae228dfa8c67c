"""Docstrings as the site shows them. Needs griffe, which comes with what `make docs` installs."""

import runpy

import pytest

from .pages import ROOT

pytest.importorskip("griffe")


@pytest.fixture(scope="module")
def markdown():
    return runpy.run_path(str(ROOT / "docs" / "docstrings.py"))["markdown"]


def test_names_become_definitions(markdown):
    told = markdown("Adds.\n\na     one\n      more\nb, c  two\n\nRaises.").split("\n")
    assert list(filter(None, told)) == ["Adds.", "`a`", ":   one more", "`b, c`", ":   two", "Raises."]


def test_examples_are_code(markdown):
    assert markdown(">>> 1 + 1\n2") == "```pycon\n>>> 1 + 1\n2\n```"


def test_what_would_be_markup_is_text(markdown):
    assert markdown("x[a][b] * <unk>, `a[<b>]`") == r"x\[a\]\[b\] \* \<unk>, `a[<b>]`"
