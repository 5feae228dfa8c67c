"""How a Predictive Vision Model runs on a device: its layout in tables, and which matrices a block keeps in shared memory."""

from typing import Any, NamedTuple

import numpy as np

from gpu.array import Array
from gpu.device import Device
from gpu.plan import FLOAT, RESERVED

ONE, MANY, CLUSTER = 448, 256, 4  # as in pvm.cuh
LARGE = 60_000  # parameters: no smaller unit is shared by the blocks of a cluster
FEW = 512  # up to so many units a block has all its threads; it depends on no device, so sums have one order on all

# The tables, as in pvm.cuh. A unit is 64 bytes, and its layers: a block begins with one read, not with a chain of them.
MOST_LAYERS, SEEN = 6, 3
LAYER = np.dtype(
    {
        "names": ["w", "rows", "columns", "pulled", "in", "out", "held"],
        "formats": ["i8"] + ["i4"] * 6,
        "offsets": [0, 8, 12, 16, 20, 24, 28],
        "itemsize": 32,
    }
)
PLACES = (
    "rank blocks number depth first_run last_run signals count block features hidden size published predicted residual "
    "sign"
).split()
UNIT = np.dtype(
    {
        "names": [*PLACES, "layers"],
        "formats": ["i4"] * len(PLACES) + [(LAYER, (MOST_LAYERS,))],
        "offsets": [*range(0, 4 * len(PLACES), 4), 64],
        "itemsize": 64 + MOST_LAYERS * LAYER.itemsize,
    }
)
RUN = np.dtype([("from", "i4"), ("to", "i4"), ("size", "i4"), ("kind", "i4")])


MOST_SLOTS = 4  # of a ring, as in pvm_ring.cuh
TILE = 8192  # floats of a slot, at most
SPARE = 8  # a run of floats takes so many more in shared memory, at most, since bulk copies move multiples of 16 bytes
OWN = 4096  # bytes of shared memory that a block has beside its ring, at most
KEPT = 64  # columns of a matrix that stays in shared memory where none goes round, at most; see pvm_columns.cuh


class Ring(NamedTuple):
    """How the matrices of a unit go through the shared memory of its block, see pvm_ring.cuh.

    slots   for some rows of a matrix, and for their velocities where there are any
    slot    floats for the rows, as many for the velocities
    held    (L,) where a block keeps the matrix of each layer, in floats behind the slots; -1: in its slots only
    shared  bytes of shared memory a block
    """

    slots: int
    slot: int
    held: np.ndarray
    shared: int


