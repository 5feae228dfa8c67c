"""A readout that finds its best classes in an index of nearest neighbours instead of scoring all classes."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import check, console
from ..neighbours import ASKED, checked, live, measured, tell_choice
from ..optimisers import SGD
from ..settings import number, option
from . import least as least_of
from . import rebuild as rebuild_readout
from . import sampled
from .base import Base
from .full import FullReadout

RECALL = 0.95


@dataclass(frozen=True)
class Options(sampled.Options):
    """The options of `--readout neighbours`, in addition to those of the wrapped sampled readout."""

    recall: float = option(
        RECALL, "neighbours readout: share of the ten best classes that the index finds", type=number
    )


class NeighbourReadout(Base):
    """A FullReadout or SampledReadout with `best` by a maximum-inner-product index over its weights.

    readout  the wrapped readout, which does everything but `best`
    index    as in hybrid.Neighbours; "auto": the fastest that finds `recall` (None: 0.95) of the ten best classes for the
             latest hidden vectors. `choice` states the result
    threads, settings  as in hybrid.Neighbours

    `build` builds the index, and `rebuild` does so concurrently with training. The search is exact without an index, below
    `exact_below` classes, and after more than a quarter of the weights have changed since the build. `recall` measures the
    accuracy of the index. No checkpoint, copy or pickle holds the index, and learning does not depend on it.

    Raises ValueError for another kind of readout, since a tree has its own search; for one on a GPU, since indexes are built on
    the host; for one with biases, which an inner-product search ignores; and if the library of the index is missing.
    """

    kind = "neighbours"

    def __init__(
        self,
        readout: FullReadout,
        *,
        index: str = "auto",
        recall: float | None = None,
        threads: int = 1,
        **settings: Any,
    ):
        if not isinstance(readout, FullReadout):
            raise ValueError(f"readout: found {type(readout).__name__}, expected a FullReadout or a SampledReadout")
        if not readout.backend.device.host_memory:
            raise ValueError(
                f'readout: found one on "{readout.backend.name}", expected one on the CPU, where indexes of neighbours are '
                "built; make it without backend"
            )
        if readout.biases is not None:
            raise ValueError(
                "readout: found one with biases, expected one without: an index searches dot products only"
            )
        self.readout = readout
        facts = {name: getattr(readout, name) for name in ("width", "batch", "seed", "backend")}
        super().__init__(readout.classes, optimiser=SGD(readout.rate), **facts)
        self.alone = readout.alone  # a call of it is a call of the readout
        if index == "auto" and recall is None:
            recall = RECALL
        self._settings = checked({"index": index, "recall": recall, "threads": threads} | settings)
        self._neighbours = live(readout.weights, metric="dot", seed=readout.seed, **self._settings)
        self._reported = self._neighbours.choice
        self._building: Future[None] | None = None
        self._met = np.empty((0, self.width), np.float32)  # hidden vectors of the last call

    def _set_rate(self, rate: float) -> None:
        super()._set_rate(rate)
        self.readout.rate = rate

    def begin_with(self, vectors: np.ndarray) -> None:
        """Sets the weights to vectors (V, D) float32; the index is outdated until it is rebuilt. See Readout."""
        with self.alone:
            self.readout.begin_with(vectors)
            self._neighbours.changed(np.arange(self.classes, dtype=np.int32))

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """Learns from a batch, unchecked; see Readout."""
        self.readout.rate_scale = self.rate_scale
        self.readout.learn(grad, loss, hidden, target, weight)
        self._neighbours.changed(self.readout.moved)
        self._tell()

    def _meet(self, hidden: np.ndarray) -> None:
        if len(hidden):
            self._met = hidden[:ASKED].copy()

    def _tell(self) -> None:
        """Prints once the choice of a rebuild, or the reason for its failure, after which the old index stays in use."""
        if self._building is None or not self._building.done():
            return
        failure, self._building = self._building.exception(), None
        if failure:
            console.note(f"neighbours: the index was not rebuilt: {failure}")
        tell_choice(self._reported, self.choice)
        self._reported = self.choice

    def dry_run(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: Any = None) -> float:
        return self.readout.dry_run(grad, hidden, target, weight)

    def losses(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        return self.readout.losses(hidden, target)

    def log_prob(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Returns the log-probability of each row's target, normalised over all classes; see Readout."""
        log_prob = self.readout.log_prob(hidden, target)
        self._meet(hidden)
        return log_prob

    def scores(self, hidden: np.ndarray) -> np.ndarray:
        """Returns the log-probabilities of all classes, (B, V), from the wrapped readout, without the index; see Readout."""
        scores = self.readout.scores(hidden)
        self._meet(hidden)
        return scores

    def best(self, hidden: np.ndarray, k: int, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k classes of largest logit in the index: ids (B, k) int32, logits (B, k), largest first.

        exclude: as in Readout; the query is extended by the number of excluded classes.

        A logit is a log-probability up to a constant per row, a sum over all classes, which log_prob computes.
        """
        self._check(hidden)
        check.whole("k", k, 1, self.classes)
        ids, logits = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), np.float32)
        left_out = None if exclude is None else check.excluded(exclude, len(hidden), self.classes)
        with self.alone:  # the weights may be learning
            self._neighbours.query(ids, logits, hidden, left_out)
        return ids, logits

    @property
    def choice(self) -> Any:
        """The choice of index "auto": kind, size, effort, k, recall, seconds, exact_seconds (cpu/search/index.py); or None."""
        return self._neighbours.choice

    def build(self) -> None:
        """Indexes the current weights; ValueError for weights that are not finite."""
        self.rebuild().result()
        self._tell()

    def rebuild(self) -> Future[None]:
        """Starts to index the current weights in the background; done once the new index is in use."""
        self._building = self._neighbours.rebuild(self._met)
        return self._building

    def figures(self, build: bool = True) -> dict[str, Any]:
        """Returns the recall of the ten best and queries per second, also of exact search, on the latest hidden vectors.

        build  True: first builds an index if there is none, or too many classes have changed. Waits for a rebuild in any case
        """
        if not len(self._met):
            return {}
        with self.alone:
            if self._building:
                self._building.exception()
            if build and not self._neighbours.built:
                self.build()
            worth = measured(self._neighbours, self._met, 10)
        return {
            f"neighbours recall@{worth.k}": worth.recall,
            "neighbours queries/s": round(worth.rate),
            "exact queries/s": round(worth.exact_rate),
        }

    def recall(self, hidden: np.ndarray, k: int) -> float:
        """Returns the fraction of the exact best k classes of these rows that `best` finds."""
        self._check(hidden)
        check.whole("k", k, 1, self.classes)
        self._meet(hidden)
        with self.alone:
            return float(self._neighbours.recall(hidden, k))

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the parameters of the wrapped readout, without the index."""
        return self.readout.parameters()

    def send(self) -> None:
        """Sends the filled parameters; the search is exact until `build` or `rebuild`."""
        self.readout.send()
        self._neighbours.changed()

    def fetch(self) -> None:
        """Does nothing: all is on the host."""

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "readout": self.readout.describe()} | self._settings

    def state(self) -> dict[str, Any]:
        return self.readout.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Restores a state; the search is exact until `build` or `rebuild`."""
        self.readout.restore(state)
        self._neighbours.changed()


def make(counts: Any, width: int, options: Mapping[str, Any], *, trunk: bool, **sizes: Any) -> NeighbourReadout:
    """Returns the readout from options of the command line; see hybrid/readout/__init__.py."""
    learner = sampled.make(counts, width, options, trunk=trunk, **sizes)
    return NeighbourReadout(learner, index="auto", recall=options["recall"])


def rebuild(readout: dict[str, Any], backend: Any = None, **facts: Any) -> NeighbourReadout:
    """Returns the readout from describe()."""
    learner: Any = rebuild_readout(readout, backend)
    return NeighbourReadout(learner, **{"index": "annoy"} | facts)  # earlier descriptions name every index but this one


def least(readout: dict[str, Any], **facts: Any) -> int:
    """Returns the minimum number of values in a checkpoint, that of the wrapped readout."""
    return least_of(readout)
