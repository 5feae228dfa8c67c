"""One tick of a Predictive Vision Model on a GPU: the `Pvm` contract, a launch a tick, a block a unit (pvm.cu)."""

from typing import Any

import numpy as np

from gpu import device, kernels
from gpu.array import Array
from gpu.device import Device
from gpu.units import CODES

ONE, MANY = 448, 256  # as in pvm.cu
FEW = 512  # up to so many units a block has all its threads; it depends on no device, so sums have one order on all
TICK = "PPPPPPPPPPPPiiiPPPPPPPPifffffiiqqq"

# The tables, as in pvm.cuh. A unit is 64 bytes, and its layers: a block begins with one read, not with a chain of them.
MOST_LAYERS, SEEN = 6, 3
LAYER = np.dtype(
    {
        "names": ["w", "rows", "columns", "pulled", "in", "out"],
        "formats": ["i8"] + ["i4"] * 5,
        "offsets": [0, 8, 12, 16, 20, 24],
        "itemsize": 32,
    }
)
PLACES = (
    "number depth first_run last_run signals count block features hidden size published predicted residual sign".split()
)
UNIT = np.dtype(
    {
        "names": [*PLACES, "layers"],
        "formats": ["i4"] * len(PLACES) + [(LAYER, (MOST_LAYERS,))],
        "offsets": [*range(0, 4 * len(PLACES), 4), 64],
        "itemsize": 64 + MOST_LAYERS * LAYER.itemsize,
    }
)
RUN = np.dtype([("from", "i4"), ("to", "i4"), ("size", "i4"), ("kind", "i4")])


class Plan:
    """A layout on a device; made by `plan`, passed where the contract says layout.

    runs  RUN on the device: what units gather from the world, the runs of a unit side by side
    """

    def __init__(self, device: Device, layout: Any):
        self.device, self.layout = device, layout
        runs, ends = _runs(layout)
        self._units, self.runs = _units(layout, ends), device.from_host(runs)
        self._ranges: dict[tuple[int, int], Array] = {}

    def __len__(self) -> int:
        return len(self._units)

    def units(self, first: int, last: int) -> Array:
        """(last - first,) UNIT on the device: these units, the largest first; made by the first call."""
        if (first, last) not in self._ranges:
            units = self._units[first:last]
            order = np.argsort(-_parameters(self.layout)[first:last], kind="stable")
            self._ranges[first, last] = self.device.from_host(units[order])
        return self._ranges[first, last]

    def threads(self, streams: int) -> int:
        """Threads a block; by the number of all units, so a tick by ranges has the same order of sums."""
        return MANY if streams > 1 else ONE if len(self) <= FEW else ONE // 2


def plan(layout: Any) -> Plan:
    """The layout as `tick` takes it: on the device, in tables."""
    return Plan(device.current().device, layout)


def show(world: Array, frame: Array, scale: float) -> None:
    """world[b, :F] = scale frame[b]."""
    (streams, size), name = frame.shape, "show_bytes" if frame.dtype == np.uint8 else "show_numbers"
    grid = (-(-size // 256), streams)
    kernels.launch(__file__, name, "PPfqq", grid, 256, world, frame, scale, size, world.shape[1])


def tick(
    state: Any, layout: Plan, past: Any, learning: Any, gathering: Any, activation: str, first: int, last: int
) -> None:
    """See hybrid/contract.py."""
    streams, wired = len(past.world), layout.layout
    name = f"tick_{'one' if streams == 1 else 'many'}{'_momentum' * (state.velocity is not None)}"
    widths = past.world.shape[1], state.tape.shape[1], state.signals.shape[1]
    kernels.launch(
        __file__, name, TICK, last - first, layout.threads(streams), *state, layout.units(first, last), layout.runs,
        wired.features, wired.steps, wired.newest_first, *past, *learning, *gathering, CODES[activation], streams, *widths,
    )  # fmt: skip


def collect(out: Array, source: Array, index: Array) -> None:
    """out[b, n] = source[b, index[n]]."""
    grid = (-(-index.size // 256), len(out))
    kernels.launch(__file__, "collect", "PPPqq", grid, 256, out, source, index, index.size, source.shape[1])


def _units(layout: Any, ends: np.ndarray) -> np.ndarray:
    """(U,) UNIT; ends: (U + 1,) where the runs of each begin."""
    units = np.zeros(len(layout.hidden), UNIT)
    units["number"], units["depth"] = np.arange(units.size), np.diff(layout.layer_at)
    units["first_run"], units["last_run"] = ends[:-1], ends[1:]
    units["signals"], units["count"] = layout.signal_at[:-1], np.diff(layout.signal_at)
    units["block"], units["features"], units["hidden"] = layout.block, layout.features_at, layout.hidden_at
    units["size"], units["published"], units["predicted"] = layout.hidden, layout.published_at, layout.predicted_at
    units["residual"], units["sign"] = layout.residual_at, layout.signed
    of, place = _within(layout.layer_at)
    fields = (layout.w_at, layout.rows, layout.columns, layout.pulled, layout.in_at, layout.out_at)
    for name, values in zip(LAYER.names or (), fields, strict=True):
        units["layers"][name][of, place] = values
    return units


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


def _parameters(layout: Any) -> np.ndarray:
    """How many each unit has."""
    return np.add.reduceat(layout.rows.astype(np.int64) * (layout.columns + 1), layout.layer_at[:-1])


def _places(layout: Any) -> np.ndarray:
    """Where each part begins among the signals of its unit."""
    size = layout.part_size.astype(np.int64)
    places: np.ndarray = np.cumsum(size) - size - np.repeat(layout.signal_at[:-1], np.diff(layout.part_at))
    return places
