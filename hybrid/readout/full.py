"""The full softmax: every class has a row of weights, and every step updates all of them."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from .. import sparse
from ..schedule.guards import Held
from .base import Base, Common, arguments, described


@dataclass(frozen=True)
class Options:
    """The options of `--readout full`: none of its own."""


class FullReadout(Base):
    """A softmax, log p(v | h) = w_v . h - log sum exp(w . h), learned on the loss summed over a batch; weights start at 0.

    counts  class counts, or the number of classes
    width   numbers of a hidden vector
    batch   maximum rows per step
    seed    unused, since nothing is drawn, except by an index over the weights
    backend  the device of the weights, from hybrid.backend.choose: a GPU has its own, and `weights` is the host's copy
    optimiser  update rule of the rows of weights, all in every step: "sgd", "row-adagrad" or "adagrad", or one with a rate,
             such as hybrid.SGD(0.05) (default: 0.02)
    biases  True: every class has a bias, which is added to its dot product

    A step costs 6 B V D operations and B V numbers of scratch up to 392 MiB; beyond that up to 8 B V D, with constant scratch;
    on a GPU 6.7 B V D. Raises ValueError for fewer than two classes.
    """

    kind = "full"
    places: tuple[str, ...] = ("cpu", "cuda")
    moved: Any = slice(None)  # the classes whose weights the last step updated

    def __init__(self, counts: Any, width: int, *, seed: int = 0, **common: Unpack[Common]):
        super().__init__(counts, width, seed=seed, **common)
        self._kernels = self.backend.softmax  # ValueError if the backend has none
        self.weights = sparse.table(self.classes, self.width)
        self._keep(self.weights)

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the weights (V, D), and the biases and optimiser state of each class."""
        self.fetch()
        return {"weights": self.weights} | sparse.beside(self._host)

    def begin_with(self, vectors: np.ndarray) -> None:
        """Sets the weights to vectors (V, D) float32; see Readout."""
        self._check_vectors(vectors)
        with Held(), self.alone:
            self.weights[...] = vectors
            self.send()

    def take(self, rows: np.ndarray) -> None:
        """Adopts rows (V, D) float32 on the CPU as the weights, without a copy; they may be shared."""
        self.weights = rows
        self._host, self._there = (learned._replace(rows=rows) for learned in (self._host, self._there))

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        self._kernels.step(grad, loss, self._learns(self._there), self._work, hidden, target, weight, self._step_rate)

    @functools.cached_property
    def _work(self) -> Any:
        return self._kernels.workspace(self.batch, self.width, np.float32)

    def _log_prob(self, out: Any, hidden: Any, target: Any) -> None:
        self._kernels.log_prob(out, self._there, self._work, hidden, target)

    def _best(self, ids: Any, log_probs: Any, hidden: Any) -> None:
        self._kernels.best(ids, log_probs, self._there, self._work, hidden)

    @functools.cached_property
    def _host_work(self) -> Any:
        """The scratch memory of the host: the device's own if it shares the memory."""
        from cpu import softmax

        shared = self.backend.device.host_memory
        return self._work if shared else softmax.workspace(self.batch, self.width, np.float32)

    def _best_without(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: Any) -> None:
        from cpu import softmax

        softmax.best_without(ids, log_probs, self._host, self._host_work, hidden, left_out)

    def _scores(self, out: np.ndarray, hidden: np.ndarray) -> None:
        from cpu.output import scores

        scores.softmax(out, self._host, hidden)


def make(counts: Any, width: int, options: Mapping[str, Any], *, trunk: bool, **sizes: Any) -> FullReadout:
    """Returns the readout from options of the command line; see hybrid/readout/__init__.py."""
    return FullReadout(counts, width, seed=options["seed"], **sizes, **arguments(options, Options))


def rebuild(classes: int, seed: int = 0, **facts: Any) -> FullReadout:
    """Returns the readout from describe()."""
    return FullReadout(classes, seed=seed, **described(facts))


def least(classes: int, width: int, **facts: Any) -> int:
    """Returns the minimum number of values in a checkpoint."""
    return sparse.numbers(classes, width, **facts)
