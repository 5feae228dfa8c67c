"""The way of a micro-batch through a model: the stages of its parts, one after another, and the buffers they need."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from .. import check
from ..schedule.schedule import Buffers, Copies, Plan, Stage
from ..schedule.slot import Slot
from ..trunk import TrunkProtocol
from .embedding import Embedding, Inputs

if TYPE_CHECKING:
    from .engine import Engine

FEED = ("ids", "bag_at", "values")  # what the rows read, written by the feed
UPDATES = ("batch", "online")


@dataclass(frozen=True)
class Pipeline:
    """How batches go through an engine.

    micro_batches  parts a batch is cut into, so that dense and sparse stages of different parts overlap; the readout's
                   parameters move after every part
    delay          batches begun and not finished: 0 is exact, 1 overlaps more and learns on parameters a batch old
    overlap        True: dense and sparse stages at the same time, sharing the threads; False: one after another, each on
                   all threads; None: measure both in the first ticks and keep the faster. The numbers are the same.
    update         "online": rows and readout move with each example (a run of one target together) and not at the end of a
                   batch, as in word2vec; without a trunk, of a tree or negative sampling. One thread does it, while another one
                   makes the next batch
    route          makes the way of its batches (None: that of one process); hybrid/mpi/engine.py has one that several processes
                   share

    Raises ValueError for numbers out of range, and for an unknown update.
    """

    micro_batches: int = 1
    delay: int = 0
    overlap: bool | None = None
    update: str = "batch"
    route: Callable[["Engine"], "Route"] | None = None

    def __post_init__(self) -> None:
        check.whole("micro_batches", self.micro_batches, 1)
        check.whole("delay", self.delay, 0, 1)
        check.choice("update", self.update, UPDATES)


@dataclass(frozen=True)
class Route:
    """Rows, or what the feed gives, -> trunk -> readout and back.

    trunk    None: the rows are the hidden vectors
    readout  None: nothing learns, and the hidden vectors are copied to the host for a question
    device   of the dense stages

    online   whether rows and readout move with each example
    queues   names of queues of the host that its stages have beside those of every engine
    """

    embedding: Embedding | Inputs
    trunk: TrunkProtocol | None
    readout: Any
    device: Any

    online: ClassVar[bool] = False
    queues: ClassVar[tuple[str, ...]] = ()

    @property
    def several(self) -> bool:
        """Whether examples may have several targets."""
        return bool(getattr(self.readout, "multi_target", False)) and not self.online

    def plan(self) -> Plan:
        """All stages.

        A stage may name others, as those that it comes after, which this route does not have: an array that is not copied
        has no copy to wait for. Parameters on the trunk's device move on the queue "dense", those of rows and a readout on
        the host on "sparse".
        """
        copy, ready = self.copies, self.readout.ready
        finish: list[Stage] = self.readout.finish(copy)
        update: list[Stage] = []
        if self.trunk:
            finish, update = finish + self.trunk.finish(copy, ready), self.trunk.update()
            ready = self.trunk.ready
        last = [*self.readout.last(copy), *self.embedding.last(copy, ready)]
        return Plan(self.begin(copy), finish + last, update)

    def begin(self, copy: Copies) -> list[Stage]:
        """The stages up to the hidden vectors; nothing learns in them."""
        return self.embedding.begin(copy) + (self.trunk.begin(copy) if self.trunk else [])

    @property
    def begun(self) -> tuple[str, ...]:
        """The arrays that the begin stages write; the last holds the hidden vectors."""
        return tuple(name for buffers in self._buffers for name in buffers.begun)

    @property
    def fed(self) -> tuple[str, ...]:
        """What the feed wrote and the begin stages copy to the device."""
        return tuple(name for name in (("x",) if self.embedding.dense else FEED) if name in self.crossing)

    @property
    def crossing(self) -> tuple[str, ...]:
        """The arrays of a slot that are needed both on the host and on the device."""
        wanted = tuple(name for buffers in self._buffers for name in buffers.crossing)
        return wanted if self.readout else (*wanted, "hidden")

    def slot(
        self, rows: int, most_ids: int, scale: Callable[[int], float] = lambda tick: 1.0, targets: int | None = None
    ) -> Slot:
        """The buffers of up to `rows` examples: those that this route needs, and no others.

        scale    tick -> schedule factor of all rates
        targets  most targets of them; None: one an example
        """
        make = functools.partial(
            Slot,
            rows,
            most_ids if self.embedding.bags else rows * self.embedding.per_example,
            device=self.device,
            bags=self.embedding.bags is not None,
            scale=scale,
            targets=targets,
            learns=self.readout is not None,
            unlabelled=getattr(self.readout, "counts_unlabelled", False),
        )
        if self.trunk is None:
            width = self.embedding.outputs
            return make({"x": width, "grad": width}, same={"hidden": "x", "x_grad": "grad"})
        widths = {name: width for buffers in self._buffers for name, width in buffers.widths.items()}
        if self.embedding.dense:
            for name in getattr(self.trunk, "spares", ()):
                widths.pop(name)
        return make(widths, crossing=self.crossing)

    @property
    def copies(self) -> Copies:
        """The stages that copy arrays between host and device."""
        return Copies(self.device, self.crossing)

    @property
    def _buffers(self) -> list[Buffers]:
        return [part.buffers() for part in (self.embedding, self.trunk, self.readout) if part]

    def write(self, work: Callable[[], object]) -> None:
        """Do what writes a checkpoint: where processes share a route, one of them does, and what it raises is raised in all."""
        work()

    def read(self, work: Callable[[], object]) -> None:
        """Do what reads a checkpoint: where processes share a route, it fails in all of them or in none."""
        work()


class OnlineRoute(Route):
    """One stage, as in word2vec: examples are read, learned from and written back one after another."""

    online = True

    def plan(self) -> Plan:
        """One stage."""
        return Plan([], [Stage("learn", "sparse", self._learn)], [])

    def _learn(self, slot: Slot) -> None:
        embedding: Any = self.embedding
        inputs = embedding.inputs(slot.bag_at, slot.ids, slot.scale)
        self.readout.rate_scale = slot.scale
        slot.loss = self.readout.step_online(slot.grad, slot.hidden, inputs, slot.target, slot.weight)


def routed(engine: "Engine") -> Route:
    """The way of a batch through an engine of one process; ValueError where its parts cannot learn as `update` says."""
    parts = engine.embedding, engine.trunk, engine.readout, engine.dense.device
    if engine.update == "batch":
        return Route(*parts)
    _check_online(engine)
    return OnlineRoute(*parts)


def _check_online(engine: "Engine") -> None:
    embedding, found = engine.embedding, "update: found 'online'"
    if engine.trunk is not None:
        raise ValueError(f"{found} with a trunk, expected 'batch': a trunk learns from batches")
    if not getattr(engine.readout, "online", False):
        raise ValueError(
            f"{found} with this {getattr(engine.readout, 'kind', 'kind of')} readout, expected a tree that is not split, or a "
            "sampled one with the loss 'logistic'; or 'batch'"
        )
    if not getattr(embedding, "rows", 0) or embedding.per_example != 1 or embedding.bags not in (None, "undivided"):
        raise ValueError(
            f"{found}, expected an embedding with one id an example, or with bags='undivided', as word2vec has; or 'batch'"
        )
    for name, value in (("delay", engine.delay), ("tied", engine.tied)):
        if value:
            raise ValueError(
                f"{name}: found {value} with update='online', which reads rows as they stand; leave it out"
            )
