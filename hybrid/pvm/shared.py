"""A pipeline whose units are shared by ranks: each computes its own, and is told of the others' what it reads."""

from typing import Any, NamedTuple

import numpy as np

from .. import backend
from ..engine.schedule import Stage
from ..ranks.group import Group
from .config import Config
from .halo import Halo
from .joined import Joined
from .layout import TapeLayout, runs, tape_layout
from .pipeline import Pipeline
from .shares import divide
from .slot import FrameSlot, SlotSizes
from .wiring import Wiring


class Traffic(NamedTuple):
    """Numbers that a tick moves between ranks.

    sent, received  by this rank
    published       by all units: what would be received by each rank if it were told everything, but for its own
    """

    sent: int
    received: int
    published: int


class SharedPipeline(Pipeline):
    """The arrays of this rank's units, and the stages of a tick that all ranks go through together.

    A unit reads what others have published in the tick before. So first those units are computed that others read, and what
    they publish is under way while the rest is computed. After a tick all that own units read in the next one is there.
    Readouts are computed by every rank, of all hidden vectors.

    group   the ranks
    shares  who has which units
    """

    def __init__(
        self, config: Config, wiring: Wiring, device: backend.Backend, *, ranks: Group, cut: str, **settings: Any
    ):
        whole = tape_layout(wiring, config)
        self.group, self.shares = ranks, divide(wiring, whole, ranks.size, cut)
        super().__init__(config, wiring, device, part=(whole, self.shares.units[ranks.rank]), **settings)
        self._edge = self.shares.edge[ranks.rank]
        self._joins()
        world = self.state["world_0"]
        for work in (lambda: self.halo.collect(world), self.halo.leave, self.halo.start, self.halo.wait):
            self.inline.run(work)
        self.inline.run(self.halo.spread, world)

    def _joins(self) -> None:
        """What makes whole arrays of the parts of all ranks."""
        B, F, whole = self.streams, self.frame_size, self.whole
        H, parts = whole.world - F, len(self.prediction.index)
        units = self.shares.units
        hidden = [runs(whole.published_at[own] - F, whole.hidden[own]) for own in units]
        pixels = [np.flatnonzero(np.isin(self.prediction.unit, own)) for own in units]
        self._miss = Joined(self.group, units, self.dtype)
        self._hidden = Joined(self.group, [_in_rows(B, H, places) for places in hidden], self.dtype)
        self._pixels = Joined(self.group, [_in_rows(parts * B, F, places) for places in pixels], self.dtype)

    def _read_layout(self) -> TapeLayout:
        """The readouts read the hidden vectors of all units, one behind the other."""
        return self.whole._replace(hidden_at=self.whole.published_at - int(np.prod(self.wiring.frame)))

    def _place(self, weights: np.ndarray) -> None:
        super()._place(weights)
        device, own, B = self.backend.device, self.layout, self.streams
        self.halo = Halo(self.group, self.shares, self.whole, device, self.backend.pvm, B, self.dtype)
        self._published_at = device.from_host(runs(own.published_at, own.hidden).astype(np.int32))
        self._hidden_at = device.from_host(runs(own.hidden_at, own.hidden).astype(np.int32))
        self._own_hidden, self._all_hidden = (
            device.host_empty((B, size), self.dtype) for size in (int(own.hidden.sum()), int(self.whole.hidden.sum()))
        )
        self._own_hidden_dev, self._all_hidden_dev = map(device.mirror, (self._own_hidden, self._all_hidden))

    @property
    def traffic(self) -> Traffic:
        """Numbers that a tick moves between ranks."""
        return Traffic(self.halo.sent, self.halo.received, self.streams * int(self.whole.hidden.sum()))

    def _sizes(self) -> SlotSizes:
        own = len(self.units), len(self.prediction.place), int(self.layout.hidden.sum())
        return super()._sizes()._replace(own=own)

    def stages(self) -> list[Stage]:
        """The way of a frame; what waits for other ranks has a queue of its own, so that a GPU works meanwhile."""
        way = [
            Stage("frame in", "copy in", self._send),
            Stage("edge", "dense", self._begin, ("frame in",)),
            Stage("halo out", "copy out", self._halo_out, ("edge",)),
            Stage("send", "ranks", self._start, ("halo out",)),
            Stage("tick", "dense", self.tick, ("edge",)),
            Stage("home", "copy out", self._home, ("tick",)),
            Stage("arrive", "ranks", self._arrive, ("home",)),
            Stage("halo in", "dense", self._halo_in, ("arrive",)),
        ]
        if self.readouts:
            way += [
                Stage("readout", "dense", self._read, ("arrive",)),
                Stage("heat out", "copy out", self._heat_out, ("readout",)),
            ]
        return [self._repeated(stage) if stage.queue == "dense" else stage for stage in way]

    def queues(self) -> dict[str, Any]:
        """Those of one rank, and one that waits for others."""
        found = super().queues()
        if self.backend.device.threads:
            return found | dict.fromkeys(("copy out", "ranks"), self.inline)
        return found | {"ranks": backend.choose("cpu").device.queue("ranks", 1)}

    # What the stages do

    def _begin(self, slot: FrameSlot) -> None:
        """The units that others read."""
        self._show(slot)
        if self._edge:
            self._move(slot, 0, self._edge)
        self.halo.collect(self._next_world(slot))

    def _next_world(self, slot: FrameSlot) -> Any:
        return self.state[f"world_{(slot.tick + 1) % 2}"]

    def _halo_out(self, slot: FrameSlot) -> None:
        self.halo.leave()

    def _start(self, slot: FrameSlot) -> None:
        self.halo.start()

    def tick(self, slot: FrameSlot) -> None:
        """All other units; collect what is to be copied back."""
        if self._edge < len(self.units):
            self._move(slot, self._edge, len(self.units))
        if slot.complete:
            self._look(slot)
            self.backend.pvm.collect(slot.hidden_dev, self._next_world(slot), self._published_at)
        if self.readouts:
            self.backend.pvm.collect(self._own_hidden_dev, super()._read_tape(slot), self._hidden_at)

    def _home(self, slot: FrameSlot) -> None:
        copy = self.backend.device.copy
        copy(slot.own.miss, slot.miss_dev)
        if slot.complete:
            copy(slot.own.predicted, slot.predicted_dev)
            copy(slot.own.hidden, slot.hidden_dev)
        if self.readouts:
            copy(self._own_hidden, self._own_hidden_dev)

    def _arrive(self, slot: FrameSlot) -> None:
        """Wait for what others publish, and put together what is of all units."""
        self.halo.wait()
        self._miss.put(slot.miss, slot.own.miss)
        if slot.complete:
            self._pixels.put(slot.predicted, slot.own.predicted)
            self._hidden.put(slot.hidden, slot.own.hidden)
        if self.readouts:
            self._hidden.put(self._all_hidden, self._own_hidden)

    def _halo_in(self, slot: FrameSlot) -> None:
        self.halo.spread(self._next_world(slot))
        if self.readouts:
            self.backend.device.copy(self._all_hidden_dev, self._all_hidden)

    def _read_tape(self, slot: FrameSlot) -> Any:
        return self._all_hidden_dev

    def _heat_out(self, slot: FrameSlot) -> None:
        if slot.complete:
            self.backend.device.copy(slot.heat, slot.heat_dev)

    # Asking; all ranks ask at the same time

    def predicted(self, tick: int, places: list[np.ndarray]) -> np.ndarray:
        """What the units of all ranks predicted."""
        whole = np.zeros((len(places), self.streams, self.frame_size), self.dtype)
        return self._pixels.put(whole, super().predicted(tick, places))

    def weights_of(self, unit: int) -> dict[str, np.ndarray]:
        """The weights and velocities of one unit of any rank."""
        owner = next(rank for rank, units in enumerate(self.shares.units) if unit in units)
        size = int((self.whole.rows * (self.whole.columns + 1))[slice(*self.whole.layer_at[unit : unit + 2])].sum())
        names = ("weights", "velocity") if self.config.moves else ("weights",)
        mine = super().weights_of(unit) if owner == self.group.rank else {}
        found = {name: np.ascontiguousarray(mine[name]) if mine else np.empty(size, self.dtype) for name in names}
        for array in found.values():
            self.group.share(array, owner)
        return found


def _in_rows(rows: int, width: int, places: np.ndarray) -> np.ndarray:
    """These places of each row of an array (rows, width), flat."""
    flat: np.ndarray = (np.arange(rows)[:, None] * width + places).ravel()
    return flat
