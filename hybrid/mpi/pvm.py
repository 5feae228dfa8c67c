"""Model parallelism for PVMs: each rank computes its units and receives the outputs they read from others.

Ranks hold the weights of their own units, so parameters determine a unit's cost. Outputs read on other ranks are sent at each
step, so units that read each other should share a rank. Hence the frame and all layers above are cut into blocks of equal
cost. Method: recursive coordinate bisection (Berger and Bokhari 1987, IEEE Transactions on Computers 36).
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

PIECE = 1 << 22  # numbers per piece of a checkpoint
STOP = -1  # ends the sequence of pieces


class Ranks:
    """The ranks that share the units of a model: the argument `ranks` of `PVM`.

    group  None: all ranks of this run
    size   number of ranks
    """

    def __init__(self, group: Group | None = None) -> None:
        self.group = group or Group()
        self.size = self.group.size

    def pipeline(self, config: Config, wiring: Wiring, device: backend.Backend, **settings: Any) -> Pipeline:
        """Returns the pipeline of this rank's units; arguments as of `Pipeline`."""
        if self.size == 1:
            return Pipeline(config, wiring, device, **settings)
        return SharedPipeline(config, wiring, device, group=self.group, **settings)


class SharedPipeline(Pipeline):
    """The arrays of this rank's units, and the stages of a step across all ranks.

    A unit reads outputs of the previous step. Units read by other ranks are computed first, so their outputs are sent while
    the rest is computed. After a step, all inputs of the next one are present. Every rank computes the readouts, from all
    hidden vectors.

    group   the ranks
    shares  the partition of units among ranks
    """

    def __init__(self, config: Config, wiring: Wiring, device: backend.Backend, *, group: Group, **settings: Any):
        whole = tape_layout(wiring, config)
        self.group, self.shares = group, divide(wiring, whole, group.size)
        super().__init__(config, wiring, device, part=(whole, self.shares.units[group.rank]), **settings)
        self._edge = self.shares.edge[group.rank]
        # Assembles full arrays from the parts of all ranks.
        B, F = self.streams, self.frame_size
        H, parts = whole.world - F, len(self.prediction.index)
        units = self.shares.units
        hidden = [runs(whole.published_at[own] - F, whole.hidden[own]) for own in units]
        pixels = [np.flatnonzero(np.isin(self.prediction.unit, own)) for own in units]
        self._miss = Joined(self.group, units, self.dtype)
        self._hidden = Joined(self.group, [_in_rows(B, H, places) for places in hidden], self.dtype)
        self._pixels = Joined(self.group, [_in_rows(parts * B, F, places) for places in pixels], self.dtype)
        world = self.state["world_0"]
        messages = self.halo.exchange
        for work in (lambda: self.halo.collect(world), self.halo.leave, messages.start, messages.wait):
            self.inline.run(work)
        self.inline.run(self.halo.spread, world)

    def _read_layout(self) -> TapeLayout:
        """Returns the layout of the readouts, which read the hidden vectors of all units in sequence."""
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
        """Returns the stages of a frame; those that wait for other ranks have their own queue, so that a GPU continues."""
        way = [
            Stage("frame in", "copy in", self._send),
            Stage("edge", "dense", self._begin, ("frame in",)),
            Stage("halo out", "copy out", lambda slot: self.halo.leave(), ("edge",)),
            Stage("send", "ranks", lambda slot: self.halo.exchange.start(), ("halo out",)),
            Stage("tick", "dense", self.tick, ("edge",)),
            Stage("home", "copy out", self._home, ("tick",)),
            Stage("arrive", "ranks", self._arrive, ("home",)),
            Stage("halo in", "dense", self._halo_in, ("arrive",)),
        ]
        if self.readouts:
            way.append(Stage("readout", "dense", self._read, ("arrive",)))
            way.append(Stage("heat out", "copy out", self._heat_out, ("readout",)))
        return [self._repeated(stage) if stage.queue == "dense" else stage for stage in way]

    def queues(self) -> dict[str, Any]:
        """Returns the queues of a single rank, and one that waits for others."""
        queues = super().queues()
        if self.backend.device.threads:
            return queues | dict.fromkeys(("copy out", "ranks"), self.inline)
        return queues | {"ranks": backend.choose("cpu").device.queue("ranks", 1)}

    # Work of the stages

    def _begin(self, slot: FrameSlot) -> None:
        """Computes the units that other ranks read."""
        self._show(slot)
        if self._edge:
            self._move(slot, 0, self._edge)
        self.halo.collect(self._next_world(slot))

    def _next_world(self, slot: FrameSlot) -> Any:
        return self.state[f"world_{(slot.tick + 1) % 2}"]

    def tick(self, slot: FrameSlot) -> None:
        """Computes all other units; collects the outputs to copy back."""
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
        """Waits for the outputs of other ranks, and assembles the arrays of all units."""
        self.halo.exchange.wait()
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

    # Queries; all ranks call them together

    def predicted(self, tick: int, places: list[np.ndarray]) -> np.ndarray:
        """Returns the predictions of the units of all ranks."""
        whole = np.zeros((len(places), self.streams, self.frame_size), self.dtype)
        return self._pixels.put(whole, super().predicted(tick, places))

    def save(self, folder: str | Path, facts: dict[str, Any], tick: int) -> None:
        """Writes one checkpoint, on rank 0; an error on one rank is raised on all."""
        with self.group.together():
            self._finite(tick)
        Parts(self).save(folder, facts)

    def restore(self, folder: str | Path) -> None:
        """Loads the arrays of this rank's units from a checkpoint."""
        Parts(self).load(folder)


