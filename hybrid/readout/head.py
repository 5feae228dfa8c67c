"""A dense softmax over the most frequent classes and clusters of the others, and a softmax in each cluster."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from .. import check, sparse
from ..schedule.guards import Held
from ..schedule.schedule import Buffers, Copies, Stage
from ..schedule.slot import Slot
from ..settings import number, option
from .base import Base, Common, Place, arguments, described

# The slot of a class in the head: each of H slots has a single class, each of K others a cluster.


def class_map(counts: np.ndarray, parts: "HeadParts") -> tuple[np.ndarray, int, int]:
    """Returns the slot of each class, (V,) int32, H and K.

    The H most frequent classes have the slots 0 to H - 1, in ascending order; ties go to the lower class.
    """
    head, clusters = _sizes(counts, parts.head, parts.clusters, parts.share)
    by_count = np.argsort(-counts, kind="stable")
    slot = np.empty(counts.size, np.int32)
    slot[np.sort(by_count[:head])] = np.arange(head)
    slot[by_count[head:]] = head + np.arange(counts.size - head) * clusters // max(counts.size - head, 1)
    return slot, head, clusters


def _sizes(counts: np.ndarray, head: Any, clusters: Any, share: float) -> tuple[int, int]:
    from cpu.head import choose

    if not 0 < check.number("share", share, 0) <= 1:
        raise ValueError(f"share: found {share}, expected a share of a full softmax's time, above 0 and up to 1")
    classes = counts.size
    if head is not None:
        check.whole("head", head, 0, classes)
    if clusters is not None:
        most = classes - (head or 0)
        check.whole("clusters", clusters, min(most, 1) if head is not None else 0, most)
    return choose(counts, share, head, clusters)


def check_class_map(slot: np.ndarray, head: int, clusters: int) -> None:
    """Raises ValueError unless the first H slots have one class each, ascending, and each of K others at least one."""
    fits = slot.min() >= 0 and slot.max() < head + clusters
    met = np.bincount(slot, minlength=head + clusters) if fits else np.zeros(1)
    rising = fits and (np.diff(slot[slot < head]) > 0).all()
    if not (rising and (met[:head] == 1).all() and (met[head:] > 0).all()):
        raise ValueError(
            f"slot: found invalid slots, expected 0 to {head - 1} once each in rising order, and {head} to "
            f"{head + clusters - 1}, no cluster without a class"
        )


MET = 1e-3  # minimum count of a class, so that none has a weight of 0


@dataclass(frozen=True)
class Options:
    """The options of `--readout head`."""

    share: float = option(0.1, "head readout: target time of a step, as a share of a full softmax's", type=number)


@dataclass(frozen=True)
class HeadParts:
    """The partition of the classes into the head and clusters.

    head     H; None: chosen
    clusters K, bands of classes of similar frequency, until begin_with clusters similar classes; None: chosen
    share    unspecified sizes give a step about this fraction of a full softmax's cost, see cpu/head.py
    seed     of clusters of similar classes
    """

    head: int | None = None
    clusters: int | None = None
    share: float = 0.1
    seed: int = 0


class HeadReadout(Base):
    """A class-based softmax, p(v | h) = p(slot of v | h) p(v | its cluster, h), each factor a softmax. With few clusters of
    similar frequency it is the adaptive softmax, without its projections.

    A slot of the head belongs to one of the H most frequent classes, or to one of K clusters, which have all others. Under a
    backend with a GPU the head is there, and the clusters stay on the CPU. Each adds its part to loss and gradient: in a tick
    these are two stages, "readout" for the clusters and then "top" for the head.

    counts   class counts, or the number of classes
    width    numbers of a hidden vector
    parts    HeadParts(head=100, clusters=50), ...; None: sizes are chosen
    batch    maximum rows per step
    backend  the device of the head
    optimiser, biases  of the rows of both, as in a FullReadout: the head learns on the loss summed over a batch, too

    Rows start at 0. `best` is exact. Raises ValueError for sizes that do not fit the classes, and for empty clusters.

    Goodman 2001, "Classes for fast maximum entropy training"; Grave et al. 2017, arXiv:1609.04309.
    """

    kind = "head"
    places: tuple[str, ...] = ("cpu", "cuda")
    ready = ("readout", "grad in", "top")
    searches_on_host = True
    on_host = True

    def __init__(
        self,
        counts: Any,
        width: int,
        *,
        parts: HeadParts | None = None,
        **common: Unpack[Common],
    ):
        from cpu.runtime import memory

        own = parts or HeadParts()
        super().__init__(counts, width, seed=own.seed, **common)
        if self.counts is None:
            self.counts = np.ones(self.classes)
        self.slot, self.head, self.clusters = class_map(self.counts, own)
        self._keep(memory.zeros((self.head + self.clusters, self.width), np.float32))
        below = memory.zeros((self.classes - self.head, self.width), np.float32)
        self._tail = sparse.kept(below, self.optimiser, self.biased)
        self._top_place, self._top_loss = Place(self.backend.device), np.empty(self.batch, np.float32)
        self._prepare()

    def _prepare(self) -> None:
        """Sets the attributes derived from slots, again after a checkpoint has filled them."""
        from cpu.output import cluster_softmax

        cluster = np.where(self.slot < self.head, -1, self.slot - self.head).astype(np.int32)
        self._plan = cluster_softmax.plan(cluster)
        self._alone = np.flatnonzero(cluster < 0).astype(np.int32)
        self._tail_work = cluster_softmax.workspace(self.batch, self.width, self._plan, np.float32)
        self._top_place.do(self._make_room)

    def _make_room(self) -> None:
        self._slot = self.backend.device.from_host(self.slot)
        self._work = self.backend.head.workspace(self.batch, self.width, np.float32)

    def begin_with(self, vectors: np.ndarray) -> None:
        """Clusters similar classes by vectors (V, D) float32, and initialises all rows from these; see Readout."""
        from cpu import head
        from cpu.tree import clusters as alike

        self._check_vectors(vectors)
        alone = self.slot < self.head
        with Held(), self.alone:
            if self.clusters:
                self.slot[~alone] = self.head + alike.equal(vectors[~alone], self.clusters, seed=self.seed)
            self._prepare()
            self._host.rows[self.slot[alone]] = vectors[alone]
            head.begin(self._host, self._tail, self.head, vectors, self._plan, np.maximum(self.counts, MET))
            self.send()

    def buffers(self) -> Buffers:
        """Returns all buffers if the head is on the trunk's GPU: the clusters read hidden vectors on the host."""
        return Buffers({}, ("hidden", "grad", "target", "weight", "losses")) if self.beside else super().buffers()

    def finish(self, copy: Copies) -> list[Stage]:
        """Returns the stage of the clusters on the CPU, then that of the head on the trunk's GPU."""
        if not self.beside:
            return super().finish(copy)
        tail = functools.partial(self.step_slot, learn=self._learn_tail)
        return [
            *copy("target in"),
            Stage("readout", "sparse", tail, ("forward", "hidden out")),
            *copy("grad in", "readout"),
            Stage("top", "dense", self._step_top, ("forward", "target in", "grad in")),
            *copy("losses out", "top"),
        ]

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """Learns as in Readout, but with NumPy's arrays, and waits: the clusters are on the CPU wherever the head is."""
        self._learn_tail(grad, loss, hidden, target, weight)
        top = self._top_loss[: len(loss)]
        written, read = {"grad": grad, "top loss": top}, {"grad": grad, "hidden": hidden, "target": target}
        read |= {} if weight is None else {"weight": weight}
        self._top_place.call(lambda _, loss, *arrays: self._learn_top(arrays[0], loss, *arrays[1:]), written, read)
        loss += top

    def _learn_tail(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """Writes the clusters' part of grad and loss; NumPy's arrays."""
        from cpu.output import cluster_softmax

        given = self._learns(self._tail), self._tail_work, self._plan, hidden, target, weight, self._step_rate
        cluster_softmax.step(grad, loss, *given)

    def _learn_top(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """Adds the head's part to grad, writes that of loss; arrays of the device, in the work of a queue."""
        given = self._learns(self._there), self._work, self._slot, hidden, target, weight, self._step_rate
        self.backend.head.step(grad, loss, *given)

    def _step_top(self, slot: Slot) -> None:
        self.rate_scale = slot.scale
        self._learn_top(slot.grad_dev, slot.losses_dev, slot.hidden_dev, slot.target_dev, slot.weight_dev)

    def _judge(self, slot: Slot) -> None:
        slot.loss = check.loss(slot.losses) + slot.loss

    def _log_prob(self, out: np.ndarray, hidden: np.ndarray, target: np.ndarray) -> None:
        from cpu.output import cluster_softmax

        cluster_softmax.log_prob(out, self._tail, self._tail_work, self._plan, hidden, target)
        top = self._top_loss[: len(out)]
        self._top_place.call(self._top_log_prob, {"top loss": top}, {"hidden": hidden, "target": target})
        out += top

    def _top_log_prob(self, out: Any, hidden: Any, target: Any) -> None:
        self.backend.head.log_prob(out, self._there, self._work, self._slot, hidden, target)

    def _best_without(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: Any) -> None:
        from cpu.output import cluster_softmax, topk

        given = self._plan, self._slots(hidden), self._alone, hidden, left_out or topk.none_excluded(len(hidden))
        cluster_softmax.best(ids, log_probs, self._tail, *given)

    def _scores(self, out: np.ndarray, hidden: np.ndarray) -> None:
        from cpu import head
        from cpu.output import cluster_softmax

        cluster_softmax.scores(out, self._tail, self._plan, hidden)
        head.spread(out, self._slots(hidden), self.slot)

    def _slots(self, hidden: np.ndarray) -> np.ndarray:
        """Returns the log-probabilities of the slots of the head."""
        from cpu.output import scores

        slots = np.empty((len(hidden), self.head + self.clusters), np.float32)
        scores.softmax(slots, self._host, hidden)
        return slots

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the rows of the slots, `head`, and of the clusters, `tail`; their optimiser state; slots and counts (V,)."""
        self.fetch()
        beside = {f"tail_{name}": array for name, array in sparse.beside(self._tail).items()}
        shape = {"slot": self.slot, "counts": self.counts}
        return {"head": self._host.rows, "tail": self._tail.rows} | sparse.beside(self._host) | beside | shape

    def describe(self) -> dict[str, Any]:
        """Returns the sizes that `rebuild` needs; the slots are among the parameters."""
        return super().describe() | {"head": self.head, "clusters": self.clusters}

    def restore(self, state: dict[str, Any]) -> None:
        check.counts(self.counts)
        check_class_map(self.slot, self.head, self.clusters)
        super().restore(state)
        self._prepare()


def make(counts: Any, width: int, options: Mapping[str, Any], *, trunk: bool, **sizes: Any) -> HeadReadout:
    """Returns the readout from options of the command line; see hybrid/readout/__init__.py."""
    own = arguments(options, Options)
    parts = HeadParts(share=own.pop("share"), seed=options["seed"])
    return HeadReadout(counts, width, parts=parts, **sizes, **own)


def rebuild(classes: int, head: int, clusters: int, seed: int = 0, **facts: Any) -> HeadReadout:
    """Returns the readout from describe(): with any slots of these sizes, until those of a checkpoint are restored."""
    return HeadReadout(classes, parts=HeadParts(head, clusters, seed=seed), **described(facts))


def least(classes: int, width: int, head: int, clusters: int, **facts: Any) -> int:
    """Returns the minimum number of values in a checkpoint."""
    return sparse.numbers(clusters + classes, width, **facts)
