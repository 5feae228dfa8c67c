"""The full softmax: every class has a row of weights, every step moves all of them."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from .. import sparse
from ..schedule.guards import Held
from .base import Base, Common, arguments, described

if TYPE_CHECKING:
    from cpu.output.topk import Excluded


@dataclass(frozen=True)
class Options:
    """What `--readout full` takes: nothing of its own."""


class FullReadout(Base):
    """log p(v | h) = w_v . h - log sum exp(w . h), learned on the loss summed over a batch; weights start at 0.

    counts  how often each class is met, or how many classes there are
    width   numbers of a hidden vector
    batch   most rows a step
    seed    not used here, where nothing is drawn, but by an index over the weights
    backend  where the weights are and move, from hybrid.backend.choose: a GPU has its own, and `weights` is the host's copy
    optimiser  how the rows of weights move, all of them in every step: "sgd", "row-adagrad" or "adagrad", or one with a rate,
             such as hybrid.SGD(0.05) (default: 0.02)
    biases  True: every class has a bias, which is added to its dot product

    A step costs 6 B V D operations and B V numbers of scratch while these fit 392 MiB, beyond that up to 8 B V D and no more
    scratch; on a GPU 6.7 B V D. Raises ValueError for fewer than two classes.
    """

    kind = "full"
    places: tuple[str, ...] = ("cpu", "cuda")
    moved: Any = slice(None)  # the classes whose weights the last step moved

    def __init__(self, counts: Any, width: int, *, seed: int = 0, **common: Unpack[Common]):
        super().__init__(counts, width, seed=seed, **common)
        self._kernels = self.backend.softmax  # ValueError where the backend has none
        self.weights = sparse.table(self.classes, self.width)
        self._keep(self.weights)

    def parameters(self) -> dict[str, np.ndarray]:
        """The weights (V, D), and what is kept for each class beside them."""
        self.fetch()
        return {"weights": self.weights} | sparse.beside(self._host)

    def begin_with(self, vectors: np.ndarray) -> None:
        """Have vectors (V, D) float32 as the weights; see Readout."""
        self._check_vectors(vectors)
        with Held(), self.alone:
            self.weights[...] = vectors
            self.send()

    def take(self, rows: np.ndarray) -> None:
        """Have these as the weights from here on, on the CPU: (V, D) float32, which somebody else may have too."""
        self.weights = rows
        self._host, self._there = (learned._replace(rows=rows) for learned in (self._host, self._there))

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """Learn from a batch of the device's arrays, within the work of a queue; see Readout."""
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
        """Scratch of the host: the device's own where it shares the memory."""
        from cpu import softmax

        shared = self.backend.device.host_memory
        return self._work if shared else softmax.workspace(self.batch, self.width, np.float32)

    def _best_without(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: "Excluded") -> None:
        from cpu import softmax

        softmax.best_without(ids, log_probs, self._host, self._host_work, hidden, left_out)

    def _scores(self, out: np.ndarray, hidden: np.ndarray) -> None:
        from cpu.output import scores

        scores.softmax(out, self._host, hidden)


def make(
    counts: Any, width: int, options: Mapping[str, Any], *, batch: int, trunk: bool = True, backend: Any = None
) -> FullReadout:
    """From options of the command line; see hybrid/readout/__init__.py."""
    sizes = {"batch": batch, "backend": backend, "seed": options["seed"]}
    return FullReadout(counts, width, **sizes, **arguments(options, Options))


def rebuild(classes: int, seed: int = 0, **facts: Any) -> FullReadout:
    """From describe()."""
    return FullReadout(classes, seed=seed, **described(facts))


def least(classes: int, width: int, **facts: Any) -> int:
    """How many numbers a checkpoint holds at least."""
    return sparse.numbers(classes, width, **facts)
