"""The run at small size: the loss falls as asked, dense rivals are checked, what does not fit is told by its bytes."""

import numpy as np
import pytest

from bench import billion
from bench.crossover_costs import Size


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
