"""Parameter counts of a Predictive Vision Model, and checks that they fit into memory."""

import sys
from math import prod

import numpy as np

from .. import machine
from . import heads
from .config import Config
from .layout import tape_layout, weights_at
from .wiring import Wiring

LARGE = 2**40  # parameters, more than any machine holds; below it, pairs of neighbours are counted in int64
REMEDY = "make grids, block, channels, hidden, lateral_radius or the readout smaller"
FAR = 1000  # the radius up to which neighbours are counted for a lower bound


def parameters(config: Config, wiring: Wiring) -> tuple[int, int]:
    """Returns the numbers of weights and biases of the units, and of their readouts."""
    readouts = heads.layout_of(wiring, config)[0].w_at[-1] if config.readout else 0
    return int(weights_at(tape_layout(wiring, config))[-1]), int(readouts)


def refuse_too_large(config: Config, copies: int, itemsize: int, ranks: int = 1) -> None:
    """Raises MemoryError if the parameters cannot fit in this machine's memory, before anything is allocated.

    copies  of each parameter: 2 with momentum
    ranks   that partition them; each may have a machine to itself
    """
    least = min(itemsize * copies * (fewest(config) + _fewest_of_readouts(config)) // ranks, sys.maxsize)
    memory = machine.memory()
    if least > memory:
        raise MemoryError(
            f"pvm: found at least {least / 2**30:,.0f} GiB of parameters, expected less than the {memory / 2**30:,.0f} GiB of"
            f" this machine; {REMEDY}"
        )


def refuse_more(source: object, config: Config, held: int) -> None:
    """Raises ValueError if a configuration needs more numbers than were saved with it, before anything is allocated."""
    published = sum(rows * columns * size for (rows, columns), size in zip(config.grids, config.hidden, strict=True))
    if published + prod(config.frame) > held:
        raise ValueError(f"{source}: declares {published} hidden numbers, but holds {held} numbers; it was altered")


def fewest(config: Config) -> int:
    """Returns a lower bound of the units' parameters without wiring: one signal source per unit, lateral context and tops."""
    steps, total = config.predict_steps, 0
    before = config.block[0] * config.block[1] * config.channels
    last = len(config.grids) - 1
    for layer, (grid, h) in enumerate(zip(config.grids, config.hidden, strict=True)):
        total += grid[0] * grid[1] * (h * (len(config.features) * before + 1) + steps * before * (h + 1))
        if config.unit in ("simple", "change", "complex") and total < LARGE:
            tops = prod(config.grids[-1]) if config.top_to_all and config.wiring == "cuda" else 0
            beside = _neighbours(grid, config.lateral_radius, config.self_context) if layer < last or not tops else 0
            total += (beside * h + prod(grid) * tops * config.hidden[-1]) * h
        before = h
    return total


def _fewest_of_readouts(config: Config) -> int:
    """Returns a lower bound of the parameters of the readouts: of one tile, or of the units of layers with readouts."""
    readout = config.readout
    if readout is None:
        return 0
    if readout.kind == "tile":
        rows, columns = readout.block[0] if readout.block else config.block
        return rows * columns * (readout.hidden[0] + 1)
    layers = zip(config.grids, config.hidden, readout.block or ((1, 1),) * len(config.grids), strict=True)
    each = [prod(grid) * prod(block) * (2 * h + 1) for grid, h, block in layers]
    return sum(one for one, on in zip(each, readout.enabled or (True,) * len(each), strict=True) if on)


def _neighbours(grid: tuple[int, int], radius: float, itself: bool) -> int:
    """Returns the pairs of units of a grid within a radius, truncated to an integer (the rule with fewest pairs) and to FAR."""
    rows, columns = grid
    radius = min(int(radius), rows + columns, FAR)
    y, x = np.arange(min(radius + 1, rows)), np.arange(min(radius + 1, columns))
    beside = np.cumsum((columns - x) * np.where(x, 2, 1))  # pairs of columns no farther from each other than x
    reach = np.minimum(np.sqrt(radius**2 - y**2).astype(np.int64), columns - 1)
    return int(((rows - y) * np.where(y, 2, 1) * beside[reach]).sum()) - (0 if itself else rows * columns)
