"""What all readouts share: arguments are checked here, once, and long inputs are cut into calls of `batch` rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import backend as backends
from .. import check


class Base:
    """A readout without its arithmetic: a subclass has `kind`, `_step`, `_log_prob` and `_best`, which trust all.

    backend  the modules that compute, from hybrid.backend.choose; None: those of the CPU
    """

    kind: str
    counts: Any  # (V,) float64, None where only the number of classes is known

    def __init__(self, counts, width, *, batch, rate, seed, backend):
        whole = isinstance(counts, int | np.integer)
        self.counts = None if whole else check.counts(counts)
        self.classes = check.classes(counts if whole else self.counts.size)
        self.width = check.whole("width", width, 1)
        self.batch = check.whole("batch", batch, 1)
        self.rate = check.number("rate", rate, 0)
        self.seed = check.whole("seed", seed, 0, 2**63 - 1)
        self.backend = backend or backends.choose("cpu")
        if not self.backend.device.shares_host:
            raise ValueError(f'backend: found "{self.backend.name}"; readouts compute on the CPU in this version')
        self.rate_scale = 1.0
        self._loss = np.empty(self.batch, np.float32)

    def step(self, grad, hidden, target) -> float:
        """Learn from a batch and return its mean loss in nats; see Readout."""
        self._check(hidden, target)
        check.array("grad", grad, hidden.shape, np.float32, written=True)
        rows = len(hidden)
        if rows > self.batch:
            raise ValueError(f"hidden: found {rows} rows, expected at most {self.batch}; make it with a larger batch")
        if np.may_share_memory(grad, hidden):
            raise ValueError("grad: found the memory of hidden, expected an array of its own")
        if not rows:
            return 0.0
        loss = self._loss[:rows]
        self._step(grad, loss, hidden, target, self.rate * self.rate_scale)
        return check.loss(loss)

    def log_prob(self, hidden, target) -> np.ndarray:
        """The log-probability of each row's target; see Readout."""
        self._check(hidden, target)
        out = np.empty(len(hidden), np.float32)
        for part in self._parts(hidden):
            self._log_prob(out[part], hidden[part], target[part])
        return out

    def best(self, hidden, k) -> tuple[np.ndarray, np.ndarray]:
        """The k most likely classes of each row; see Readout."""
        self._check(hidden)
        check.whole("k", k, 1, self.classes)
        return self._each(self._best, hidden, k)

    def state(self) -> dict[str, Any]:
        """Nothing but the parameters is kept."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to go on from."""

    def describe(self) -> dict[str, Any]:
        """What `rebuild` needs."""
        names = ("kind", "classes", "width", "batch", "rate", "seed")
        return {name: getattr(self, name) for name in names}

    def _each(self, find, hidden, k) -> tuple[np.ndarray, np.ndarray]:
        ids, log_probs = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), np.float32)
        for part in self._parts(hidden):
            find(ids[part], log_probs[part], hidden[part])
        return ids, log_probs

    def _parts(self, hidden) -> Iterator[slice]:
        return (slice(at, at + self.batch) for at in range(0, len(hidden), self.batch))

    def _check(self, hidden, target=None) -> None:
        check.array("hidden", hidden, (None, self.width), np.float32)
        if target is not None:
            check.array("target", target, (len(hidden),), np.int32)
            check.ids("target", target, self.classes)
        check.finite("hidden", hidden)

    def _step(self, grad, loss, hidden, target, rate):
        raise NotImplementedError

    def _log_prob(self, out, hidden, target):
        raise NotImplementedError

    def _best(self, ids, log_probs, hidden):
        raise NotImplementedError
