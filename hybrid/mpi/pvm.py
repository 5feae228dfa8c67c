"""A pipeline whose units are shared by ranks: each computes its own, and receives of the others' what it reads.

Ranks hold the weights of their own units, so what a unit costs is its parameters. What units publish for units of other ranks
is sent at each tick, so units that read each other should be of one rank: the frame, and with it all layers above, is cut into
blocks of equal cost (recursive coordinate bisection, Berger and Bokhari 1987, IEEE Transactions on Computers 36).
"""

import functools
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import backend
from ..pvm.config import Config
from ..pvm.layout import TapeLayout, runs, tape_layout, weights_at
from ..pvm.pipeline import Pipeline
from ..pvm.slot import FrameSlot, SlotSizes
from ..pvm.wiring import Wiring
from ..schedule.schedule import Stage
from ..storage import checkpoint, safetensors
from ..storage.safetensors import Pieced, Runs
from .group import Group

PIECE = 1 << 22  # numbers of a piece of a checkpoint
STOP = -1  # no piece


class Ranks:
    """The ranks of a group that share the units of a model: what `PVM` takes as `ranks`.

    group  None: all ranks of this run
    size   how many there are
    """

    def __init__(self, group: Group | None = None) -> None:
        self.group = group or Group()
        self.size = self.group.size

    def pipeline(self, config: Config, wiring: Wiring, device: backend.Backend, **settings: Any) -> Pipeline:
        """The pipeline of this rank's units; arguments as of `Pipeline`."""
        if self.size == 1:
            return Pipeline(config, wiring, device, **settings)
        return SharedPipeline(config, wiring, device, group=self.group, **settings)


