"""Kinds of readouts are found by name: those of hybrid/readout/__init__.py, and one of another distribution."""

import copy
import subprocess
import sys

import numpy as np
import pytest

from hybrid import settings
from hybrid.engine import Embedding, Engine
from hybrid.readout import TreeReadout, least, make, rebuild, registry
from tests.support.plugin import offered
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, Feed, assert_same_bits, parameters

OPTIONS = {"tree": "huffman", "mode": "deterministic", "split": None, "negatives": 5, "rate": 0.05, "seed": 0}


@pytest.fixture
def toy(monkeypatch, tmp_path):
    offered(monkeypatch, tmp_path, "toy", "hybrid.readouts")


def test_the_kinds_of_the_package_are_its_files():
    assert registry.names() == ["full", "head", "label_tree", "mixture", "neighbours", "sampled", "split_tree", "tree"]


@pytest.mark.parametrize(
    "kind", ["full", "head", "label_tree", "mixture", "neighbours", "sampled", "split_tree", "tree"]
)
def test_a_file_is_read_without_numba_and_without_scipy(kind):
    script = f"import sys, hybrid.readout.{kind}; assert not {{'numba', 'scipy', 'annoy'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("kind", "defaults"),
    [
        (
            "tree",
            {
                "tree": "huffman",
                "mode": "deterministic",
                "split": None,
                "regrow": None,
            },
        ),
        ("full", {}),
        ("sampled", dict.fromkeys(("negatives", "loss", "draws"))),
    ],
)
def test_options_of_the_kinds_that_the_command_line_offers(kind, defaults):
    assert settings.defaults(registry.load(kind).Options) == defaults


@pytest.mark.parametrize("kind", ["full", "sampled", "tree"])
def test_a_readout_is_made_of_options(kind):
    made = make(kind, Feed.counts, 6, OPTIONS, batch=BATCH)
    assert (made.kind, made.rate, made.batch) == (kind, 0.05, BATCH)
    assert least(made.describe()) <= sum(array.size for array in made.parameters().values())


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"biases": True}, "--biases: not used by a toy readout"),
        ({"readout_optimiser": "row-adagrad"}, "--readout-optimiser: not used by a toy readout"),
    ],
)
def test_what_a_kind_does_not_take_is_refused(toy, asked, message):
    options = OPTIONS | {"start": 0.0}
    with pytest.raises(ValueError, match=message):
        make("toy", Feed.counts, 6, options | asked, batch=BATCH)
    make("toy", Feed.counts, 6, options | {"readout_optimiser": "sgd", "biases": False}, batch=BATCH)


@pytest.mark.parametrize("kind", ["full", "sampled", "tree"])
def test_a_kind_takes_an_optimiser_and_biases(kind):
    asked = {"readout_optimiser": "row-adagrad", "biases": True}
    facts = make(kind, Feed.counts, 6, OPTIONS | asked, batch=BATCH).describe()
    assert (facts["optimiser"], facts["biases"]) == ("row-adagrad", True)


def test_without_a_trunk_a_sampled_readout_is_that_of_word2vec():
    assert [make("sampled", 9, 6, OPTIONS, batch=4, trunk=trunk).loss for trunk in (True, False)] == [
        "softmax",
        "logistic",
    ]


def test_options_name_a_split():
    made = make("tree", Feed.counts, 6, OPTIONS | {"split": 3}, batch=BATCH)
    assert isinstance(made, TreeReadout) and made.split == 3


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("forest", "readout: found 'forest', expected one of full, head, label_tree, mixture, neighbours"),
        ("split_tree", "readout: found 'split_tree', which is made in Python only"),
    ],
)
def test_a_kind_that_cannot_be_made_of_options_is_refused(kind, message):
    with pytest.raises(ValueError, match=message):
        make(kind, Feed.counts, 6, OPTIONS, batch=BATCH)


def test_a_readout_of_another_distribution_trains_is_saved_and_goes_on(toy, tmp_path):
    assert "toy" in registry.names()
    assert settings.defaults(registry.load("toy").Options) == {"start": 0.0}

    def begun():
        readout = make(
            "toy", Feed.counts, 4 * CONTEXT, {"start": 0.01, "rate": 0.1, "seed": 0}, batch=BATCH, trunk=False
        )
        return Engine(Embedding(CLASSES, 4, per_example=CONTEXT, spread=0.3), None, readout, threads=2)

    whole, stopped = begun(), begun()
    losses = [tick.loss for tick in whole.run(Feed(200))]
    assert np.mean(losses[-20:]) < 0.8 * np.mean(losses[:20])
    for tick in stopped.run(Feed(200)):
        if tick.number == 9:
            break
    stopped.save(tmp_path / "checkpoint")
    resumed, _ = Engine.load(tmp_path / "checkpoint")
    assert resumed.readout.describe() == whole.readout.describe()
    list(resumed.run(Feed(200)))
    assert_same_bits(parameters(resumed), parameters(whole))
    ids, log_probs = resumed.best(Feed()[0].ids, 3)
    assert ids.shape == (BATCH, 3) and np.isfinite(log_probs).all()
    assert copy.deepcopy(resumed.readout).describe() == rebuild(whole.readout.describe()).describe()
