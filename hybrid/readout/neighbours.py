"""A readout whose best classes are looked up in an index of nearest neighbours instead of computed for all classes."""

import dataclasses
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import check, console
from ..neighbours import ASKED, csr, live, measured, tell_choice
from ..optimisers import SGD
from ..settings import number, option
from . import least as least_of
from . import rebuild as rebuild_readout
from . import sampled
from .base import Base
from .full import FullReadout

if TYPE_CHECKING:
    from scipy.sparse import csr_array

INDEXES = ("annoy", "hnsw", "voyager", "usearch", "faiss", "exact", "auto")
RECALL = 0.95


@dataclass(frozen=True)
class Annoy:
    """A forest of `trees` random trees (Bernhardsson 2013), of which a query visits `search` nodes."""

    trees: int = 20
    search: int = 4000

    def __post_init__(self) -> None:
        check.whole("trees", self.trees, 1)
        check.whole("search", self.search, 1)


@dataclass(frozen=True)
class Options(sampled.Options):
    """What `--readout neighbours` takes, beside the options of the sampled readout that it wraps."""

    recall: float = option(RECALL, "neighbours readout: share of the ten best classes that is to be found", type=number)


class NeighbourReadout(Base):
    """A FullReadout or SampledReadout, whose `best` asks an index over its weights for the largest dot products.

    readout  what learns in `step`, and answers everything but `best`
    index    as of hybrid.Neighbours, or Annoy(trees=20, search=4000); "auto": the fastest that finds `recall` (None: 0.95) of
             the ten best classes of the hidden vectors that the readout met last. `choice` says which it is
    every    a step whose number is a multiple of it begins to build the index anew, beside the one in use; None: none does
    moved    so does a step after which this share of the classes has moved since the last build began
    threads, exact_below  see cpu/search/neighbours.py

    `build` builds the index, and `rebuild` does so while training goes on. The search is exact without an index, below
    `exact_below` classes, and once more than a quarter of the weights have moved since it was built. `recall` measures what
    the index misses. No checkpoint, copy or pickle holds the index, and what is learned does not depend on it.

    Raises ValueError for another kind of readout, since a tree has a search of its own, for one on a GPU, since indexes
    are built on the host, for one with biases, which a search for dot products does not see, and for an index whose library
    is missing.
    """

    kind = "neighbours"

    def __init__(
        self,
        readout: FullReadout,
        *,
        index: str | Annoy = "annoy",
        recall: float | None = None,
        every: int | None = None,
        moved: float | None = None,
        threads: int = 1,
        exact_below: int | None = None,
    ):
        if not isinstance(readout, FullReadout):
            raise ValueError(f"readout: found {type(readout).__name__}, expected a FullReadout or a SampledReadout")
        if not readout.backend.device.host_memory:
            raise ValueError(
                f'readout: found one on "{readout.backend.name}", expected one on the CPU, where indexes of neighbours are '
                "built; make it without backend"
            )
        if readout.biases is not None:
            raise ValueError("readout: found one with biases, expected one without: an index knows dot products only")
        self.readout = readout
        facts = {name: getattr(readout, name) for name in ("width", "batch", "seed", "backend")}
        super().__init__(readout.classes, optimiser=SGD(readout.rate), **facts)
        self.alone = readout.alone  # a call of it is a call of the readout
        forest, kind = (index, "annoy") if isinstance(index, Annoy) else (Annoy(), index)
        self._settings: dict[str, Any] = dataclasses.asdict(forest) | {"threads": check.whole("threads", threads, 1)}
        if exact_below is not None:
            self._settings["exact_below"] = check.whole("exact_below", exact_below, 0)
        if kind != "annoy":
            self._settings["index"] = check.choice("index", kind, INDEXES)
        if kind == "auto":
            self._settings["recall"] = RECALL if recall is None else recall
        elif recall is not None:
            raise ValueError(
                f'recall: found {recall} with index "{kind}", expected none: index "auto" alone reaches a recall'
            )
        self.every = None if every is None else check.whole("every", every, 1)
        self.moved = None if moved is None else check.number("moved", moved, 0)
        self._neighbours = live(readout.weights, metric="dot", seed=readout.seed, **self._settings)
        self._steps, self._said = 0, self._neighbours.choice
        self._building: Future[None] | None = None
        self._met = np.empty((0, self.width), np.float32)  # hidden vectors of the last call

    def _set_rate(self, rate: float) -> None:
        """It is that of the readout."""
        super()._set_rate(rate)
        self.readout.rate = rate

    def begin_with(self, vectors: np.ndarray) -> None:
        """Have vectors (V, D) float32 as the weights; the index is of those before, until it is built anew. See Readout."""
        with self.alone:
            self.readout.begin_with(vectors)
            self._neighbours.changed(np.arange(self.classes, dtype=np.int32))

    def learn(
        self, grad: np.ndarray, loss: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: Any = None
    ) -> None:
        """Learn from a batch, unchecked, and begin to build the index anew where that is due; see Readout."""
        self.readout.rate_scale = self.rate_scale
        self.readout.learn(grad, loss, hidden, target, weight)
        self._neighbours.changed(self.readout.moved)
        self._steps += 1
        self._tell()
        due = self.every is not None and self._steps % self.every == 0
        if self.moved is not None:
            due = due or self._neighbours.moved >= self.moved
        if due and not self._neighbours.building:
            self._meet(hidden)
            self.rebuild()

    def _meet(self, hidden: np.ndarray) -> None:
        if len(hidden):
            self._met = hidden[:ASKED].copy()

    def _tell(self) -> None:
        """Say once what a rebuild chose, or why it failed: then the index before it goes on to answer."""
        if self._building is None or not self._building.done():
            return
        failure, self._building = self._building.exception(), None
        if failure:
            console.note(f"neighbours: the index was not built anew: {failure}")
        tell_choice(self._said, self.choice)
        self._said = self.choice

    def dry_run(
        self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """What a step would write and return; nothing moves."""
        return self.readout.dry_run(grad, hidden, target, weight)

    def losses(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The loss of each row as the next step would have it; nothing moves."""
        return self.readout.losses(hidden, target)

    def log_prob(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The log-probability of each row's target, normalised over all classes; see Readout."""
        log_prob = self.readout.log_prob(hidden, target)
        self._meet(hidden)
        return log_prob

    def scores(self, hidden: np.ndarray) -> np.ndarray:
        """The log-probabilities of all classes, (B, V), as the readout has them: no index is asked; see Readout."""
        scores = self.readout.scores(hidden)
        self._meet(hidden)
        return scores

    def best(self, hidden: np.ndarray, k: int, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The k classes of largest logit that the index finds: ids (B, k) int32, logits (B, k), largest first.

        exclude: as in Readout; the index is asked for as many more.

        A logit is a log-probability up to a constant a row: to know that constant takes a sum over all classes, which
        is what the index is there to avoid. log_prob knows it.
        """
        self._check(hidden)
        check.whole("k", k, 1, self.classes)
        ids, logits = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), np.float32)
        left_out = None if exclude is None else check.excluded(exclude, len(hidden), self.classes)
        with self.alone:  # what is asked about may be learning
            self._neighbours.query(ids, logits, hidden, left_out)
        return ids, logits

    def neighbours(self, hidden: np.ndarray, k: int, exclude: Any = None) -> "csr_array":
        """As `best`: scipy.sparse CSR (B, V) of the logits, in each row largest first."""
        return csr(*self.best(hidden, k, exclude), self.classes)

    @property
    def choice(self) -> Any:
        """Of index "auto": kind, size, effort, k, recall, seconds and exact_seconds, see cpu/search/index.py; None before."""
        return self._neighbours.choice

    def build(self) -> None:
        """Index the weights as they are; ValueError for weights that are not finite."""
        self.rebuild().result()
        self._tell()

    def rebuild(self) -> Future[None]:
        """Begin to index the weights as they are, beside the index in use; done once the new one answers."""
        self._building = self._neighbours.rebuild(self._met)
        return self._building

    def figures(self, build: bool = True) -> dict[str, Any]:
        """Recall of the ten best and queries a second, beside exact search, on the hidden vectors that were met last.

        build  whether an index is built first where there is none, or too many classes have moved since. A rebuild that
               is running is waited for in any case
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
        """The share of the truly best k classes of these rows that `best` finds."""
        self._check(hidden)
        check.whole("k", k, 1, self.classes)
        self._meet(hidden)
        with self.alone:
            return float(self._neighbours.recall(hidden, k))

    def parameters(self) -> dict[str, np.ndarray]:
        """Those of the readout; the index is not kept."""
        return self.readout.parameters()

    def send(self) -> None:
        """Those of the readout were filled: the search is exact until `build` or `rebuild`."""
        self.readout.send()
        self._neighbours.changed()

    def fetch(self) -> None:
        """Nothing to do: all is on the host."""

    def describe(self) -> dict[str, Any]:
        """What `rebuild` needs."""
        tended = {"every": self.every, "moved": self.moved}
        facts = {"kind": self.kind, "readout": self.readout.describe()} | self._settings
        return facts | {name: value for name, value in tended.items() if value is not None}

    def state(self) -> dict[str, Any]:
        """That of the readout, and the number of steps where rebuilds go by it."""
        return self.readout.state() | ({"steps": self._steps} if self.every else {})

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; the search is exact until `build` or `rebuild`."""
        self.readout.restore(state)
        self._steps = check.whole("steps", state.get("steps", 0), 0)
        self._neighbours.changed()


def make(
    counts: Any, width: int, options: Mapping[str, Any], *, batch: int, trunk: bool = True, backend: Any = None
) -> NeighbourReadout:
    """From options of the command line; see hybrid/readout/__init__.py."""
    learner = sampled.make(counts, width, options, batch=batch, trunk=trunk, backend=backend)
    return NeighbourReadout(learner, index="auto", recall=options["recall"])


def rebuild(readout: dict[str, Any], backend: Any = None, **facts: Any) -> NeighbourReadout:
    """From describe()."""
    learner: Any = rebuild_readout(readout, backend)
    forest = Annoy(facts.pop("trees"), facts.pop("search"))
    index = facts.pop("index", forest)
    if index != "auto":
        facts.pop("recall", None)  # former checkpoints have one that was ignored
    return NeighbourReadout(learner, index=index, **facts)


def least(readout: dict[str, Any], **facts: Any) -> int:
    """How many numbers a checkpoint holds at least: those of the readout that is asked."""
    return least_of(readout)
