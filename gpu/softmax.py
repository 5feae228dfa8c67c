"""The full softmax over V classes, in two passes over chunks of classes: a (B, V) array never exists. See `Softmax`.

Products by cuBLAS, the rest in softmax.cu, in the same stream; nothing is allocated, copied or waited for.

    pass 1, every chunk       logits = hidden W^T; update the largest logit and the sum of exponentials of each row
    pass 2, last chunk first  logits again, except for the last chunk, whose are still there; they become d loss / d logit;
                              grad += logits W; W -= rate logits^T hidden, or by another rule (gpu/batch_rows.py)

Operations: 8 B V D, less 2 B C D for the chunk of C classes that is kept. Where all classes are one chunk, 6 B V D, as in
a framework that keeps B V numbers. Bytes a logit: written and read in pass 1, written, read, written and twice read
in pass 2 is 28, 24 where it is kept. A framework moves 48: the product writes; the softmax reads for the maximum, for the
sum and for its result, and writes; a gradient is filled with zeros; the backward reads that twice and the result once, and
writes; two products read.

A chunk is as large as memory allows without asking, not as small as the L2 cache: at D = 128 a logit costs 1024
operations, 15 ps of an H200 (67 TFLOP/s), and its 12 bytes between the products 3 ps even from memory (4.3 TB/s). What
small chunks save of these 3, they lose on the products: gradients of 4096 classes are 32 tiles of 128 by 128, for 132
multiprocessors, and every chunk pays six launches and computes its logits twice. Memory is 256 MiB, or a quarter of what the
V D numbers of the rows take where that is more; of few classes or a small batch all logits are kept. V = 100,000, B = 1024,
D = 128: two chunks, 6.7 B V D, 11 launches.
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

LOGITS = 1 << 26  # of a chunk, at most, beside small tables
PART = 4  # a chunk may have as many logits as the rows have numbers, over this
STEP = 128  # classes of a chunk are a multiple of it
LINE = 32  # numbers: rows of logits begin at lines of the cache
THREADS, TILE = 256, 1024  # as in softmax.cu


class Work(NamedTuple):
    """Scratch of up to B rows; the logits of a chunk are the queue's.

    most    (B,)  the largest logit so far
    sums    (B,)  sum of exp(logit - most) so far
    score   (B,)  logit of the target
    """

    most: Array
    sums: Array
    score: Array


class Chunk(NamedTuple):
    """The classes begin:end, their logits (B, end - begin), without biases, and what of them learns."""

    begin: int
    end: int
    logits: Matrix
    learned: Any

    def extent(self) -> tuple[int, int, int]:
        """The first class, how many there are, and the pitch of the logits, as the kernels take them."""
        return self.begin, self.end - self.begin, self.logits.pitch

    def kernel(self, name: str) -> str:
        """The kernel that adds the biases, where there are biases."""
        return name if self.learned.biases is None else f"{name}_biased"

    def biased(self, arrays: tuple[Array | int | None, ...]) -> tuple[Array | int | None, ...]:
        """Its arrays, up to the logits, and then the biases."""
        return arrays if self.learned.biases is None else (*arrays, self.learned.biases)


def workspace(batch: int, width: int, dtype: DTypeLike) -> Work:
    """Scratch for calls with up to `batch` rows."""
    blas.ready()
    empty = device.current().device.empty
    return Work(*(empty(batch, dtype) for _ in range(3)))


def classes_of_chunk(batch: int, classes: int, width: int) -> int:
    """How many of the classes have their logits at a time, the more the fewer are computed twice."""
    most = max(LOGITS, classes * width // PART) // max(batch, 1)
    return min(-(-classes // STEP), max(most // STEP, 1)) * STEP


def step(
    grad: Array, loss: Array, learned: Any, work: Work, hidden: Array, target: Array, weight: Array | None, rate: float
) -> None:
    """Write grad (B, D) = d loss / d hidden and loss (B,) in nats; every row moves against the gradient summed over B.

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
    """Write the k most likely classes of each row, most likely first; ids and log_probs (B, k).

    Exact. Among equal logits the lower id comes first. Raises ValueError for a k that does not fit a block's shared memory.
    """
    k = ids.shape[1]
    size = 1 << (k + TILE - 1).bit_length()
    room = (device.current().device.shared_block - 1024) // 8  # the kernel needs a little for itself
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
    """All classes in chunks. The last one, whose logits are kept, is full; the first one has the remainder."""
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
    """The first pass: the largest logit and the sum of each row; out = sign * log p(target), times the weight."""
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
    """Logits become d loss / d logit."""
    read = work.most, work.sums, target
    if weight is None and chunk.learned.biases is None:
        arrays: tuple[Array | int | None, ...] = (chunk.logits.pointer, *read)
        kernels.launch(__file__, "miss", "PPPPiii", chunk.logits.rows, THREADS, *arrays, *chunk.extent())
    else:
        arrays = chunk.logits.pointer, chunk.learned.biases, *read, weight
        kernels.launch(__file__, "miss_weighted", "PPPPPPiii", chunk.logits.rows, THREADS, *arrays, *chunk.extent())
