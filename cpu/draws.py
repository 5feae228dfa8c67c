"""The negatives of a batch: which classes are drawn, and the probability of each to be among them.

A batch makes S draws with replacement, a function of the seed and the tick alone, and keeps the distinct classes:
p(v) = 1 - (1 - q(v))^S is exact; drawing until there are so many distinct classes would give an estimate only.
With S >= V every class is taken and p = 1.
"""

import math
from typing import NamedTuple

import numpy as np

from cpu.array import Array
from cpu.compiled import called, launched
from cpu.splitmix import GOLDEN, mix


class Sampler(NamedTuple):
    """The distribution q of one draw.

    cumulative  (V,) float64  q(0) + ... + q(v)
    drawn       (V,) bool     scratch, False between draws
    """

    cumulative: np.ndarray
    drawn: np.ndarray


def log_uniform(classes: int) -> Sampler:
    """q(v) = log((v + 2) / (v + 1)) / log(V + 1), close to Zipf's law for classes in falling order of frequency."""
    ranks = np.arange(classes)
    return _sampler(np.log1p(1 / (ranks + 1)))


def unigram(counts: Array) -> Sampler:
    """q(v) in proportion to counts[v]^0.75 (Mikolov et al. 2013), at least a hundredth of the mean."""
    weights = np.asarray(counts, np.float64) ** 0.75
    mean = weights.mean()
    return _sampler(np.maximum(weights, mean / 100) if mean else np.ones_like(weights))


def uniform(classes: int) -> Sampler:
    """q(v) = 1 / V."""
    return _sampler(np.ones(classes))


def _sampler(weights: Array) -> Sampler:
    cumulative = np.cumsum(weights)
    cumulative /= cumulative[-1]
    return Sampler(cumulative, np.zeros(weights.size, np.bool_))


def draw(
    ids: Array, lower: Array, score: Array, sampler: Sampler, draws: int, target: Array, seed: int, tick: int
) -> int:
    """Write the distinct negatives to ids, log p of them to lower, and log p of the targets to score; return how many.

    ids, lower  (S or more,), as they are drawn; where S >= V, (V or more,): all classes
    score       (B,)
    draws       S
    target      (B,) int32
    """
    return int(_draw(ids, lower, score, *sampler, draws, target, seed, tick))


@launched()
def _draw(ids, lower, score, cumulative, drawn, draws, target, seed, tick):
    if draws >= cumulative.size:
        for v in range(cumulative.size):
            ids[v], lower[v] = v, 0
        score[:] = 0
        return cumulative.size
    count = 0
    for b in range(target.size):
        score[b] = _log_p(cumulative, target[b], draws)
    state = mix(np.uint64(seed) ^ mix(np.uint64(tick)))
    for i in range(draws):
        v = np.searchsorted(cumulative, _uniform(state, i), side="right")
        if not drawn[v]:
            drawn[v] = True
            ids[count], lower[count] = v, _log_p(cumulative, v, draws)
            count += 1
    for i in range(count):
        drawn[ids[i]] = False
    return count


@called()
def _log_p(cumulative, v, draws):
    q = cumulative[v] - (cumulative[v - 1] if v else 0.0)
    return math.log(-math.expm1(draws * math.log1p(-q)))


@called()
def _uniform(state, i):
    """The i-th number of a stream, in [0, 1)."""
    return float(mix(state + np.uint64(i + 1) * GOLDEN) >> np.uint64(11)) * 2.0**-53
