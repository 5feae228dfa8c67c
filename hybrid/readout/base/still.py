"""A step that is not made: its gradient and its losses, while the readout stays as it is."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...alone import Alone


class Still:
    """What a readout with `step` and `log_prob` answers without moving."""

    alone: Alone
    rate_scale: float
    step: Callable[..., float]
    log_prob: Callable[..., np.ndarray]

    def still(
        self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """Write the gradient of -log p(target), times the weight, and return its mean, as `step` does; nothing moves."""
        with self.held_still():
            return self.step(grad, hidden, target, weight)

    def losses(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The loss of each row as the next step would have it, (B,) float32, any number of rows; nothing moves."""
        return -self.log_prob(hidden, target)

    @contextlib.contextmanager
    def held_still(self) -> Iterator[Any]:
        """A context in which steps move nothing."""
        with self.alone:
            scale, self.rate_scale = self.rate_scale, 0.0
            try:
                yield
            finally:
                self.rate_scale = scale
