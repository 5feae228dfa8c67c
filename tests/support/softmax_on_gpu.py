"""Problems of the full softmax, their oracle, and steps on the device."""

import numpy as np

from gpu import softmax
from hybrid.contract import Learned

NAMES = ("grad", "loss", "weights")


def problem(classes, width, batch, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    weights = (spread * rng.normal(size=(classes, width))).astype(np.float32)
    hidden = rng.normal(size=(batch, width)).astype(np.float32)
    return weights, hidden, rng.integers(0, classes, batch).astype(np.int32)


def oracle(weights, hidden):
    """All log-probabilities (B, V), in float64."""
    logits = hidden.astype(float) @ weights.astype(float).T
    top = logits.max(axis=1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))


class Case:
    """A problem on the device."""

    def __init__(self, gpu, weights, hidden, target=None, rows=None):
        self.gpu, (batch, width) = gpu, hidden.shape
        self.weights, self.hidden = gpu.put(weights), gpu.put(hidden)
        self.target = None if target is None else gpu.put(target)
        self.grad, self.loss = gpu.empty(hidden.shape, np.float32), gpu.empty(batch, np.float32)
        self.work = gpu.run(softmax.workspace, rows or batch, width, np.float32)

    def arguments(self, rate):
        return self.grad, self.loss, Learned(self.weights), self.work, self.hidden, self.target, None, rate

    def results(self):
        return [self.gpu.get(getattr(self, name)) for name in NAMES]

    def step(self, rate):
        """grad, loss and the weights after a step."""
        self.gpu.run(softmax.step, *self.arguments(rate))
        return self.results()

    def log_prob(self):
        out = self.gpu.empty(self.loss.shape, np.float32)
        self.gpu.run(softmax.log_prob, out, Learned(self.weights), self.work, self.hidden, self.target)
        return self.gpu.get(out)

    def best(self, k):
        shape = (len(self.hidden), k)
        ids, log_probs = self.gpu.empty(shape, np.int32), self.gpu.empty(shape, np.float32)
        self.gpu.run(softmax.best, ids, log_probs, Learned(self.weights), self.work, self.hidden)
        return self.gpu.get(ids), self.gpu.get(log_probs)
