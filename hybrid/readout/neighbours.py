"""A readout whose best classes are looked up in a forest of nearest neighbours instead of computed for all classes."""

from concurrent.futures import Future
from typing import Any

import numpy as np

from .. import check
from . import least as least_of
from . import rebuild as rebuild_readout
from .base import again
from .base.exclude import excluded
from .base.stages import Staged
from .full import FullReadout


class NeighbourReadout(Staged):
    """A FullReadout or SampledReadout, whose `best` asks an Annoy forest over its weights for the largest dot products.

    readout  what learns in `step`, and answers everything but `best`
    trees, search, threads, exact_below  see cpu/neighbours.py

    `build` builds the forest, and `rebuild` does so while training goes on. The search is exact without a forest, below
    `exact_below` classes, and once more than a quarter of the weights have moved since it was built. `recall` measures what
    the forest misses. No checkpoint, copy or pickle holds the forest.

    Raises ValueError for another kind of readout, since a tree has a search of its own, for one on a GPU, since forests
    are built on the host, and for one with biases, which a search for dot products does not see.
    """

    kind = "neighbours"

    def __init__(
        self,
        readout: FullReadout,
        *,
        trees: int = 20,
        search: int = 4000,
        threads: int = 1,
        exact_below: int | None = None,
    ):
        from cpu.neighbours import Neighbours

        if not isinstance(readout, FullReadout):
            raise ValueError(f"readout: found {type(readout).__name__}, expected a FullReadout or a SampledReadout")
        if not readout.backend.device.host_memory:
            raise ValueError(
                f'readout: found one on "{readout.backend.name}", expected one on the CPU, where forests of neighbours are '
                "built; make it without backend"
            )
        self.readout = readout
        if readout.biases is not None:
            raise ValueError("readout: found one with biases, expected one without: a forest knows dot products only")
        self._settings: dict[str, Any] = {
            "trees": check.whole("trees", trees, 1),
            "search": check.whole("search", search, 1),
            "threads": check.whole("threads", threads, 1),
        }
        if exact_below is not None:
            self._settings["exact_below"] = check.whole("exact_below", exact_below, 0)
        self.classes, self.width, self.batch = readout.classes, readout.width, readout.batch
        self.backend, self.rate_scale = readout.backend, 1.0
        self._neighbours = Neighbours(readout.weights, metric="dot", seed=readout.seed, **self._settings)

    @property
    def rate(self) -> float:
        """That of the readout."""
        return self.readout.rate

    @rate.setter
    def rate(self, value: float) -> None:
        self.readout.rate = value

    def step(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> float:
        """Learn from a batch; see Readout."""
        with self.readout.alone:
            self.readout.rate_scale = self.rate_scale
            try:
                loss = self.readout.step(grad, hidden, target, weight)
            except FloatingPointError:  # the weights have moved all the same
                self._neighbours.changed(self.readout.moved)
                raise
            self._neighbours.changed(self.readout.moved)
            return loss

    def learn(
        self, grad: np.ndarray, loss: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: Any = None
    ) -> None:
        """Learn from a batch, unchecked; see Readout."""
        self.readout.rate_scale = self.rate_scale
        self.readout.learn(grad, loss, hidden, target, weight)
        self._neighbours.changed(self.readout.moved)

    def still(
        self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """What a step would write and return; nothing moves."""
        return self.readout.still(grad, hidden, target, weight)

    def losses(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The loss of each row as the next step would have it; nothing moves."""
        return self.readout.losses(hidden, target)

    def log_prob(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The log-probability of each row's target, normalised over all classes; see Readout."""
        return self.readout.log_prob(hidden, target)

    def scores(self, hidden: np.ndarray) -> np.ndarray:
        """The log-probabilities of all classes, (B, V), as the readout has them: no forest is asked; see Readout."""
        return self.readout.scores(hidden)

    def best(self, hidden: np.ndarray, k: int, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The k classes of largest logit that the forest finds: ids (B, k) int32, logits (B, k), largest first.

        exclude: as in Readout; the forest is asked for as many more.

        A logit is a log-probability up to a constant a row: to know that constant takes a sum over all classes, which
        is what the forest is there to avoid. log_prob knows it.
        """
        self._check(hidden, k)
        ids, logits = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), np.float32)
        left_out = None if exclude is None else excluded(exclude, len(hidden), self.classes)
        with self.readout.alone:  # what is asked about may be learning
            self._neighbours.query(ids, logits, hidden, left_out)
        return ids, logits

    def build(self) -> None:
        """Index the weights as they are; ValueError for weights that are not finite."""
        self._neighbours.build()

    def rebuild(self) -> Future[None]:
        """Begin to index the weights as they are, beside the index in use; done once the new one answers."""
        begun: Future[None] = self._neighbours.rebuild()
        return begun

    def recall(self, hidden: np.ndarray, k: int) -> float:
        """The share of the truly best k classes of these rows that `best` finds."""
        self._check(hidden, k)
        with self.readout.alone:
            found: float = self._neighbours.recall(hidden, k)
            return found

    def parameters(self) -> dict[str, np.ndarray]:
        """Those of the readout; the forest is not kept."""
        return self.readout.parameters()

    def send(self) -> None:
        """Those of the readout were filled: the search is exact until `build` or `rebuild`."""
        self.readout.send()
        self._neighbours.changed()

    def __reduce__(self) -> tuple[Any, ...]:
        with self.readout.alone:
            return again, (self.describe(), self.backend.name, self.parameters(), self.state(), self.rate_scale)

    def describe(self) -> dict[str, Any]:
        """What `rebuild` needs."""
        return {"kind": self.kind, "readout": self.readout.describe()} | self._settings

    def state(self) -> dict[str, Any]:
        """That of the readout."""
        return self.readout.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; the search is exact until `build` or `rebuild`."""
        self.readout.restore(state)
        self._neighbours.changed()

    def _check(self, hidden: np.ndarray, k: int) -> None:
        check.array("hidden", hidden, (None, self.width), np.float32)
        check.finite("hidden", hidden)
        check.whole("k", k, 1, self.classes)


def rebuild(readout: dict[str, Any], backend: Any = None, **facts: Any) -> NeighbourReadout:
    """From describe()."""
    learner: Any = rebuild_readout(readout, backend)
    return NeighbourReadout(learner, **facts)


def least(readout: dict[str, Any], **facts: Any) -> int:
    """How many numbers a checkpoint holds at least: those of the readout that is asked."""
    return least_of(readout)
