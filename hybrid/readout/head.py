"""A dense softmax over the most frequent classes and clusters of the others, and in each cluster a small readout of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import check, sparse
from ..interrupt import Held
from ..settings import number, option
from .base.halves import Halves
from .base.slots import check_slots, regrouped, shape
from .base.tails import TAILS

if TYPE_CHECKING:
    from cpu.excluded import Excluded


SCALES = {"tree": 2.0, "softmax": 1.0}  # of the rate, by tails
MET = 1e-3  # how often a class is taken to be met at least, so that none weighs nothing


@dataclass(frozen=True)
class Options:
    """What `--readout head` takes."""

    tails: str = option("tree", "head readout: what is in a cluster", choices=tuple(TAILS))
    share: float = option(
        0.1, "head readout: the share of a full softmax's time that sizes are chosen for", type=number
    )


class HeadReadout(Halves):
    """p(v | h) = p(slot of v | h) p(v | its cluster, h): a full softmax over slots, and in each cluster a small readout.

    A slot of the head belongs to one of the H most frequent classes, or to one of K clusters, which have all others. Under a
    backend with a GPU the head is there, and the clusters stay on the CPU: in a tick these are two stages, "top" and "readout".

    counts   how often each class is met, or how many there are
    width    numbers of a hidden vector
    head     H; None: chosen
    clusters K, or an array (V,): the cluster of each class, -1 for a class of the head, which is then not given; None: chosen
    tails    what is in a cluster: "tree", a Huffman tree, which costs a logarithm; "softmax", a dense softmax: class-based
             softmax, and with few clusters of classes about as frequent the adaptive softmax, without its projections
    share    sizes that are not given make a step cost about this share of a full softmax's, see cpu/head_sizes.py
    vectors  (V, any): what is alike shares a cluster; None: clusters are bands of classes that are about as frequent
    batch    most rows a step
    rate     step of the optimiser: the head learns on the loss summed over a batch, as a full softmax does
    tail_scale  by what the rate is multiplied in clusters, where trees learn example by example; None: 2 for trees, 1 for
             softmaxes
    seed     of the clusters
    backend  where the head is and moves
    optimiser, biases  of the rows of both; see hybrid/sparse.py

    Rows start at 0. `best` is exact. Raises ValueError for sizes that do not fit the classes, and for clusters that are empty.

    Goodman 2001, "Classes for fast maximum entropy training"; Grave et al. 2017, arXiv:1609.04309.
    """

    kind = "head"
    places: tuple[str, ...] = ("cpu", "cuda")

    def __init__(
        self,
        counts: Any,
        width: int,
        *,
        head: int | None = None,
        clusters: Any = None,
        tails: str = "tree",
        share: float = 0.1,
        vectors: Any = None,
        batch: int = 1024,
        rate: float = 0.02,
        tail_scale: float | None = None,
        seed: int = 0,
        backend: Any = None,
        optimiser: str = "sgd",
        biases: bool = False,
    ):
        from cpu import aligned

        given = {"batch": batch, "rate": rate, "seed": seed, "backend": backend}
        super().__init__(counts, width, optimiser=optimiser, biases=biases, **given)
        if self.counts is None:
            self.counts = np.ones(self.classes)
        self.tails = check.choice("tails", tails, tuple(TAILS))
        self.tail_scale = check.number("tail_scale", SCALES[tails] if tail_scale is None else tail_scale, 0)
        self.slot, self.head, self.clusters = shape(self.counts, head, clusters, share, tails, vectors, seed)
        below = TAILS[tails].rows_of(self.classes, self.head, self.clusters)
        self._keep(aligned.zeros((self.head + self.clusters, self.width), np.float32))
        self._tail = sparse.kept(aligned.zeros((below, self.width), np.float32), self.optimiser, self.biased)
        self._prepare()

    def _prepare(self) -> None:
        """What follows from slots: made anew when they are filled from a checkpoint."""
        cluster = np.where(self.slot < self.head, -1, self.slot - self.head).astype(np.int32)
        self._tails = TAILS[self.tails](cluster, self.counts)
        self._tails.make_room(self.batch, self.width)
        self._place.do(self._make_room)

    def _make_room(self) -> None:
        self._slot = self.backend.device.from_host(self.slot)
        self._work = self.backend.head.workspace(self.batch, self.width, np.float32)

    def regroup(self, vectors: Any) -> None:
        """Go on with clusters of what is alike by vectors (V, any), as many as before; what was learned is carried over.

        Every class keeps its log-probability to first order in the hidden vector, see cpu/head_carry.py. Between the ticks of a
        run: an engine with a delay has batches under way that met the clusters before. Raises ValueError for other vectors.
        """
        slot = regrouped(self.slot, self.head, self.clusters, vectors, self.seed)
        with Held(), self.alone:
            self.fetch()
            masses = np.maximum(self.counts, MET)
            before, known = self._tails, self._tails.known(self._host, self._tail, self.slot, masses)
            was, self.slot[:] = self.slot.copy(), slot
            self._prepare()
            self._tails.carry(known, before, self._host, self._tail, masses)
            self._spread(was, masses)
            self.send()

    def _spread(self, was: np.ndarray, masses: np.ndarray) -> None:
        """The squares of the clusters' slots become those of an average visit; was: the slots before."""
        from cpu import head_carry

        visits = [np.bincount(slot, masses)[self.head :] for slot in (was, self.slot)]
        for squares in (self._host.squares, self._host.bias_squares):
            head_carry.spread(None if squares is None else squares[self.head :], *visits)

    def begin_with(self, vectors: np.ndarray) -> None:
        """Make clusters of what is alike by vectors (V, D) float32, and give all rows what says these; see Readout."""
        from cpu import head_carry

        self._check_vectors(vectors)
        slot = regrouped(self.slot, self.head, self.clusters, vectors, self.seed)
        with Held(), self.alone:
            self.slot[:] = slot
            self._prepare()
            alone = slot < self.head
            self._host.rows[slot[alone]] = vectors[alone]
            known = head_carry.Known(vectors, np.zeros(self.classes))
            self._tails.carry(known, self._tails, self._host, self._tail, np.maximum(self.counts, MET))
            self.send()

    def vectors(self) -> np.ndarray:
        """What head and cluster have learned of each class, (V, D) float32: alike for classes that are treated alike."""
        with self.alone:
            self.fetch()
            found: np.ndarray = self._tails.known(self._host, self._tail, self.slot, np.maximum(self.counts, MET)).c
            return found

    def learn_top(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """The head's half: add to grad, write its part of loss; arrays of the device, in the work of a queue."""
        given = self._learns(self._there), self._work, self._slot, hidden, target, weight, self._step_rate
        self.backend.head.step(grad, loss, *given)

    def _learn_tail(
        self, grad: np.ndarray, loss: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None
    ) -> None:
        self._tails.step(grad, loss, self._learns(self._tail), hidden, target, weight, self._tail_rate)

    @property
    def _tail_rate(self) -> float:
        return self._step_rate * self.tail_scale

    def _tail_log_prob(self, out: np.ndarray, hidden: np.ndarray, target: np.ndarray) -> None:
        self._tails.log_prob(out, self._tail, hidden, target)

    def _top_log_prob(self, out: Any, hidden: Any, target: Any) -> None:
        self.backend.head.log_prob(out, self._there, self._work, self._slot, hidden, target)

    def best(self, hidden: np.ndarray, k: int, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The k most likely classes of each row, exactly; see Readout. Fetches the head of a GPU, once a call."""
        with self.alone:
            self.fetch()
            return super().best(hidden, k, exclude)

    def _find(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray) -> None:
        from cpu import excluded

        self._best_without(ids, log_probs, hidden, excluded.nothing(len(hidden)))

    def _best_without(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: "Excluded") -> None:
        self._tails.best(ids, log_probs, self._tail, self._slots(hidden), hidden, left_out)

    def _scores(self, out: np.ndarray, hidden: np.ndarray) -> None:
        from cpu import head

        self._tails.scores(out, self._tail, hidden)
        head.spread(out, self._slots(hidden), self.slot)

    def _slots(self, hidden: np.ndarray) -> np.ndarray:
        """The log-probabilities of the slots of the head."""
        from cpu import scores

        found = np.empty((len(hidden), self.head + self.clusters), np.float32)
        scores.softmax(found, self._host, hidden)
        return found

    def parameters(self) -> dict[str, np.ndarray]:
        """The rows of the slots, `head`, and of the clusters, `tail`; what is kept beside either; slots and counts (V,)."""
        self.fetch()
        beside = {f"tail_{name}": array for name, array in sparse.beside(self._tail).items()}
        shape = {"slot": self.slot, "counts": self.counts}
        return {"head": self._host.rows, "tail": self._tail.rows} | sparse.beside(self._host) | beside | shape

    def describe(self) -> dict[str, Any]:
        """What `rebuild` needs: the sizes; which class is where is among the parameters."""
        names = ("head", "clusters", "tails", "tail_scale")
        return super().describe() | {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, Any]) -> None:
        """Take the slots and counts that were filled in; ValueError where they are none."""
        check.counts(self.counts)
        check_slots(self.slot, self.head, self.clusters)
        super().restore(state)
        self._prepare()


def make(
    counts: Any,
    width: int,
    options: Mapping[str, Any],
    *,
    batch: int,
    trunk: bool = True,
    backend: Any = None,
) -> HeadReadout:
    """From options of the command line; see hybrid/readout/__init__.py."""
    names = ("tails", "share", "rate", "seed")
    given = {name: options[name] for name in names} | sparse.readout_named(options)
    return HeadReadout(counts, width, batch=batch, backend=backend, **given)


def rebuild(classes: int, mode: str = "", **facts: Any) -> HeadReadout:
    """From describe(): with any slots of these sizes, until those of the checkpoint are filled in and restored.

    mode  told by checkpoints from when trees had another; it says nothing now
    """
    return HeadReadout(classes, **facts)


def least(classes: int, width: int, head: int, clusters: int, tails: str, **facts: Any) -> int:
    """How many numbers a checkpoint holds at least."""
    return sparse.numbers(head + clusters + TAILS[tails].rows_of(classes, head, clusters), width, **facts)