class Plan:
    """A layout on a device; made by `plan`, passed where the contract says layout.

    runs      RUN on the device: what units gather from the world, the runs of a unit side by side
    bulk      whether the device copies in bulk between memory and shared memory
    clusters  whether it runs blocks in clusters, which then share large units; the bits are the same without
    """

    def __init__(self, device: Device, layout: Any):
        self.device, self.layout = device, layout
        runs, ends = _runs(layout)
        self._units, self.runs = _units(layout, ends), device.from_host(runs)
        self.bulk = self.clusters = device.capability >= (9, 0)
        self._ranges: dict[tuple[int, int, bool, bool], Array] = {}
        self._rings: dict[bool, Ring | None] = {}
        self._kept: Ring | None = None

    def __len__(self) -> int:
        return len(self._units)

    def units(self, first: int, last: int, momentum: bool, clusters: bool) -> Array:
        """(N,) UNIT on the device, a block each: these units, the largest first; made by the first call.

        clusters  CLUSTER blocks side by side share a large unit, others go together as they are
        """
        key = first, last, momentum, clusters
        if key not in self._ranges:
            units, ring = self._units.copy(), self.ring(momentum) or self.kept()
            units["layers"]["held"][_within(self.layout.layer_at)] = ring.held
            size = _parameters(self.layout)[first:last]
            if clusters:
                blocks = _in_clusters(units[first:last], size, self._shared()[first:last])
            else:
                blocks = units[first:last][np.argsort(-size, kind="stable")]
            self._ranges[key] = self.device.from_host(blocks)
        return self._ranges[key]

    def shares(self, first: int, last: int) -> bool:
        """Whether any of these units is for a cluster, where matrices go through shared memory."""
        return bool(self._shared()[first:last].any())

    def _shared(self) -> np.ndarray:
        """(U,) whether a unit is for a cluster: one that is large, and more than an even share of a place for a block."""
        if not self.clusters:
            return np.zeros(len(self), bool)
        size, places = _parameters(self.layout), 2 * self.device.multiprocessors
        rows: np.ndarray = np.minimum.reduceat(self.layout.rows, self.layout.layer_at[:-1])
        shared: np.ndarray = (size > max(LARGE, size.sum() / places)) & (rows >= CLUSTER)
        return shared

    def ring(self, momentum: bool) -> Ring | None:
        """How matrices go through shared memory; None where they do not: the device cannot, or a row is too long."""
        if not self.bulk:
            return None
        if momentum not in self._rings:
            self._rings[momentum] = _ring(self.layout, self.device, 2 if momentum else 1, self._shared())
        return self._rings[momentum]

    def kept(self) -> Ring:
        """Which matrices stay in shared memory where none goes round."""
        if self._kept is None:
            self._kept = _kept(self.layout, self.device, 2 * ONE // self.threads(1))
        return self._kept

    def threads(self, streams: int) -> int:
        """Threads a block; by the number of all units of the model, so ranges and parts of it have the same order of sums."""
        return MANY if streams > 1 else ONE if self.layout.model_units <= FEW else ONE // 2


def _units(layout: Any, ends: np.ndarray) -> np.ndarray:
    """(U,) UNIT; ends: (U + 1,) where the runs of each begin."""
    units = np.zeros(len(layout.hidden), UNIT)
    units["blocks"] = 1
    units["number"], units["depth"] = np.arange(units.size), np.diff(layout.layer_at)
    units["first_run"], units["last_run"] = ends[:-1], ends[1:]
    units["signals"], units["count"] = layout.signal_at[:-1], np.diff(layout.signal_at)
    units["block"], units["features"], units["hidden"] = layout.block, layout.features_at, layout.hidden_at
    units["size"], units["published"], units["predicted"] = layout.hidden, layout.published_at, layout.predicted_at
    units["residual"], units["sign"] = layout.residual_at, layout.signed
    of, place = _within(layout.layer_at)
    fields = (layout.w_at, layout.rows, layout.columns, layout.pulled, layout.in_at, layout.out_at)
    for name, values in zip(("w", "rows", "columns", "pulled", "in", "out"), fields, strict=True):
        units["layers"][name][of, place] = values
    return units


def _in_clusters(units: np.ndarray, size: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """(CLUSTER N,) UNIT: clusters side by side, those with the most parameters a block first.

    size    (U,) parameters of the units
    shared  (U,) which of them a cluster shares; the others come CLUSTER at a time, the last of them with nothing to do
    """
    order = np.argsort(-size, kind="stable")
    together, alone = order[shared[order]], order[~shared[order]]
    blocks = np.zeros((together.size + -(-alone.size // CLUSTER), CLUSTER), UNIT)
    own, others = blocks[: together.size], blocks[together.size :].reshape(-1)
    own[:] = units[together, None]
    own["rank"], own["blocks"] = np.arange(CLUSTER), CLUSTER
    others[: alone.size] = units[alone]
    most = np.concatenate([size[together] / CLUSTER, size[alone][::CLUSTER]])
    return blocks[np.argsort(-most, kind="stable")].reshape(-1)


def _runs(layout: Any) -> tuple[np.ndarray, np.ndarray]:
    """(N,) RUN, of each unit the runs that it sees and those of its context; (U + 1,) where those of each unit begin."""
    seen, copied = _within(layout.part_at), _within(layout.copy_at)
    parts, ends = np.diff(layout.part_at), layout.part_at + layout.copy_at
    runs = np.zeros(ends[-1], RUN)
    at = ends[seen[0]] + seen[1]
    runs["from"][at], runs["to"][at], runs["size"][at] = layout.part_from, _places(layout), layout.part_size
    runs["kind"][at] = SEEN
    at = ends[copied[0]] + parts[copied[0]] + copied[1]
    runs["from"][at], runs["to"][at], runs["size"][at] = layout.copy_from, layout.copy_to, layout.copy_size
    runs["kind"][at] = layout.copy_kind
    return runs, ends


def _within(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each row of a table whose parts begin `at`: of which unit it is, and the how-manieth of that unit."""
    units = np.repeat(np.arange(at.size - 1), np.diff(at))
    return units, np.arange(at[-1]) - at[units]


def _ring(layout: Any, device: Device, arrays: int, shared: np.ndarray) -> Ring | None:
    """Two blocks share a multiprocessor. Matrices that errors are pulled back through come first, the slots get what is left.

    Where those of the largest unit leave too little, the slots get half, and matrices stay as far as they fit.

    arrays  that a slot holds rows of: weights, and velocities
    shared  (U,) which units the blocks of a cluster share: of those all matrices pass through the slots
    """
    room = (min(device.shared_block, device.shared_multiprocessor // 2 - RESERVED) - OWN) // FLOAT
    rows, columns = layout.rows.astype(np.int64), layout.columns.astype(np.int64)
    of, _ = _within(layout.layer_at)
    stays = (layout.pulled > 0) & ~shared[of]
    size = np.where(stays, -(-(rows * columns + SPARE) // 4) * 4, 0)  # of what is kept
    least = int(columns.max()) + SPARE + 3  # a row, of a slot that is cut to 16 bytes
    left = room - int(np.add.reduceat(size, layout.layer_at[:-1]).max())
    if left < 2 * arrays * least:
        left = room // 2
    slots = min(left // (arrays * least), MOST_SLOTS)
    if slots < 2:
        return None
    # more than all that passes through them would leave room for fewer blocks
    passes = np.add.reduceat(np.where(stays, 0, rows * columns), layout.layer_at[:-1])
    passing = int((passes // np.where(shared, CLUSTER, 1)).max())
    slot = min(left // (arrays * slots), TILE, passing // slots + least) // 4 * 4
    held = np.full(rows.size, -1)
    begin = np.zeros(len(layout.hidden), np.int64)  # behind what a unit keeps already
    for k in np.flatnonzero(size):
        if begin[of[k]] + size[k] <= room - arrays * slots * slot:
            held[k] = begin[of[k]]
            begin[of[k]] += size[k]
    return Ring(slots, slot, held, FLOAT * (arrays * slots * slot + int(begin.max())))


def _kept(layout: Any, device: Device, blocks: int) -> Ring:
    """Matrices that errors are pulled back through, as far as they fit, where so many blocks share a multiprocessor."""
    room = (min(device.shared_block, device.shared_multiprocessor // blocks - RESERVED) - OWN) // FLOAT
    size = -(-(layout.rows.astype(np.int64) * layout.columns + SPARE) // 4) * 4
    held, of = np.full(size.size, -1), _within(layout.layer_at)[0]
    begin = np.zeros(len(layout.hidden), np.int64)  # behind what a unit keeps already
    for k in np.flatnonzero((layout.pulled > 0) & (layout.columns <= KEPT)):
        if begin[of[k]] + size[k] <= room:
            held[k] = begin[of[k]]
            begin[of[k]] += size[k]
    return Ring(0, 0, held, FLOAT * int(begin.max()))


def _parameters(layout: Any) -> np.ndarray:
    """How many each unit has."""
    return np.add.reduceat(layout.rows.astype(np.int64) * (layout.columns + 1), layout.layer_at[:-1])


def _places(layout: Any) -> np.ndarray:
    """Where each part begins among the signals of its unit."""
    size = layout.part_size.astype(np.int64)
    places: np.ndarray = np.cumsum(size) - size - np.repeat(layout.signal_at[:-1], np.diff(layout.part_at))
    return places
