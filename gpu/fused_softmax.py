"""A step of the full softmax by kernels of our own, which keep no logit in global memory; see gpu/fused_softmax.cu.

Three launches and 8 B V D operations of the tensor cores: in TF32 where the device was made with tf32=True, else as 3xTF32,
three times as many and nearly fp32. Rows are read twice, the first time by each tile of examples, and written once. Parts of
the gradient of hidden vectors take 64 KiB a multiprocessor, or as much as the gradient where that is more.
"""

from typing import Any, NamedTuple

import numpy as np

from gpu import device, kernels
from gpu.array import Array
from gpu.rule import scalars, wide

LEAST = (8, 0)  # compute capability: the first tensor cores with TF32
THREADS, WARPS, COLUMNS, PASSING = 256, 8, 128, 32  # as in pass_by.cuh
COMBINERS = 128  # as in fused_softmax.cu


class Tile(NamedTuple):
    """What a block has in shared memory, as in pass_by.cuh: rows that stay and rows that pass by, of up to `width` numbers."""

    width: int

    @property
    def rows(self) -> int:
        """How many stay."""
        return 16 * WARPS * COLUMNS // self.width

    @property
    def shared(self) -> int:
        """Bytes; where several warps have the same rows, with what they tell each other."""
        told = 16 * WARPS * (PASSING + 4) if self.width > COLUMNS else 0
        return 4 * ((self.rows + 2 * PASSING) * (self.width + 4) + told)


TILES = Tile(128), Tile(256), Tile(512)  # bytes: 99 KiB, which every device from sm_80 on has, 148 and 211.5


def able(where: device.Device, width: int = 1) -> bool:
    """Whether a device has the tensor cores, and the shared memory for rows of a width."""
    return bool(where.capability >= LEAST) and any(
        width <= tile.width and tile.shared <= where.shared_block for tile in TILES
    )


def fits(learned: Any, hidden: Array) -> bool:
    """Whether the kernels can make this step: the device of the current queue is `able`, and all rows begin at 16 bytes."""
    V, D = learned.rows.shape
    starts = learned.rows.pointer | hidden.pointer | (learned.squares.pointer if wide(learned) else 0)
    there = V * D * len(hidden) > 0 and D % 4 == 0 and starts % 16 == 0
    return there and able(device.current().device, D)


def step(
    grad: Array, loss: Array, learned: Any, work: Any, hidden: Array, target: Array, weight: Array | None, rule: Any
) -> None:
    """As gpu/softmax.py's, where it `fits`; of work only score is used."""
    (B, D), V = hidden.shape, len(learned.rows)
    tile, kind = _tile(D), "tf32" if device.current().device.tf32 else "3xtf32"
    staying = -(-B // tile.rows)
    classes = _share(staying, V)
    shares = -(-V // classes)
    parts = device.scratch("parts of the gradient", (shares, B, D), np.float32)
    sums = device.scratch("parts of sums", (shares, B, 2), np.float32)
    examples = device.scratch("examples", (B, 4), np.float32)
    read = parts, sums, work.score, learned.rows, learned.biases, hidden, target, classes, B, V, D
    name = f"measure_{kind}_{tile.width}"
    kernels.launch(__file__, name, "PPPPPPPiiii", (staying, shares), THREADS, *read, shared=tile.shared)
    written = grad, loss, examples, work.score, sums, parts, learned.rows, target, weight, shares, B, D
    kernels.launch(__file__, "combine", "PPPPPPPPPiii", B, COMBINERS, *written)
    known = *learned, examples, hidden, *scalars(rule), wide(learned), B, V, D
    name = f"learn_{kind}_{tile.width}"
    kernels.launch(__file__, name, "PPPPPPfffiiii", -(-V // tile.rows), THREADS, *known, shared=tile.shared)


def _tile(width: int) -> Tile:
    """The smallest tile for rows of a width."""
    return next(tile for tile in TILES if width <= tile.width)


def _share(staying: int, classes: int) -> int:
    """How many classes pass by a block, so that there is about a block a multiprocessor."""
    shares = max(int(device.current().device.multiprocessors) // staying, 1)
    return -(-classes // (shares * PASSING)) * PASSING