class SharedPipeline(Pipeline):
    """The arrays of this rank's units, and the stages of a tick that all ranks go through together.

    A unit reads what others have published in the tick before. So first those units are computed that others read, and what
    they publish is under way while the rest is computed. After a tick all that own units read in the next one is there.
    Readouts are computed by every rank, of all hidden vectors.

    group   the ranks
    shares  which rank has which units
    """

    def __init__(self, config: Config, wiring: Wiring, device: backend.Backend, *, group: Group, **settings: Any):
        whole = tape_layout(wiring, config)
        self.group, self.shares = group, divide(wiring, whole, group.size)
        super().__init__(config, wiring, device, part=(whole, self.shares.units[group.rank]), **settings)
        self._edge = self.shares.edge[group.rank]
        # What makes whole arrays of the parts of all ranks.
        B, F = self.streams, self.frame_size
        H, parts = whole.world - F, len(self.prediction.index)
        units = self.shares.units
        hidden = [runs(whole.published_at[own] - F, whole.hidden[own]) for own in units]
        pixels = [np.flatnonzero(np.isin(self.prediction.unit, own)) for own in units]
        self._miss = Joined(self.group, units, self.dtype)
        self._hidden = Joined(self.group, [_in_rows(B, H, places) for places in hidden], self.dtype)
        self._pixels = Joined(self.group, [_in_rows(parts * B, F, places) for places in pixels], self.dtype)
        world = self.state["world_0"]
        for work in (lambda: self.halo.collect(world), self.halo.leave, self.halo.start, self.halo.wait):
            self.inline.run(work)
        self.inline.run(self.halo.spread, world)

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

    def _sizes(self) -> SlotSizes:
        own = len(self.units), len(self.prediction.place), int(self.layout.hidden.sum())
        return super()._sizes()._replace(own=own)

    def stages(self) -> list[Stage]:
        """The way of a frame; what waits for other ranks has a queue of its own, so that a GPU works meanwhile."""
        way = [
            Stage("frame in", "copy in", self._send),
            Stage("edge", "dense", self._begin, ("frame in",)),
            Stage("halo out", "copy out", lambda slot: self.halo.leave(), ("edge",)),
            Stage("send", "ranks", lambda slot: self.halo.start(), ("halo out",)),
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
        queues = super().queues()
        if self.backend.device.threads:
            return queues | dict.fromkeys(("copy out", "ranks"), self.inline)
        return queues | {"ranks": backend.choose("cpu").device.queue("ranks", 1)}

    # What the stages do

    def _begin(self, slot: FrameSlot) -> None:
        """The units that others read."""
        self._show(slot)
        if self._edge:
            self._move(slot, 0, self._edge)
        self.halo.collect(self._next_world(slot))

    def _next_world(self, slot: FrameSlot) -> Any:
        return self.state[f"world_{(slot.tick + 1) % 2}"]

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
        for name in slot.own if slot.complete else ("miss",):
            self.backend.device.copy(slot.own[name], getattr(slot, f"{name}_dev"))
        if self.readouts:
            self.backend.device.copy(self._own_hidden, self._own_hidden_dev)

    def _arrive(self, slot: FrameSlot) -> None:
        """Wait for what others publish, and put together what is of all units."""
        self.halo.wait()
        self._miss.put(slot.miss, slot.own["miss"])
        if slot.complete:
            self._pixels.put(slot.predicted, slot.own["predicted"])
            self._hidden.put(slot.hidden, slot.own["hidden"])
        if self.readouts:
            self._hidden.put(self._all_hidden, self._own_hidden)

    def _halo_in(self, slot: FrameSlot) -> None:
        self.halo.spread(self._next_world(slot))
        if self.readouts:
            self.backend.device.copy(self._all_hidden_dev, self._all_hidden)

    def _heat_out(self, slot: FrameSlot) -> None:
        if slot.complete:
            self.backend.device.copy(slot.heat, slot.heat_dev)

    def _read_tape(self, slot: FrameSlot) -> Any:
        return self._all_hidden_dev

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
        arrays = {name: np.ascontiguousarray(mine[name]) if mine else np.empty(size, self.dtype) for name in names}
        for array in arrays.values():
            self.group.share(array, owner)
        return arrays

    def save(self, folder: str | Path, facts: dict[str, Any], tick: int) -> None:
        """Write one checkpoint, on rank 0; what one rank raises, all raise."""
        with self.group.together():
            self._finite(tick)
        Parts(self).save(folder, facts)

    def restore(self, folder: str | Path) -> None:
        """Take the arrays of this rank's units out of a checkpoint."""
        Parts(self).load(folder)


def _in_rows(rows: int, width: int, places: np.ndarray) -> np.ndarray:
    """These places of each row of an array (rows, width), flat."""
    flat: np.ndarray = (np.arange(rows)[:, None] * width + places).ravel()
    return flat


class Joined:
    """One kind of array, again and again.

    places  of each rank: where its numbers belong in the whole array, flat
    """

    def __init__(self, group: Group, places: Sequence[np.ndarray], dtype: np.dtype):
        self._group, self._counts = group, [len(one) for one in places]
        self._places = np.concatenate(places)
        self._all = np.zeros(len(self._places), dtype)
        first = sum(self._counts[: group.rank])
        self._own = self._all[first : first + self._counts[group.rank]]

    def put(self, whole: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Write the parts of all ranks to an array, and return it; all ranks do it at the same time.

        own  what this rank has, in the order of its places
        """
        self._own[:] = own.reshape(-1)
        self._group.join(self._all, self._counts)
        whole.reshape(-1)[self._places] = self._all
        return whole


class Shares(NamedTuple):
    """U units on R ranks.

    units  R x (u,) the units of each rank, in the order in which it has them: first those that others read, then the rest
    edge   (R,) how many others read
    reads  by (rank, other): the ascending units of the other rank that the rank reads; pairs without any are left out
    """

    units: list[np.ndarray]
    edge: list[int]
    reads: dict[tuple[int, int], np.ndarray]


def divide(wiring: Wiring, layout: TapeLayout, ranks: int) -> Shares:
    """The shares of so many ranks; ValueError for more ranks than units.

    layout  of all units
    """
    count = len(wiring.hidden)
    if ranks > count:
        raise ValueError(f"ranks: found {ranks} for a model of {count} units, expected at most {count}; start fewer")
    cost = np.diff(weights_at(layout))
    owner = np.empty(count, np.int64)
    # The middle of each unit over the frame, in pixels: layers lie over each other.
    grids, frame = np.array(wiring.grids)[wiring.layer], np.array(wiring.frame[:2])
    places = (np.stack([wiring.row, wiring.column], axis=1) + 0.5) / grids * frame
    _bisect(owner, np.arange(count), places, cost, 0, ranks)
    return _shares(wiring, owner, ranks)


def _bisect(owner: np.ndarray, units: np.ndarray, places: np.ndarray, cost: np.ndarray, first: int, ranks: int) -> None:
    """Give units to the ranks from `first` on: cut across the longer side, and each half again for half of the ranks."""
    if ranks == 1:
        owner[units] = first
        return
    own = places[units]
    side = int(np.ptp(own, axis=0).argmax())
    units = units[np.lexsort((units, own[:, 1 - side], own[:, side]))]
    part, ends = ranks // 2, np.cumsum(cost[units])
    at = int(np.searchsorted(ends - cost[units] / 2, ends[-1] * part / ranks))
    at = min(max(at, part), len(units) - (ranks - part))  # each rank has at least one unit
    _bisect(owner, units[:at], places, cost, first, part)
    _bisect(owner, units[at:], places, cost, first + part, ranks - part)


def _shares(wiring: Wiring, owner: np.ndarray, ranks: int) -> Shares:
    count = len(owner)
    reader = np.repeat(np.arange(count), [len(a) + len(b) for a, b in zip(wiring.signal, wiring.context, strict=True)])
    seen = zip(wiring.signal, wiring.context, strict=True)
    source = np.concatenate([ids for pair in seen for ids in pair])
    apart = owner[reader] != owner[source]
    read = np.unique(owner[reader[apart]] * count + source[apart])  # a rank, and a unit that it reads
    rank, unit = np.divmod(read, count)
    outside = np.zeros(count, bool)
    outside[unit] = True
    units = [np.flatnonzero(owner == one) for one in range(ranks)]
    order = np.lexsort((unit, owner[unit], rank))
    pairs = np.stack([rank, owner[unit]], axis=1)[order]
    first = np.flatnonzero((np.diff(pairs, axis=0, prepend=-1) != 0).any(axis=1))  # of each pair
    ends = pairwise([*first.tolist(), len(order)])
    reads = {
        (one, other): unit[order[slice(*span)]] for (one, other), span in zip(pairs[first].tolist(), ends, strict=True)
    }
    return Shares(
        units=[np.concatenate([own[outside[own]], own[~outside[own]]]) for own in units],
        edge=[int(outside[own].sum()) for own in units],
        reads=reads,
    )


class Halo:
    """The numbers of the world that this rank sends to each other one and receives from it, of all streams.

    They are collected from a world and spread over it by one launch each. In between they lie in two arrays of the host, what
    goes to one rank, or comes from one, side by side; a device has mirrors of them.
    """

    def __init__(
        self, group: Group, shares: Shares, layout: TapeLayout, device: Any, kernels: Any, streams: int, dtype: Any
    ):
        """To be called within the work of a queue.

        layout   of all units
        kernels  `Pvm`, see hybrid/contract
        """
        self._copy, self._kernels = device.copy, kernels
        # by the other rank; both sides have the places of the one that publishes in ascending order, stream by stream
        going = {other: units for (other, one), units in shares.reads.items() if one == group.rank}
        coming = {other: units for (one, other), units in shares.reads.items() if one == group.rank}
        self._going, self._going_dev, self._from, send = _side(going, layout, device, streams, dtype)
        self._coming, self._coming_dev, self._to, receive = _side(coming, layout, device, streams, dtype)
        self._exchange = group.exchange(send, receive)

    def collect(self, world: Any) -> None:
        """Take what others read from a world (B, W); within the work of a queue."""
        self._kernels.collect(self._going_dev, world.reshape(1, -1), self._from)

    def leave(self) -> None:
        """Copy it to the host; within the work of a queue."""
        self._copy(self._going, self._going_dev)

    def start(self) -> None:
        """Begin to send what is on the host, and to receive."""
        self._exchange.start()

    def wait(self) -> None:
        """Wait until all has come that others send, and all that they read has gone."""
        self._exchange.wait()

    def spread(self, world: Any) -> None:
        """Write what has come to its places in a world (B, W); within the work of a queue."""
        self._copy(self._coming_dev, self._coming)
        self._kernels.spread(world.reshape(1, -1), self._coming_dev, self._to)


def _side(
    units: dict[int, np.ndarray], layout: TapeLayout, device: Any, streams: int, dtype: Any
) -> tuple[np.ndarray, Any, Any, dict[int, np.ndarray]]:
    """For what goes, or comes: room on the host and its mirror, (1, N), the places in a flat world, and the room by rank."""
    firsts = np.arange(streams)[:, None] * layout.world
    places = {
        rank: (firsts + runs(layout.published_at[one], layout.hidden[one])).ravel() for rank, one in units.items()
    }
    host = device.host_empty((1, sum(place.size for place in places.values())), dtype)
    ends = np.cumsum([place.size for place in places.values()])
    by_rank = dict(zip(places, np.split(host[0], ends[:-1]) if places else [], strict=True))
    index = np.concatenate([*places.values(), np.zeros(0, np.int64)]).astype(np.int32)
    return host, device.mirror(host), device.from_host(index), by_rank


class Part(NamedTuple):
    """An array of all units, flat, as parts in its order.

    shape      of the whole
    at, sizes  (P,) where the parts begin, and how many numbers they have
    owner      (P,) the rank that has each; rank 0 what all have
    own_at     (P,) where this rank has those that are its own
    """

    shape: tuple[int, ...]
    at: np.ndarray
    sizes: np.ndarray
    owner: np.ndarray
    own_at: np.ndarray


class Parts:
    """The arrays of this rank, and where they belong in those of all units.

    In a checkpoint an array has the units in the order of their numbers, so a model goes on on any number of ranks. Rank 0
    writes. It asks all ranks for one piece after another, so it needs room for a piece more than it has.
    """

    def __init__(self, pipeline: SharedPipeline):
        self._group, self._arrays, self._put = pipeline.group, pipeline.fetch(), pipeline.put
        self._pipeline, self._owner = pipeline, np.zeros(len(pipeline.wiring.hidden), np.int64)
        for rank, units in enumerate(pipeline.shares.units):
            self._owner[units] = rank
        self._parts = {name: self._places(name, array) for name, array in self._arrays.items()}
        self._written = {
            name: Pieced(array.dtype, self._parts[name].shape, functools.partial(self._whole, name))
            for name, array in self._arrays.items()
        }
        self._forms = safetensors.forms(self._written)
        self._pieces = [
            (name, first, min(first + PIECE, int(np.prod(parts.shape))))
            for name, parts in self._parts.items()
            for first in range(0, int(np.prod(parts.shape)), PIECE)
        ]

    def save(self, folder: str | Path, facts: dict[str, Any]) -> None:
        """Write one checkpoint, as `checkpoint.save` does; what rank 0 raises, all raise."""
        with self._group.together():
            if self._group.rank:
                while (asked := self._asked()) != STOP:
                    self._collect(asked)
                return
            try:
                checkpoint.save(folder, self._written, facts)
            finally:
                self._asked(STOP)

    def load(self, folder: str | Path) -> None:
        """Read the arrays of this rank out of a checkpoint, which rank 0 verifies for all; see `checkpoint.load_into`."""
        with self._group.together():
            if self._group.rank == 0:
                checkpoint.verify(folder, self._forms)
        with self._group.together():
            checkpoint.load_runs(folder, {name: self._runs(name) for name in self._arrays})
        self._put(self._arrays)

    def _runs(self, name: str) -> Runs:
        """What this rank reads of an array: its own parts; or all of one that it has whole."""
        array, parts = self._arrays[name], self._parts[name]
        own = np.flatnonzero((array.shape == parts.shape) | (parts.owner == self._group.rank))
        return Runs(array.reshape(-1), parts.at[own], parts.own_at[own], parts.sizes[own])

    def _whole(self, name: str) -> Iterator[np.ndarray]:
        """An array of all units, piece by piece, on rank 0; the others are in `_collect` meanwhile."""
        for number, (of, *_) in enumerate(self._pieces):
            if of == name:
                self._asked(number)
                yield self._collect(number)

    def _asked(self, number: int = STOP) -> int:
        """The piece that rank 0 asks for."""
        said = np.array([number])
        self._group.share(said)
        return int(said[0])

    def _collect(self, number: int) -> np.ndarray:
        """On rank 0 a piece, on others nothing: what they have of it has gone to rank 0."""
        name, first, last = self._pieces[number]
        parts, group = self._parts[name], self._group
        begin, end = np.maximum(parts.at, first), np.minimum(parts.at + parts.sizes, last)
        sizes = np.maximum(end - begin, 0)
        dtype = self._arrays[name].dtype
        mine = parts.owner == group.rank
        own: np.ndarray = self._arrays[name].reshape(-1)[runs((parts.own_at + begin - parts.at)[mine], sizes[mine])]
        if group.rank:
            group.exchange({0: own}, {}).run()
            return own[:0]
        whole: np.ndarray = np.empty(last - first, dtype)
        came = {rank: np.empty(int(sizes[parts.owner == rank].sum()), dtype) for rank in group.others}
        group.exchange({}, came).run()
        for rank, numbers in (came | {0: own}).items():
            theirs = parts.owner == rank
            whole[runs(begin[theirs] - first, sizes[theirs])] = numbers
        return whole

    def _places(self, name: str, array: np.ndarray) -> Part:
        """Where the parts of an array of this name are; array: anybody's, for its rows."""
        whole, own = self._pipeline.whole, self._pipeline.layout
        if name in ("weights", "velocity"):
            at, own_at = weights_at(whole), weights_at(own)
        elif "tape" in name:
            at, own_at = whole.tape_at, own.tape_at
        elif "signals" in name or (name == "integral" and array.size):
            at, own_at = whole.signal_at, own.signal_at
        elif name in ("world_0", "world_1", "low", "high"):  # all ranks have all of them, and own ones are right
            at = np.concatenate([[0], whole.published_at, [whole.world]])
            return _in_each_row(array.shape[:1], at, np.concatenate([[0], self._owner]), at)
        else:  # what all ranks have
            at = np.array([0, array.size])
            return _in_each_row((), at, np.zeros(1, np.int64), at)._replace(shape=array.shape)
        begin = np.zeros(len(at), np.int64)
        begin[self._pipeline.units], begin[-1] = own_at[:-1], own_at[-1]
        return _in_each_row(array.shape[: array.ndim - 1], at, self._owner, begin)


def _in_each_row(rows: tuple[int, ...], at: np.ndarray, owner: np.ndarray, own_at: np.ndarray) -> Part:
    """The same parts in each of some rows; (): in a flat array. at, own_at: (P + 1,), where parts begin, and a row ends."""
    many = int(np.prod(rows, dtype=np.int64))
    row = np.arange(many)[:, None]
    return Part(
        shape=(*rows, int(at[-1])),
        at=(row * at[-1] + at[:-1]).ravel(),
        sizes=np.tile(np.diff(at), many),
        owner=np.tile(owner, many),
        own_at=(row * own_at[-1] + own_at[:-1]).ravel(),
    )
