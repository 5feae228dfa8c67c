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
    """By percentiles: what corrects them has no answer where all samples are equal."""
    from scipy import stats

    if min(map(len, samples)) < 2:
        return None
    given: dict[str, Any] = {"confidence_level": CONFIDENCE, "n_resamples": RESAMPLES, "method": "percentile"}
    found = stats.bootstrap(samples, statistic, vectorized=True, random_state=np.random.default_rng(SEED), **given)
    return [float(found.confidence_interval.low), float(found.confidence_interval.high)]
