"""95 % intervals of medians and of their ratios, by bootstrap: how far the samples of one run leave them open.

They know nothing of what differs between two runs, such as where memory lies; `compare` therefore has a tolerance too.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

CONFIDENCE, RESAMPLES, SEED = 0.95, 9_999, 0


def of_median(values: Sequence[float]) -> list[float] | None:
    """Where the median lies; None for fewer than two values, which leave it open."""
    return _bootstrap((values,), np.median)


def of_ratio(over: Sequence[float], under: Sequence[float]) -> list[float] | None:
    """Where the ratio of two medians lies, of samples that were not taken in pairs; None where either has fewer than two."""

    def ratio(over: np.ndarray, under: np.ndarray, axis: int) -> Any:
        return np.median(over, axis=axis) / np.median(under, axis=axis)

    return _bootstrap((over, under), ratio)


def _bootstrap(samples: tuple[Sequence[float], ...], statistic: Any) -> list[float] | None:
    """By percentiles: what corrects them has no answer where all samples are equal. The numbers are those of SciPy's
    `stats.bootstrap`, which a machine with a GPU may lack."""
    if min(map(len, samples)) < 2:
        return None
    rng = np.random.default_rng(SEED)
    drawn = [np.asarray(one)[rng.integers(0, len(one), (RESAMPLES, len(one)))] for one in samples]
    tail = 50 * (1 - CONFIDENCE)
    return [float(end) for end in np.percentile(statistic(*drawn, axis=-1), (tail, 100 - tail))]
