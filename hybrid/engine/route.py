"""Routes: the stages of a micro-batch through the parts of a model, and the buffers they need."""

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

UPDATES = ("batch", "online")


@dataclass(frozen=True)
class Pipeline:
    """Settings of the flow of batches through an engine.

    micro_batches  parts of a batch, whose dense and sparse stages overlap; the readout is updated after every part
    overlap        True: dense and sparse stages run concurrently and share the threads; False: sequentially on all threads;
                   None: both are measured in the first steps and the faster is kept. Results are the same.
    update         "online": rows and readout are updated per example (per run of equal targets), not per batch, as in
                   word2vec; without a trunk, for a tree or negative sampling under plain SGD without biases. One thread
                   trains, another prepares batches
    route          returns the route of its batches (None: single-process); hybrid/mpi/engine.py has one for several processes

    Raises ValueError for numbers out of range, and for an unknown update.
    """

    micro_batches: int = 1
    overlap: bool | None = None
    update: str = "batch"
    route: Callable[["Engine"], "Route"] | None = None

    def __post_init__(self) -> None:
        check.whole("micro_batches", self.micro_batches, 1)
        check.choice("update", self.update, UPDATES)


@dataclass(frozen=True)
class Route:
    """The route of a batch: rows or feed inputs -> trunk -> readout, and back.

    trunk    None: the rows are the hidden vectors
    readout  None: a query; nothing is trained, and hidden vectors are copied to the host
    device   of the dense stages

    online   True if rows and readout are updated per example
    queues   names of additional host queues of its stages
    """

    embedding: Embedding | Inputs
    trunk: TrunkProtocol | None
    readout: Any
    device: Any

    online: ClassVar[bool] = False
    queues: ClassVar[tuple[str, ...]] = ()

    @property
    def several(self) -> bool:
        """True if examples may have several targets."""
        return bool(getattr(self.readout, "multi_target", False)) and not self.online

    def plan(self) -> Plan:
        """Returns all stages.

        A stage's `after` may name stages absent from this route, such as copies that are not needed. Parameters on the
        trunk's device are updated on the queue "dense", those of rows and readout on the host on "sparse".
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
        """Returns the stages up to the hidden vectors; they train nothing."""
        return self.embedding.begin(copy) + (self.trunk.begin(copy) if self.trunk else [])

    @property
    def crossing(self) -> tuple[str, ...]:
        """The slot arrays needed both on the host and on the device."""
        wanted = tuple(name for buffers in self._buffers for name in buffers.crossing)
        return wanted if self.readout else (*wanted, "hidden")

    def slot(
        self, rows: int, most_ids: int, scale: Callable[[int], float] = lambda tick: 1.0, targets: int | None = None
    ) -> Slot:
        """Returns the buffers that this route needs for up to `rows` examples.

        scale    tick -> schedule factor of all rates
        targets  maximum number of targets; None: one per example
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
        """Runs a checkpoint write; with several processes, one runs it and its errors are raised in all."""
        work()

    def read(self, work: Callable[[], object]) -> None:
        """Runs a checkpoint read; with several processes, it fails in all of them or in none."""
        work()


class OnlineRoute(Route):
    """A single stage, as in word2vec: reads, trains and writes back one example at a time."""

    online = True

    def plan(self) -> Plan:
        return Plan([], [Stage("learn", "sparse", self._learn)], [])

    def _learn(self, slot: Slot) -> None:
        embedding: Any = self.embedding
        inputs = embedding.inputs(slot.bag_at, slot.ids, slot.scale)
        self.readout.rate_scale = slot.scale
        slot.loss = self.readout.step_online(slot.grad, slot.hidden, inputs, slot.target, slot.weight)


def routed(engine: "Engine") -> Route:
    """Returns the route of a single-process engine; ValueError if its parts do not support its `update`."""
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
            f"{found} with this {getattr(engine.readout, 'kind', 'kind of')} readout, expected a tree with the mode "
            "'deterministic', or a sampled one with the loss 'logistic', on the CPU, with plain SGD and no biases; or 'batch'"
        )
    if not getattr(embedding, "rows", 0) or embedding.per_example != 1 or embedding.bags not in (None, "undivided"):
        raise ValueError(
            f"{found}, expected an embedding with one id per example, or with bags='undivided'; or 'batch'"
        )
    if engine.tied:
        raise ValueError("tied: found True with update='online', which reads rows as they are; leave it out")
