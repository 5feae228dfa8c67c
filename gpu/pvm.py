"""One tick of a Predictive Vision Model on a GPU: the `Pvm` contract, a launch a tick, a block a unit (pvm.cu)."""

from typing import Any

import numpy as np

from gpu import device, kernels
from gpu.array import Array
from gpu.pvm_plan import Plan
from gpu.units import CODES

TICK = "PPPPPPPPPPPPiiiPPPPPPPPifffffiiqqq"


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
