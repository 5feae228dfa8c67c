"""The full softmax: every class has a row of weights, every step moves all of them."""

import functools
from typing import Any

import numpy as np

from cpu import aligned, scores, softmax

from .base import Base


class FullReadout(Base):
    """log p(v | h) = w_v . h - log sum exp(w . h), learned by SGD on the loss summed over a batch; weights start at 0.

    counts  how often each class is met, or how many classes there are
    width   numbers of a hidden vector
    batch   most rows a step
    rate    step of SGD
    seed    not used: nothing is drawn
    backend  where the weights are and move, from hybrid.backend.choose: a GPU has its own, and `weights` is the host's copy

    A step costs 8 B V D operations and no B x V array. Raises ValueError for fewer than two classes.
    """

    kind = "full"
    places: tuple[str, ...] = ("cpu", "cuda")
    moved: Any = slice(None)  # the classes whose weights the last step moved

    def __init__(self, counts, width, *, batch=1024, rate=0.02, seed=0, backend=None):
        super().__init__(counts, width, batch=batch, rate=rate, seed=seed, backend=backend)
        self.weights = aligned.empty((self.classes, self.width), np.float32)
        self.weights.fill(0)
        self._weights = self.backend.device.from_host(self.weights)

    def parameters(self) -> dict[str, np.ndarray]:
        """The weights (V, D)."""
        self.fetch()
        return {"weights": self.weights}

    def _pairs(self):
        return [(self.weights, self._weights)]

    @functools.cached_property
    def _work(self):
        return self.backend.softmax.workspace(self.batch, self.width, np.float32)

    def _step(self, grad, loss, hidden, target, rate):
        self.backend.softmax.step(grad, loss, self._weights, self._work, hidden, target, rate)

    def _log_prob(self, out, hidden, target):
        self.backend.softmax.log_prob(out, self._weights, self._work, hidden, target)

    def _best(self, ids, log_probs, hidden):
        self.backend.softmax.best(ids, log_probs, self._weights, self._work, hidden)

    @functools.cached_property
    def _host_work(self):
        """Scratch of the host: the device's own where it shares the memory."""
        shared = self.backend.device.host_memory
        return self._work if shared else softmax.workspace(self.batch, self.width, np.float32)

    def _best_without(self, ids, log_probs, hidden, left_out):
        softmax.best_without(ids, log_probs, self.weights, self._host_work, hidden, left_out)

    def _scores(self, out, hidden):
        scores.softmax(out, self.weights, hidden)


def rebuild(classes, **facts) -> FullReadout:
    """From describe()."""
    return FullReadout(classes, **facts)
