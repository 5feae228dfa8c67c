"""The run at small size: the loss falls as asked, dense rivals are checked, what does not fit is told by its bytes."""

import json
import os

import numpy as np
import pytest

from bench import billion
from bench.__main__ import main
from bench.crossover_costs import Size
from bench.sections.billion import section
from tests.support import bench_command


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return [vars(one) for one in bench_command.measured("billion", tmp_path_factory.mktemp("billion"), "--quick")[1]]


def test_the_tree_learns_until_its_loss_has_fallen(measured):
    tree = measured[0]
    losses = [loss for _, _, loss in tree["curve"]]
    assert tree["contender"] == "tree" and losses[0] - losses[-1] >= tree["fall"] == billion.FALL
    assert len(tree["samples"]) == len(losses) - 1 >= 5
    assert tree["curve"][-1][0] == len(tree["samples"]) * billion.EVERY * billion.QUICK.batch
    assert tree["parameters"] == (billion.QUICK.classes - 1) * billion.QUICK.width
    assert tree["memory"] > 4 * tree["parameters"]


def test_dense_ones_of_the_same_size_took_steps(measured):
    assert measured[1]["contender"] == "full" and len(measured[1]["samples"]) == billion.STEPS
    for one in measured[1:]:
        assert one["parameters"] == billion.QUICK.classes * billion.QUICK.width and one["value"] > 0


def test_a_section_is_made_of_them(measured):
    pytest.importorskip("altair")
    made = section(measured)
    assert [one.name for one in made.tables] == ["billion", "billion_loss"] and not made.gaps


def test_examples_have_the_topic_of_their_class():
    data = billion.Zipf(1_000, 8)
    hidden, target = data.batch(5_000)
    assert hidden.shape == (5_000, 8) and hidden.dtype == np.float32 and target.dtype == np.int32
    counted = np.bincount(target, minlength=1_000)
    assert counted[0] == pytest.approx(5_000 / (1 / np.arange(1, 1_001)).sum(), rel=0.15)
    first, other = (hidden[target == one] for one in (0, 1))
    assert np.linalg.norm(first.mean(0) - other.mean(0)) > 5 * billion.NOISE / np.sqrt(len(other))
    assert first.std(0).mean() == pytest.approx(billion.NOISE, rel=0.1)


def test_a_loss_that_does_not_fall_is_an_error(monkeypatch):
    monkeypatch.setattr(billion, "RATE", 1e-9)
    monkeypatch.setattr(billion, "MOST", 5 * billion.EVERY)
    with pytest.raises(AssertionError, match="the loss fell from"):
        billion.train(Size(1_000, 8, 16), threads=1)


def test_memory_that_does_not_suffice_is_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(billion, "available", lambda: 1e6)
    path = tmp_path / "records.jsonl"
    threads = os.environ["NUMBA_NUM_THREADS"]  # of this process, which cannot have others any more
    assert main(["billion", "--quick", "--threads", threads, "--json", str(path)]) == 0
    records = [json.loads(line) for line in path.read_text().splitlines()]
    lacking = next(one for one in records if one["who"] == "full")
    assert lacking["work"] == "billion.impossible" and lacking["quality"]["bytes free"] == [1e6]
    assert lacking["quality"]["bytes needed"][0] > 4 * 20_000 * 32
    assert "full is not run: it takes" in capsys.readouterr().out
