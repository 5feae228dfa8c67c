"""Draws of negatives: from the distribution asked for, each class as often as is said."""

import numpy as np
import pytest

from cpu.output import negatives as draws


def draw(sampler, negatives, seed=0, tick=0, target=(0,)):
    work = draws.workspace(len(target), 1, min(negatives, sampler.drawn.size), np.float64)
    count = draws.draw(work, sampler, negatives, np.array(target, np.int32), seed, tick)
    return work.ids[:count], work.lower[:count], work.score


@pytest.mark.parametrize("sampler", [draws.log_uniform(20), draws.unigram([0, 1, 16, 81] * 5), draws.uniform(20)])
def test_classes_are_drawn_as_often_as_said(sampler):
    ids, lower, score = draw(sampler, 6, target=range(20))
    np.testing.assert_array_equal(lower, score[ids])
    assert not sampler.drawn.any()
    seen = np.zeros(20)
    for tick in range(4000):
        ids, _, _ = draw(sampler, 6, tick=tick)
        assert len(set(ids.tolist())) == ids.size
        seen[ids] += 1
    p = np.exp(score)
    deviation = np.sqrt(p * (1 - p) / 4000)
    assert (np.abs(seen / 4000 - p) <= 5 * deviation).all()


def test_distributions():
    q = np.diff(draws.log_uniform(3).cumulative, prepend=0)
    np.testing.assert_allclose(q, np.log([2, 3 / 2, 4 / 3]) / np.log(4))
    q = np.diff(draws.unigram([16, 1, 0]).cumulative, prepend=0)
    np.testing.assert_allclose(q, np.array([8, 1, 0.03]) / 9.03)
    q = np.diff(draws.unigram([0, 0]).cumulative, prepend=0)
    np.testing.assert_allclose(q, [0.5, 0.5])
    np.testing.assert_allclose(np.diff(draws.uniform(4).cumulative, prepend=0), [0.25] * 4)


def test_draws_are_a_function_of_seed_and_tick():
    sampler = draws.log_uniform(1000)
    first = draw(sampler, 50, seed=3, tick=7)[0].tolist()
    assert draw(sampler, 50, seed=3, tick=7)[0].tolist() == first
    others = [draw(sampler, 50, seed=seed, tick=tick)[0].tolist() for seed, tick in ((3, 8), (4, 7), (7, 3), (0, 0))]
    assert first not in others
