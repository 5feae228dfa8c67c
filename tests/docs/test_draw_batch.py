"""The picture of a batch's way is what its script draws."""

import runpy
from xml.etree import ElementTree

from .pages import ROOT


def test_the_picture_is_the_scripts(tmp_path, monkeypatch):
    script = runpy.run_path(str(ROOT / "docs" / "draw_batch.py"))
    kept = script["FILE"].read_text()
    monkeypatch.setitem(script["main"].__globals__, "FILE", tmp_path / "batch.svg")
    script["main"]()
    assert (tmp_path / "batch.svg").read_text() == kept
    assert ElementTree.fromstring(kept).tag.endswith("svg")