def _in_rows(rows: int, width: int, places: np.ndarray) -> np.ndarray:
    """Returns flat indices of these positions in each row of an array (rows, width)."""
    return (np.arange(rows)[:, None] * width + places).ravel()


class Joined:
    """A repeatable assembly of one kind of array from all ranks; places: flat indices of each rank's numbers in it."""

    def __init__(self, group: Group, places: Sequence[np.ndarray], dtype: np.dtype):
        self._group, self._counts = group, [len(one) for one in places]
        self._places = np.concatenate(places)
        self._all = np.zeros(len(self._places), dtype)
        first = sum(self._counts[: group.rank])
        self._own = self._all[first : first + self._counts[group.rank]]

    def put(self, whole: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Returns an array, filled with the parts of all ranks, which call it together; own: this rank's, as its places."""
        self._own[:] = own.reshape(-1)
        self._group.join(self._all, self._counts)
        whole.reshape(-1)[self._places] = self._all
        return whole


class Shares(NamedTuple):
    """A partition of U units among R ranks.

    units  R x (u,) the units of each rank in its order: those read by other ranks first
    edge   (R,) number of units read by other ranks
    reads  (rank, other) -> ascending units of the other rank that the rank reads; empty pairs are omitted
    """

    units: list[np.ndarray]
    edge: list[int]
    reads: dict[tuple[int, int], np.ndarray]


def divide(wiring: Wiring, layout: TapeLayout, ranks: int) -> Shares:
    """Partitions the units; layout: of all. Raises ValueError for more ranks than units."""
    count = len(wiring.hidden)
    if ranks > count:
        raise ValueError(f"ranks: found {ranks} for a model of {count} units, expected at most {count}; start fewer")
    cost = np.diff(weights_at(layout))
    owner = np.empty(count, np.int64)
    # The centre of each unit over the frame, in pixels, since layers cover the same frame.
    grids, frame = np.array(wiring.grids)[wiring.layer], np.array(wiring.frame[:2])
    places = (np.stack([wiring.row, wiring.column], axis=1) + 0.5) / grids * frame
    _bisect(owner, np.arange(count), places, cost, 0, ranks)
    return _shares(wiring, owner, ranks)


def _bisect(owner: np.ndarray, units: np.ndarray, places: np.ndarray, cost: np.ndarray, first: int, ranks: int) -> None:
    """Assigns units to the ranks from `first` on: cuts across the longer side, recursively with half of the ranks each."""
    if ranks == 1:
        owner[units] = first
        return
    own = places[units]
    side = int(np.ptp(own, axis=0).argmax())
    units = units[np.lexsort((units, own[:, 1 - side], own[:, side]))]
    part, ends = ranks // 2, np.cumsum(cost[units])
    at = int(np.searchsorted(ends - cost[units] / 2, ends[-1] * part / ranks))
    at = min(max(at, part), len(units) - (ranks - part))  # at least one unit per rank
    _bisect(owner, units[:at], places, cost, first, part)
    _bisect(owner, units[at:], places, cost, first + part, ranks - part)


def _shares(wiring: Wiring, owner: np.ndarray, ranks: int) -> Shares:
    count = len(owner)
    reader = np.repeat(np.arange(count), [len(a) + len(b) for a, b in zip(wiring.signal, wiring.context, strict=True)])
    seen = zip(wiring.signal, wiring.context, strict=True)
    source = np.concatenate([ids for pair in seen for ids in pair])
    apart = owner[reader] != owner[source]
    read = np.unique(owner[reader[apart]] * count + source[apart])  # pairs of a rank and a unit that it reads
    rank, unit = np.divmod(read, count)
    outside = np.zeros(count, bool)
    outside[unit] = True
    units = [np.flatnonzero(owner == one) for one in range(ranks)]
    order = np.lexsort((unit, owner[unit], rank))
    pairs = np.stack([rank, owner[unit]], axis=1)[order]
    first = np.flatnonzero((np.diff(pairs, axis=0, prepend=-1) != 0).any(axis=1))  # start of each pair
    ends = pairwise([*first.tolist(), len(order)])
    reads = {(a, b): unit[order[slice(*span)]] for (a, b), span in zip(pairs[first].tolist(), ends, strict=True)}
    edge = [int(outside[own].sum()) for own in units]
    return Shares([np.concatenate([own[outside[own]], own[~outside[own]]]) for own in units], edge, reads)


class Halo:
    """The border exchange: outputs in the world that this rank sends to and receives from each other rank, of all
    streams: one launch gathers, another scatters them. The host has one array per direction, a device mirrors of both."""

    def __init__(
        self, group: Group, shares: Shares, layout: TapeLayout, device: Any, kernels: Any, streams: int, dtype: Any
    ):
        """Allocates the buffers, within the work of a queue; layout: of all units; kernels: `Pvm` of hybrid/contract."""
        self._copy, self._kernels = device.copy, kernels
        # by other rank; both sides order the publisher's indices ascending, stream by stream
        going = {other: units for (other, one), units in shares.reads.items() if one == group.rank}
        coming = {other: units for (one, other), units in shares.reads.items() if one == group.rank}
        self._going, self._going_dev, self._from, send = _side(going, layout, device, streams, dtype)
        self._coming, self._coming_dev, self._to, receive = _side(coming, layout, device, streams, dtype)
        self.exchange = group.exchange(send, receive)  # between the host arrays

    def collect(self, world: Any) -> None:
        """Gathers the outputs that others read from a world (B, W); call it within the work of a queue."""
        self._kernels.collect(self._going_dev, world.reshape(1, -1), self._from)

    def leave(self) -> None:
        """Copies them to the host; call it within the work of a queue."""
        self._copy(self._going, self._going_dev)

    def spread(self, world: Any) -> None:
        """Scatters the received outputs to a world (B, W); call it within the work of a queue."""
        self._copy(self._coming_dev, self._coming)
        self._kernels.spread(world.reshape(1, -1), self._coming_dev, self._to)


def _side(
    units: dict[int, np.ndarray], layout: TapeLayout, device: Any, streams: int, dtype: Any
) -> tuple[np.ndarray, Any, Any, dict[int, np.ndarray]]:
    """Returns the buffers of one direction: host array (1, N) and mirror, indices in a flat world, host views by rank."""
    firsts = np.arange(streams)[:, None] * layout.world
    places = {r: (firsts + runs(layout.published_at[one], layout.hidden[one])).ravel() for r, one in units.items()}
    host = device.host_empty((1, sum(place.size for place in places.values())), dtype)
    ends = np.cumsum([place.size for place in places.values()])
    by_rank = dict(zip(places, np.split(host[0], ends[:-1]) if places else [], strict=True))
    index = np.concatenate([*places.values(), np.zeros(0, np.int64)]).astype(np.int32)
    return host, device.mirror(host), device.from_host(index), by_rank


class Part(NamedTuple):
    """The partition of a flat array of all units.

    shape      of the full array
    at, sizes  (P,) start of each part, and its number of elements
    owner      (P,) the rank of each part; rank 0 for replicated ones
    own_at     (P,) start of this rank's own parts in its array
    """

    shape: tuple[int, ...]
    at: np.ndarray
    sizes: np.ndarray
    owner: np.ndarray
    own_at: np.ndarray


class Parts:
    """The arrays of this rank, and their positions in those of all units.

    Checkpoints store units in the order of their numbers, so any number of ranks can resume. Rank 0 writes. It requests one
    piece at a time from all ranks, so it needs memory for one extra piece.
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
        sizes = {name: int(np.prod(parts.shape)) for name, parts in self._parts.items()}
        self._pieces = [(name, at, min(at + PIECE, n)) for name, n in sizes.items() for at in range(0, n, PIECE)]

    def save(self, folder: str | Path, facts: dict[str, Any]) -> None:
        """Writes one checkpoint, as `checkpoint.save` does; an error on rank 0 is raised on all."""
        with self._group.together():
            if self._group.rank:
                while (asked := self._requested()) != STOP:
                    self._collect(asked)
                return
            try:
                checkpoint.save(folder, self._written, facts)
            finally:
                self._requested(STOP)

    def load(self, folder: str | Path) -> None:
        """Reads this rank's arrays from a checkpoint, which rank 0 verifies for all; see `checkpoint.load_into`."""
        with self._group.together():
            if self._group.rank == 0:
                checkpoint.verify(folder, self._forms)
        with self._group.together():
            checkpoint.load_runs(folder, {name: self._runs(name) for name in self._arrays})
        self._put(self._arrays)

    def _runs(self, name: str) -> Runs:
        """Returns the runs of an array that this rank reads: its own parts, or all of a replicated one."""
        array, parts = self._arrays[name], self._parts[name]
        own = np.flatnonzero((array.shape == parts.shape) | (parts.owner == self._group.rank))
        return Runs(array.reshape(-1), parts.at[own], parts.own_at[own], parts.sizes[own])

    def _whole(self, name: str) -> Iterator[np.ndarray]:
        """Yields an array of all units in pieces, on rank 0, while the others are in `_collect`."""
        for number, (of, *_) in enumerate(self._pieces):
            if of == name:
                self._requested(number)
                yield self._collect(number)

    def _requested(self, number: int = STOP) -> int:
        """Broadcasts the piece that rank 0 requests."""
        value = np.array([number])
        self._group.share(value)
        return int(value[0])

    def _collect(self, number: int) -> np.ndarray:
        """Returns a piece on rank 0; other ranks send theirs and return nothing."""
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
        """Returns the parts of an array of this name; array: any rank's, for its number of rows."""
        whole, own = self._pipeline.whole, self._pipeline.layout
        if name in ("weights", "velocity"):
            at, own_at = weights_at(whole), weights_at(own)
        elif "tape" in name:
            at, own_at = whole.tape_at, own.tape_at
        elif "signals" in name or (name == "integral" and array.size):
            at, own_at = whole.signal_at, own.signal_at
        elif name in ("world_0", "world_1", "low", "high"):  # replicated; only own entries are valid
            at = np.concatenate([[0], whole.published_at, [whole.world]])
            return _in_each_row(array.shape[:1], at, np.concatenate([[0], self._owner]), at)
        else:  # replicated
            at = np.array([0, array.size])
            return _in_each_row((), at, np.zeros(1, np.int64), at)._replace(shape=array.shape)
        begin = np.zeros(len(at), np.int64)
        begin[self._pipeline.units], begin[-1] = own_at[:-1], own_at[-1]
        return _in_each_row(array.shape[: array.ndim - 1], at, self._owner, begin)


def _in_each_row(rows: tuple[int, ...], at: np.ndarray, owner: np.ndarray, own_at: np.ndarray) -> Part:
    """Returns the same parts for each of some rows; (): a flat array. at, own_at: (P + 1,), part starts and the row's end."""
    many = int(np.prod(rows, dtype=np.int64))
    row = np.arange(many)[:, None]
    places, own_places = ((row * begins[-1] + begins[:-1]).ravel() for begins in (at, own_at))
    return Part((*rows, int(at[-1])), places, np.tile(np.diff(at), many), np.tile(owner, many), own_places)
