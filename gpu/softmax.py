"""The full softmax over V classes, in two passes over chunks of classes, without a (B, V) array. See `Softmax`.

cuBLAS does the products, softmax.cu the rest, in the same stream, without allocation, copy or synchronisation.

    pass 1, every chunk       logits = hidden W^T; update the largest logit and the sum of exponentials of each row
    pass 2, last chunk first  logits again, except for the last chunk, which are kept; they become d loss / d logit;
                              grad += logits W; W -= rate logits^T hidden, or another rule (gpu/batch_rows.py)

Operations: 8 B V D, minus 2 B C D for the kept chunk of C classes. If all classes are one chunk it is 6 B V D, as in a
framework that keeps B V numbers. Bytes per logit are 28, or 24 if it is kept: written and read in pass 1; written, read,
written and read twice in pass 2. A framework moves 48.

A chunk is as large as memory allows, not as small as the L2 cache. At D = 128 a logit costs 1024 operations, 15 ps on an H200
(67 TFLOP/s). Its 12 bytes between the products cost 3 ps even from memory (4.3 TB/s). Small chunks would save part of these 3
ps, but slow down the products: gradients of 4096 classes are 32 tiles of 128 by 128, for 132 multiprocessors. Every chunk costs
six launches and computes its logits twice. Memory is 256 MiB, or a quarter of the V D numbers of the rows if larger. With few
classes or a small batch all logits are kept. V = 100,000, B = 1024, D = 128: two chunks, 6.7 B V D, 11 launches.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from gpu import batch_rows, device
from gpu.rule import cut
from gpu.runtime import blas, kernels
from gpu.runtime.array import Array
from gpu.runtime.blas import Matrix

LOGITS = 1 << 26  # maximum per chunk for small tables
PART = 4  # a chunk may have 1/PART as many logits as the rows have numbers
STEP = 128  # chunk sizes are multiples of this many classes
LINE = 32  # numbers: rows of logits are aligned to cache lines
THREADS, TILE = 256, 1024  # as in softmax.cu


class Work(NamedTuple):
    """Scratch of up to B rows; the logits of a chunk belong to the queue.

    most    (B,)  the largest logit so far
    sums    (B,)  sum of exp(logit - most) so far
    score   (B,)  logit of the target
    """

    most: Array
    sums: Array
    score: Array


class Chunk(NamedTuple):
    """The classes begin:end, their logits (B, end - begin), without biases, and their part of `learned`."""

    begin: int
    end: int
    logits: Matrix
    learned: Any

    def extent(self) -> tuple[int, int, int]:
        """Returns the first class, the number of classes, and the pitch of the logits, as kernel arguments."""
        return self.begin, self.end - self.begin, self.logits.pitch

    def kernel(self, name: str) -> str:
        """Returns the name of the kernel for these logits."""
        return name if self.logits.size == 4 else f"{name}_half"

    def compute(self, hidden: Array | Matrix) -> Array | Matrix:
        """Writes the logits; returns the rows as their factor, if need be a copy in bfloat16, valid until the next chunk's."""
        rows = _factor("rows of a chunk", self.learned.rows, self.logits.size)
        blas.gemm(self.logits, hidden, rows, b_transposed=True)
        return rows


