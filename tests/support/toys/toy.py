"""A softmax of one matrix, in NumPy."""

from dataclasses import dataclass

import numpy as np

from hybrid import SGD
from hybrid.readout.base import Base
from hybrid.settings import number, option


@dataclass(frozen=True)
class Options:
    start: float = option(0.0, "toy readout: what all weights are at first", type=number)


class ToyReadout(Base):
    kind = "toy"

    def __init__(self, classes, width, *, start=0.0, batch=1024, rate=0.02, seed=0, backend=None):
        super().__init__(classes, width, batch=batch, optimiser=SGD(rate), seed=seed, backend=backend)
        self.start = start
        self.weights = np.full((self.classes, self.width), start, np.float32)

    def learn(self, grad, loss, hidden, target):
        log_probs, rows = self._log_probs(hidden), np.arange(len(hidden))
        loss[:] = -log_probs[rows, target]
        miss = np.exp(log_probs)
        miss[rows, target] -= 1
        grad[:] = miss @ self.weights
        self.weights -= self.rate * self.rate_scale * (miss.T @ hidden)

    def parameters(self):
        return {"weights": self.weights}

    def describe(self):
        return super().describe() | {"start": self.start}

    def _pairs(self):
        return [(self.weights, self.weights)]

    def _log_probs(self, hidden):
        logits = hidden @ self.weights.T
        logits -= logits.max(axis=1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    def _log_prob(self, out, hidden, target):
        out[:] = self._log_probs(hidden)[np.arange(len(hidden)), target]

    def _scores(self, out, hidden):
        out[:] = self._log_probs(hidden)

    def _best(self, ids, log_probs, hidden):
        found = self._log_probs(hidden)
        ids[:] = np.argsort(-found, axis=1)[:, : ids.shape[1]]
        log_probs[:] = np.take_along_axis(found, ids.astype(np.int64), 1)


def make(counts, width, options, *, batch, trunk, backend):
    given = {name: options[name] for name in ("start", "rate", "seed")}
    return ToyReadout(len(counts), width, batch=batch, backend=backend, **given)


def rebuild(classes, **facts):
    return ToyReadout(classes, **facts)
