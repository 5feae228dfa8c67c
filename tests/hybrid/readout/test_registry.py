"""Kinds of readouts are found by name: those of hybrid/readout/__init__.py, and one of another distribution."""

import subprocess
import sys

import pytest

import hybrid.readout
from hybrid import settings
from hybrid.readout import least, make, registry
from tests.support.plugin import offered
from tests.support.small_engine import BATCH, Feed

OPTIONS = {"tree": "huffman", "mode": "deterministic", "negatives": 5, "rate": 0.05, "seed": 0}


@pytest.fixture
def toy(monkeypatch, tmp_path):
    offered(monkeypatch, tmp_path, "toy", "hybrid.readouts")


def test_files_of_kinds_are_read_without_numba_and_without_scipy():
    kinds = ["full", "head", "mixture", "neighbours", "sampled", "tree"]
    assert registry.names() == kinds
    names = ", ".join(f"hybrid.readout.{kind}" for kind in kinds)
    script = f"import sys, hybrid, hybrid.readout, {names}; assert not {{'numba', 'scipy', 'annoy'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_name_that_the_package_does_not_have():
    with pytest.raises(AttributeError, match=r"module .hybrid\.readout. has no attribute 'Oracle'"):
        hybrid.readout.Oracle  # noqa: B018


@pytest.mark.parametrize("kind", ["full", "sampled", "tree"])
def test_a_readout_is_made_of_options(kind):
    made = make(kind, Feed.counts, 6, OPTIONS | {"readout_optimiser": "row-adagrad", "biases": True}, batch=BATCH)
    assert (made.kind, made.rate, made.batch, made.optimiser) == (kind, 0.05, BATCH, "row-adagrad")
    assert made.describe()["biases"] is True
    assert least(made.describe()) <= sum(array.size for array in made.parameters().values())


@pytest.mark.parametrize(("name", "value"), [("biases", True), ("readout_optimiser", "row-adagrad")])
def test_what_a_kind_does_not_take_is_refused(toy, name, value):
    options = OPTIONS | {"start": 0.0}
    with pytest.raises(ValueError, match=f"{settings.flag(name)}: not used by a toy readout"):
        make("toy", Feed.counts, 6, options | {name: value}, batch=BATCH)
    make("toy", Feed.counts, 6, options | {"readout_optimiser": "sgd", "biases": False}, batch=BATCH)


def test_a_kind_that_cannot_be_made_of_options_is_refused(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="readout: found 'forest', expected one of full, head, mixture"):
        make("forest", Feed.counts, 6, OPTIONS, batch=BATCH)
    offered(monkeypatch, tmp_path, "bare", "hybrid.readouts", "rebuild = None")
    with pytest.raises(ValueError, match="readout: found 'bare', which is made in Python only"):
        make("bare", Feed.counts, 6, OPTIONS, batch=BATCH)