def workspace(batch: int, width: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls with up to `batch` rows."""
    blas.ready()
    empty = device.current().device.empty
    return Work(*(empty(batch, dtype) for _ in range(3)))


def classes_of_chunk(batch: int, classes: int, width: int, size: int = 4) -> int:
    """Returns the number of classes per chunk, for logits of `size` bytes; larger chunks recompute fewer logits."""
    most = max(LOGITS, classes * width // PART) * 4 // size // max(batch, 1)
    return min(-(-classes // STEP), max(most // STEP, 1)) * STEP


def step(
    grad: Array, loss: Array, learned: Any, work: Work, hidden: Array, target: Array, weight: Array | None, rate: float
) -> None:
    """See the contract.

    On a device of precision "bf16" hidden vectors, rows and logits are rounded to bfloat16, and so is d loss / d logit. Sums,
    and the rows themselves, are float32.
    """
    add_step(grad, loss, learned, work, hidden, target, weight, rate, kept=0)


def add_step(
    grad: Array, loss: Array, learned: Any, work: Work, hidden: Array, target: Array, weight: Array | None, rate: float,
    kept: float = 1,
) -> None:  # fmt: skip
    """Does `step`, but adds d loss / d hidden to `kept` times grad."""
    size = 2 if device.current().device.precision == "bf16" else 4
    chunks, factor = _chunks(learned, len(hidden), size), _factor("hidden", hidden, size)
    rows = _measure_all(loss, work, factor, target, weight, chunks, -1)
    for chunk in reversed(chunks):
        last = chunk is chunks[-1]
        if not last:
            rows = chunk.compute(factor)
        _miss(work, chunk, target, weight)
        blas.gemm(grad, chunk.logits, rows, beta=kept if last else 1)
        batch_rows.move(chunk.learned, chunk.logits, factor, rate)


def log_prob(out: Array, learned: Any, work: Work, hidden: Array, target: Array) -> None:
    """out[b] = log p(target[b] | hidden[b])."""
    _measure_all(out, work, hidden, target, None, _chunks(learned, len(hidden)), 1)


def best(ids: Array, log_probs: Array, learned: Any, work: Work, hidden: Array) -> None:
    """See the contract; raises ValueError for a k that does not fit a block's shared memory."""
    k = ids.shape[1]
    size = 1 << (k + TILE - 1).bit_length()
    room = (device.current().device.shared_block - 1024) // 8  # the kernel needs some of it
    if size > room:
        most = (1 << room.bit_length() - 1) - TILE
        raise ValueError(f"k is {k}, expected at most {most} on this device; use a smaller k")
    chunks = _chunks(learned, len(hidden))
    for chunk in chunks:
        _measure(None, work, hidden, None, None, chunk, 1)
        arrays = ids, log_probs, work.most, work.sums, chunk.logits.pointer, chunk.learned.biases
        sizes = (*chunk.extent(), k, size, chunk is chunks[0], chunk is chunks[-1])
        kernels.launch(__file__, "choose", "PPPPPPiiiiiii", len(hidden), THREADS, *arrays, *sizes, shared=8 * size)


def _factor(name: str, array: Array, size: int) -> Array | Matrix:
    """Returns an array (rows, columns) as a factor with numbers of `size` bytes: itself, or a copy in bfloat16 in scratch."""
    if size == 4:
        return array
    rows, columns = array.shape
    copy = device.scratch(f"{name} in bfloat16", array.size, np.uint16)
    blocks = min(-(-array.size // THREADS), 16 * device.current().device.multiprocessors)
    kernels.launch(__file__, "halve", "PPq", blocks, THREADS, copy, array, array.size)
    return Matrix(copy.pointer, rows, columns, columns, size=2)


def _chunks(learned: Any, batch: int, size: int = 4) -> Sequence[Chunk]:
    """Returns all classes in chunks. The last one, whose logits are kept, is full; the first one has the remainder.

    size  bytes per logit
    """
    classes, width = learned.rows.shape
    most = classes_of_chunk(batch, classes, width, size)
    room = device.scratch("logits", batch * most * size, np.uint8)
    chunks = []
    for end in range(classes, 0, -most):
        begin = max(end - most, 0)
        pitch = -(-(end - begin) // LINE) * LINE
        logits = Matrix(room.pointer, batch, end - begin, pitch, size=size)
        chunks.append(Chunk(begin, end, logits, cut(learned, begin, end)))
    return chunks[::-1]


def _measure_all(
    out: Array, work: Work, hidden: Array | Matrix, target: Array, weight: Array | None, chunks: Sequence[Chunk], sign: float,
) -> Array | Matrix:  # fmt: skip
    """First pass: the largest logit and the sum of each row; out = sign * log p(target), times the weight.

    Returns the rows of the last chunk as a factor.
    """
    return [_measure(out, work, hidden, target, weight, chunk, sign) for chunk in chunks][-1]


def _measure(
    out: Array | None, work: Work, hidden: Array | Matrix, target: Array | None, weight: Array | None, chunk: Chunk,
    sign: float,
) -> Array | Matrix:  # fmt: skip
    rows = chunk.compute(hidden)
    arrays = out, work.most, work.sums, work.score, chunk.logits.pointer, chunk.learned.biases, target, weight
    sizes = (*chunk.extent(), chunk.begin == 0, sign)
    kernels.launch(__file__, chunk.kernel("measure"), "PPPPPPPPiiiif", chunk.logits.rows, THREADS, *arrays, *sizes)
    return rows


def _miss(work: Work, chunk: Chunk, target: Array, weight: Array | None) -> None:
    """Turns logits into d loss / d logit."""
    arrays = chunk.logits.pointer, chunk.learned.biases, work.most, work.sums, target, weight
    kernels.launch(__file__, chunk.kernel("miss"), "PPPPPPiii", chunk.logits.rows, THREADS, *arrays, *chunk.extent())
