"""Pickles and programs of before name some classes by their old places."""

import importlib
import pickle

import pytest

from hybrid import Scene, Vocabulary


@pytest.mark.parametrize(
    ("module", "name", "now"),
    [("hybrid.vocabulary", "Vocabulary", Vocabulary), ("hybrid.feeds.scene", "Scene", Scene)],
)
def test_an_old_name_is_found(module, name, now):
    assert getattr(importlib.import_module(module), name) is now
    assert pickle.loads(f"c{module}\n{name}\n.".encode()) is now
