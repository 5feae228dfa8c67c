"""A step of the full softmax by kernels of our own, which keep no logit in global memory; see gpu/fused_softmax.cu.

Four launches and 8 B V D operations of the tensor cores: in TF32 where the device was made with tf32=True, else as 3xTF32,
three times as many and nearly fp32. Rows are read twice and written once; of the gradient of hidden vectors each block, one a
multiprocessor, keeps a part (B, D), to which it adds once for every 128 classes.
"""

from typing import Any

import numpy as np

from gpu import device, kernels
from gpu.array import Array
from gpu.rule import keep

LEAST = (8, 0)  # compute capability: the first tensor cores with TF32
WIDTH, CLASSES, ROWS, PITCH = 128, 128, 32, 132  # as in fused_softmax.cu
STREAMED = 4 * PITCH * (CLASSES + 2 * ROWS)  # bytes of shared memory: a tile of classes, rows of the batch twice
SHARED = STREAMED + 4 * PITCH * ROWS  # and what they miss
NUMBERS = 1 << 26  # of all parts of the gradient, at most: 256 MiB
THREADS = 256


def able(where: device.Device) -> bool:
    """Whether a device has the tensor cores, and the shared memory for a block: the large ones from sm_80 on."""
    return bool(where.capability >= LEAST and where.shared_block >= SHARED)


def fits(learned: Any, hidden: Array, rule: Any) -> bool:
    """Whether the kernels can make this step on the device of the current queue: SGD or decay alone, rows of up to 128 numbers.

    Rows have to begin at 16 bytes, and parts of the gradient to fit 256 MiB.
    """
    B, D = hidden.shape
    simple = learned.biases is None and learned.squares is None and rule.clip is None
    aligned = D % 4 == 0 and (learned.rows.pointer | hidden.pointer) % 16 == 0
    room = 0 < B * D * _blocks(len(learned.rows)) <= NUMBERS
    return simple and aligned and D <= WIDTH and room and able(device.current().device)


def step(
    grad: Array, loss: Array, learned: Any, work: Any, hidden: Array, target: Array, weight: Array | None, rule: Any
) -> None:
    """As gpu/softmax.py's, where it `fits`; of work are used most, sums and score."""
    (B, D), V, blocks = hidden.shape, len(learned.rows), _blocks(len(learned.rows))
    kind = "tf32" if device.current().device.tf32 else "3xtf32"
    sums = device.scratch("parts of sums", (blocks, B, 2), np.float32)
    parts = device.scratch("parts of the gradient", (blocks, B, D), np.float32)
    read = sums, work.score, learned.rows, hidden, target, B, V, D
    kernels.launch(__file__, f"measure_{kind}", "PPPPPiii", blocks, THREADS, *read, shared=STREAMED)
    written = loss, work.most, work.sums, work.score, sums, weight, blocks, B
    kernels.launch(__file__, "combine", "PPPPPPii", -(-B // (THREADS // 32)), THREADS, *written)
    known = learned.rows, parts, work.most, work.sums, hidden, target, weight, rule.rate, keep(rule), B, V, D
    kernels.launch(__file__, f"learn_{kind}", "PPPPPPPffiii", blocks, THREADS, *known, shared=SHARED)
    kernels.launch(__file__, "sum_parts", "PPii", -(-B * D // THREADS), THREADS, grad, parts, blocks, B * D)


def _blocks(classes: int) -> int:
    """A block a multiprocessor, as far as there are tiles of classes."""
    return min(int(device.current().device.multiprocessors), -(-classes // CLASSES))
