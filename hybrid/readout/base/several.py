"""Examples with several targets, for readouts that learn from one: an example becomes one for each of its targets.

Each of them has the example's hidden vector and an equal share of its weight, so their losses and gradients add up to the mean
over the targets.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...engine.slot import Slot


def stepped(step: Callable[..., float], slot: Slot, batch: int) -> float:
    """Learn from a slot in steps of up to `batch` targets, one after another; write its gradient, return its mean loss.

    step(grad, hidden, target, weight) -> the mean of loss times weight over these rows
    """
    assert slot.target_at is not None
    example, share = _shares(slot.target_at)
    if slot.weight is not None:
        share *= slot.weight[example]
    slot.grad.fill(0)
    total = 0.0
    for first in range(0, len(example), batch):
        rows = slice(first, first + batch)
        hidden = slot.hidden[example[rows]]
        grad = np.empty_like(hidden)
        total += step(grad, hidden, slot.target[rows], share[rows]) * len(hidden)
        _add(slot.grad, example[rows], grad)
    return total / slot.count


def log_prob(readout: Any, hidden: np.ndarray, target: np.ndarray, target_at: np.ndarray) -> np.ndarray:
    """The mean log-probability of each example's targets, (B,) float32; 0 for an example without any."""
    example, share = _shares(target_at)
    out = np.zeros(len(hidden), np.float32)
    for first in range(0, len(example), readout.batch):
        rows = slice(first, first + readout.batch)
        found = readout.log_prob(hidden[example[rows]], target[rows])
        _add(out, example[rows], found * share[rows])
    return out


def _shares(target_at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The example of each target, and its share: one over how many the example has, float32."""
    many = np.diff(target_at)
    example = np.repeat(np.arange(len(many)), many)
    return example, (1 / many[example]).astype(np.float32)


def _add(sums: np.ndarray, example: np.ndarray, values: np.ndarray) -> None:
    """Add to the sum of each example its values, which lie one after another, in their order."""
    first = np.flatnonzero(np.diff(example, prepend=-1))
    sums[example[first]] += np.add.reduceat(values, first, axis=0)
