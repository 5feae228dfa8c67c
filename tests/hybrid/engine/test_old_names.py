"""Pickles and programs of before hybrid.engine was a package name its objects by their old places."""

import importlib
import pickle

import pytest

from hybrid.engine import Embedding, Engine, engine
from hybrid.engine import embedding as rows
from hybrid.engine.trunk import mlp


@pytest.mark.parametrize(
    ("module", "name", "now"),
    [
        ("hybrid.engine", "Engine", Engine),
        ("hybrid.engine", "_again", engine._again),
        ("hybrid.embedding", "Embedding", Embedding),
        ("hybrid.embedding", "_again", rows._again),
        ("hybrid.trunk", "Trunk", mlp.Trunk),
        ("hybrid.trunk", "_again", mlp._again),
    ],
)
def test_an_old_name_is_found(module, name, now):
    assert getattr(importlib.import_module(module), name) is now
    assert pickle.loads(f"c{module}\n{name}\n.".encode()) is now


def test_a_name_that_is_none_is_refused():
    with pytest.raises(AttributeError, match="Motor"):
        importlib.import_module("hybrid.engine").Motor  # noqa: B018
