"""One tick of a Predictive Vision Model on a GPU: the `Pvm` contract, a launch a tick, a block a unit (pvm.cu)."""

from typing import Any

import numpy as np

from gpu import device, kernels
from gpu.array import Array
from gpu.device import Device
from gpu.units import CODES

ONE, MANY = 448, 256  # as in pvm.cu
FEW = 512  # up to so many units a block has all its threads; it depends on no device, so sums have one order on all
TICK = "PPPPPPPPPPPPPPiiiPPPPPPPPifffffiiqqq"


class Plan:
    """A layout on a device; made by `plan`, passed where the contract says layout.

    layers, parts, copies  its tables as pvm.cu reads them: int64, a row each
    """

    def __init__(self, device: Device, layout: Any):
        self.device, self.layout = device, layout
        self._units, *tables = _tables(layout)
        self.layers, self.parts, self.copies = (device.from_host(table) for table in tables)
        self._ranges: dict[tuple[int, int], Array] = {}

    def __len__(self) -> int:
        return len(self._units)

    def units(self, first: int, last: int) -> Array:
        """The table of the units first:last, the largest first; made by the first call."""
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
    tables = layout.units(first, last), layout.layers, layout.parts, layout.copies
    widths = past.world.shape[1], state.tape.shape[1], state.signals.shape[1]
    kernels.launch(
        __file__, name, TICK, last - first, layout.threads(streams), *state, *tables, wired.features, wired.steps,
        wired.newest_first, *past, *learning, *gathering, CODES[activation], streams, *widths,
    )  # fmt: skip


def collect(out: Array, source: Array, index: Array) -> None:
    """out[b, n] = source[b, index[n]]."""
    grid = (-(-index.size // 256), len(out))
    kernels.launch(__file__, "collect", "PPPqq", grid, 256, out, source, index, index.size, source.shape[1])


def _tables(layout: Any) -> tuple[np.ndarray, ...]:
    """Units, layers, parts, copies: int64, columns as in the structs of the same names in pvm.cu."""
    units = np.stack(
        [
            np.arange(len(layout.hidden)),
            *(at for ends in (layout.layer_at, layout.part_at, layout.copy_at) for at in (ends[:-1], ends[1:])),
            *(layout.signal_at[:-1], np.diff(layout.signal_at), layout.block, layout.features_at),
            *(layout.hidden_at, layout.hidden, layout.published_at, layout.predicted_at, layout.residual_at),
            layout.signed,
        ],
        axis=1,
    )
    layers = (layout.rows, layout.columns, layout.pulled, layout.w_at, layout.in_at, layout.out_at)
    copies = (layout.copy_from, layout.copy_to, layout.copy_size, layout.copy_kind)
    parts = (layout.part_from, layout.part_size, _places(layout))
    return units.astype(np.int64), *(np.stack(table, axis=1).astype(np.int64) for table in (layers, parts, copies))


def _parameters(layout: Any) -> np.ndarray:
    """How many each unit has."""
    return np.add.reduceat(layout.rows.astype(np.int64) * (layout.columns + 1), layout.layer_at[:-1])


def _places(layout: Any) -> np.ndarray:
    """Where each part begins among the signals of its unit."""
    size = layout.part_size.astype(np.int64)
    places: np.ndarray = np.cumsum(size) - size - np.repeat(layout.signal_at[:-1], np.diff(layout.part_at))
    return places
