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
        """Returns the name of the kernel variant, with or without biases."""
        return name if self.learned.biases is None else f"{name}_biased"

    def biased(self, arrays: tuple[Array | int | None, ...]) -> tuple[Array | int | None, ...]:
        """Returns the kernel's arrays, up to the logits, followed by the biases if present."""
        return arrays if self.learned.biases is None else (*arrays, self.learned.biases)


def workspace(batch: int, width: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls with up to `batch` rows."""
    blas.ready()
    empty = device.current().device.empty
    return Work(*(empty(batch, dtype) for _ in range(3)))


def classes_of_chunk(batch: int, classes: int, width: int) -> int:
    """Returns the number of classes per chunk; larger chunks recompute fewer logits."""
    most = max(LOGITS, classes * width // PART) // max(batch, 1)
    return min(-(-classes // STEP), max(most // STEP, 1)) * STEP


def step(
    grad: Array, loss: Array, learned: Any, work: Work, hidden: Array, target: Array, weight: Array | None, rate: float
) -> None:
    """Writes grad (B, D) = d loss / d hidden and loss (B,) in nats; updates every row with the gradient summed over B.

    weight  (B,): multiplies an example's loss and gradients; None: all 1
    """
    chunks = _chunks(learned, len(hidden))
    _measure_all(loss, work, hidden, target, weight, chunks, -1)
    for chunk in reversed(chunks):
        last = chunk is chunks[-1]
        if not last:
            blas.gemm(chunk.logits, hidden, chunk.learned.rows, b_transposed=True)
        _miss(work, chunk, target, weight)
        blas.gemm(grad, chunk.logits, chunk.learned.rows, beta=0 if last else 1)
        batch_rows.move(chunk.learned, chunk.logits, hidden, rate)


def log_prob(out: Array, learned: Any, work: Work, hidden: Array, target: Array) -> None:
    """out[b] = log p(target[b] | hidden[b])."""
    _measure_all(out, work, hidden, target, None, _chunks(learned, len(hidden)), 1)


def best(ids: Array, log_probs: Array, learned: Any, work: Work, hidden: Array) -> None:
    """Writes the k most likely classes of each row, most likely first; ids and log_probs (B, k).

    Exact. Among equal logits the lower id comes first. Raises ValueError for a k that does not fit a block's shared memory.
    """
    k = ids.shape[1]
    size = 1 << (k + TILE - 1).bit_length()
    room = (device.current().device.shared_block - 1024) // 8  # the kernel needs some of it
    if size > room:
        most = (1 << room.bit_length() - 1) - TILE
        raise ValueError(f"k is {k}, expected at most {most} on this device; ask for fewer classes")
    chunks = _chunks(learned, len(hidden))
    for chunk in chunks:
        _measure(None, work, hidden, None, None, chunk, 1)
        arrays = chunk.biased((ids, log_probs, work.most, work.sums, chunk.logits.pointer))
        sizes = (*chunk.extent(), k, size, chunk is chunks[0], chunk is chunks[-1])
        kinds = "P" * len(arrays) + "iiiiiii"
        kernels.launch(__file__, chunk.kernel("choose"), kinds, len(hidden), THREADS, *arrays, *sizes, shared=8 * size)


def _chunks(learned: Any, batch: int) -> Sequence[Chunk]:
    """Returns all classes in chunks. The last one, whose logits are kept, is full; the first one has the remainder."""
    classes, width = learned.rows.shape
    size = classes_of_chunk(batch, classes, width)
    room = device.scratch("logits", (batch, size), np.float32)
    chunks = []
    for end in range(classes, 0, -size):
        begin = max(end - size, 0)
        pitch = -(-(end - begin) // LINE) * LINE
        logits = Matrix(room.pointer, batch, end - begin, pitch)
        chunks.append(Chunk(begin, end, logits, cut(learned, begin, end)))
    return chunks[::-1]


def _measure_all(
    out: Array, work: Work, hidden: Array, target: Array, weight: Array | None, chunks: Sequence[Chunk], sign: float
) -> None:
    """First pass: the largest logit and the sum of each row; out = sign * log p(target), times the weight."""
    for chunk in chunks:
        _measure(out, work, hidden, target, weight, chunk, sign)


def _measure(
    out: Array | None, work: Work, hidden: Array, target: Array | None, weight: Array | None, chunk: Chunk, sign: float
) -> None:
    blas.gemm(chunk.logits, hidden, chunk.learned.rows, b_transposed=True)
    arrays = (*chunk.biased((out, work.most, work.sums, work.score, chunk.logits.pointer)), target, weight)
    kinds, name = "P" * len(arrays) + "iiiif", chunk.kernel("measure")
    kernels.launch(__file__, name, kinds, len(hidden), THREADS, *arrays, *chunk.extent(), chunk.begin == 0, sign)


def _miss(work: Work, chunk: Chunk, target: Array, weight: Array | None) -> None:
    """Turns logits into d loss / d logit."""
    read = work.most, work.sums, target
    if weight is None and chunk.learned.biases is None:
        arrays: tuple[Array | int | None, ...] = (chunk.logits.pointer, *read)
        kernels.launch(__file__, "miss", "PPPPiii", chunk.logits.rows, THREADS, *arrays, *chunk.extent())
    else:
        arrays = chunk.logits.pointer, chunk.learned.biases, *read, weight
        kernels.launch(__file__, "miss_weighted", "PPPPPPiii", chunk.logits.rows, THREADS, *arrays, *chunk.extent())
