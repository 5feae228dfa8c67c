"""One tick of a Predictive Vision Model on a GPU: the `Pvm` contract, one launch per tick, one block per unit (pvm.cu)."""

from typing import Any, NamedTuple

import numpy as np

from gpu import device
from gpu.device import Device
from gpu.plan import FLOAT, RESERVED
from gpu.runtime import kernels
from gpu.runtime.array import Array
from gpu.units import CODES

# The plan of a Predictive Vision Model: its layout in tables, and the matrices that a block keeps in shared memory.

ONE, MANY = 448, 256  # as in pvm.cuh
FEW = 512  # maximum units for full-size blocks; device-independent, so sums have the same order on all devices

# The tables, as in pvm.cuh. A unit has 64 bytes and its layers, so a block starts with one read, not a chain of them.
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
    "number depth first_run last_run signals count block features hidden size published predicted residual sign"
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

OWN = 4096  # maximum shared bytes per block besides the kept matrices
KEPT = 64  # maximum number of columns of a kept matrix; see pvm_columns.cuh
SPARE = 8  # maximum number of padding floats per kept matrix, which has the same 16-byte alignment offset as in memory


class Kept(NamedTuple):
    """The matrices that stay in shared memory.

    held    (L,) offset of each layer's matrix in a block's shared memory, in floats; -1: in device memory only
    shared  bytes of shared memory per block
    """

    held: np.ndarray
    shared: int


class Plan:
    """A layout on a device; created by `plan`, passed as the contract's layout.

    runs  RUN on the device: the runs that units gather from the world, grouped by unit
    """

    def __init__(self, device: Device, layout: Any):
        self.device, self.layout = device, layout
        runs, ends = _runs(layout)
        self._units, self.runs = _units(layout, ends), device.from_host(runs)
        self._ranges: dict[tuple[int, int], Array] = {}
        self._kept: Kept | None = None

    def __len__(self) -> int:
        return len(self._units)

    def units(self, first: int, last: int) -> Array:
        """Returns (N,) UNIT on the device, one per block: these units, the largest first; cached."""
        if (first, last) not in self._ranges:
            units = self._units.copy()
            units["layers"]["held"][_within(self.layout.layer_at)] = self.kept().held
            largest = np.argsort(-_parameters(self.layout)[first:last], kind="stable")
            self._ranges[first, last] = self.device.from_host(units[first:last][largest])
        return self._ranges[first, last]

    def kept(self) -> Kept:
        """Returns the matrices that stay in shared memory if a block has one stream."""
        if self._kept is None:
            self._kept = _kept(self.layout, self.device, 2 * ONE // self.threads(1))
        return self._kept

    def threads(self, streams: int) -> int:
        """Returns the threads per block, by the model's total units, so that sums over any range have the same order."""
        return MANY if streams > 1 else ONE if self.layout.model_units <= FEW else ONE // 2


def _units(layout: Any, ends: np.ndarray) -> np.ndarray:
    """Returns (U,) UNIT; ends: (U + 1,) the start of each unit's runs."""
    units = np.zeros(len(layout.hidden), UNIT)
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


def _runs(layout: Any) -> tuple[np.ndarray, np.ndarray]:
    """Returns (N,) RUN, each unit's input runs and then those of its context; (U + 1,) the start of each unit's runs."""
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
    """Returns each row's unit and its index within that unit, for a table whose units start at `at`."""
    units = np.repeat(np.arange(at.size - 1), np.diff(at))
    return units, np.arange(at[-1]) - at[units]


def _kept(layout: Any, device: Device, blocks: int) -> Kept:
    """Assigns shared memory to back-propagated matrices, as far as they fit; `blocks`: per multiprocessor."""
    room = (min(device.shared_block, device.shared_multiprocessor // blocks - RESERVED) - OWN) // FLOAT
    size = -(-(layout.rows.astype(np.int64) * layout.columns + SPARE) // 4) * 4
    held, of = np.full(size.size, -1), _within(layout.layer_at)[0]
    begin = np.zeros(len(layout.hidden), np.int64)  # next free float of each unit
    for k in np.flatnonzero((layout.pulled > 0) & (layout.columns <= KEPT)):
        if begin[of[k]] + size[k] <= room:
            held[k] = begin[of[k]]
            begin[of[k]] += size[k]
    return Kept(held, FLOAT * int(begin.max()))


def _parameters(layout: Any) -> np.ndarray:
    return np.add.reduceat(layout.rows.astype(np.int64) * (layout.columns + 1), layout.layer_at[:-1])


def _places(layout: Any) -> np.ndarray:
    """Returns the offset of each part among the signals of its unit."""
    size = layout.part_size.astype(np.int64)
    return np.cumsum(size) - size - np.repeat(layout.signal_at[:-1], np.diff(layout.part_at))


TICK = "PPPPPPPPPPPPiiiPPPPPPPPifffffiiqqq"


def plan(layout: Any) -> Plan:
    """Converts the layout to tables on the device."""
    return Plan(device.current().device, layout)


def show(world: Array, frame: Array, scale: float) -> None:
    """world[b, :F] = scale frame[b]."""
    (streams, size), name = frame.shape, "show_bytes" if frame.dtype == np.uint8 else "show_numbers"
    grid = (-(-size // 256), streams)
    kernels.launch(__file__, name, "PPfqq", grid, 256, world, frame, scale, size, world.shape[1])


def tick(
    state: Any, layout: Plan, past: Any, learning: Any, gathering: Any, activation: str, first: int, last: int
) -> None:
    """Computes one tick; see hybrid/contract.py."""
    streams, wired, momentum = len(past.world), layout.layout, state.velocity is not None
    units, name = layout.units(first, last), f"tick_{'one' if streams == 1 else 'many'}{'_momentum' * momentum}"
    shared = layout.kept().shared if streams == 1 else 0
    widths = past.world.shape[1], state.tape.shape[1], state.signals.shape[1]
    kernels.launch(
        __file__, name, TICK, units.size, layout.threads(streams), *state, units, layout.runs,
        wired.features, wired.steps, wired.newest_first, *past, *learning, *gathering, CODES[activation], streams,
        *widths, shared=shared,
    )  # fmt: skip


def collect(out: Array, source: Array, index: Array) -> None:
    """out[b, n] = source[b, index[n]]."""
    if index.size:
        grid = (-(-index.size // 256), len(out))
        kernels.launch(__file__, "collect", "PPPqq", grid, 256, out, source, index, index.size, source.shape[1])


def spread(out: Array, source: Array, index: Array) -> None:
    """out[b, index[n]] = source[b, n]."""
    if index.size:
        grid = (-(-index.size // 256), len(source))
        kernels.launch(__file__, "spread", "PPPqq", grid, 256, out, source, index, index.size, out.shape[1])
