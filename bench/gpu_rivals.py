"""Rivals of `bench gpu` that take long to make ready, or are not everywhere: each in a contest of its own beside ours.

So one that fails leaves the others. Units: PyTorch's step compiled, and in a CUDA graph. Softmax:
PyTorch's compiled, in chunks, and Cut Cross-Entropy in bf16, with small gradients and without. Rows: sums in any order.
"""

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench import gpu_sparse
from bench.gpu_machine import Contest, Machine
from bench.gpu_sparse import TorchSoftmax
from bench.gpu_units import ByHand, Collection, collection, contest

CHUNK = 256  # examples
BF16_TOLERANCE = 2e-2  # factors of 8 significant bits


def rivals(machine: Machine, quick: bool) -> Iterator[Callable[[], Contest]]:
    """What makes the contests; none without PyTorch."""
    if machine.torch is None:
        print(f"no rivals: {machine.silent}", flush=True)
        return
    units = collection(quick)
    for fused in (Graphed, Compiled):
        yield partial(contest, machine, "units.step", units, [fused])
    problem = gpu_sparse.classification(quick)
    for kind, tf32 in softmax_rivals(machine.torch):
        yield partial(gpu_sparse.softmax_contest, machine, problem, tf32, [kind])
    yield partial(_scatter, machine, quick)


def softmax_rivals(torch) -> Iterator[tuple[type[TorchSoftmax], bool]]:
    """Those that this PyTorch and its neighbours have; each with whether TF32 is allowed, on both sides."""
    kinds: list[type[TorchSoftmax]] = [CompiledSoftmax]
    if hasattr(torch.nn, "LinearCrossEntropyOptions"):
        kinds.append(Chunked)
    yield from ((kind, tf32) for kind in kinds for tf32 in (False, True))
    if importlib.util.find_spec("cut_cross_entropy"):
        yield from ((kind, True) for kind in (Cut, CutExactly))


def _scatter(machine: Machine, quick: bool) -> Contest:
    """Most ids: where many are equal, atomics wait for each other."""
    size, width = (gpu_sparse.QUICK_ROWS, gpu_sparse.QUICK_WIDTH) if quick else (gpu_sparse.ROWS, gpu_sparse.WIDTH)
    count = (gpu_sparse.QUICK_IDS if quick else gpu_sparse.IDS)[-1]
    rng = np.random.default_rng(7)
    ids = gpu_sparse.zipf(rng, size, (gpu_sparse.TURNS, count))
    table, grad = (rng.standard_normal((rows, width), np.float32) for rows in (size, count))
    return gpu_sparse.scatter(machine, table, ids, grad, fixed=False)


# Units


class Compiled(ByHand):
    """The fastest form by hand, compiled."""

    name, compiler = "bmm by hand, torch.compile", "inductor"

    def __init__(self, torch, collection: Collection, place: str):
        super().__init__(torch, collection, place)
        self.step = torch.compile(super().step, backend=self.compiler)  # type: ignore[method-assign]


class Graphed(ByHand):
    """The fastest form by hand, replayed as a CUDA graph: no Python between kernels."""

    name = "bmm by hand, CUDA graph"

    def __init__(self, torch, collection: Collection, place: str):
        super().__init__(torch, collection, place)
        self.step = graphed(torch, super().step)  # type: ignore[method-assign]


def graphed(torch, step: Callable[[], None]) -> Callable[[], None]:
    """A step as a CUDA graph. It runs as it is when first called; at the second call it is recorded, which computes nothing."""
    graph, called = torch.cuda.CUDAGraph(), 0

    def run() -> None:
        nonlocal called
        called += 1
        if called == 1:
            step()
            return
        if called == 2:
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                step()
        graph.replay()

    return run


# Softmax


class CompiledSoftmax(TorchSoftmax):
    """Linear and cross entropy, compiled with their backward."""

    name, compiler = "linear + cross_entropy, torch.compile, + SGD", "inductor"

    def __init__(self, torch, problem: gpu_sparse.Classification, place: str):
        super().__init__(torch, problem, place)
        self.sum_of_losses = torch.compile(super().sum_of_losses, backend=self.compiler)  # type: ignore[method-assign]


class Chunked(TorchSoftmax):
    """Never more than the logits of some examples."""

    name = f"linear_cross_entropy by {CHUNK} + SGD"

    def __init__(self, torch, problem: gpu_sparse.Classification, place: str):
        super().__init__(torch, problem, place)
        self.options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=CHUNK)

    def sum_of_losses(self, hidden, weights, target):
        """What is differentiated."""
        return self.functional.linear_cross_entropy(hidden, weights, target, reduction="sum", options=self.options)


class Cut(TorchSoftmax):
    """Cut Cross-Entropy as it is installed: bf16, logits in no memory, small gradients left out. Weights stay in float32."""

    name, tolerance, least = "Cut Cross-Entropy, bf16, + SGD", BF16_TOLERANCE, "high"

    def sum_of_losses(self, hidden, weights, target):
        """What is differentiated."""
        from cut_cross_entropy import linear_cross_entropy

        rounded = hidden.bfloat16(), weights.bfloat16()
        return linear_cross_entropy(*rounded, target, reduction="sum", filter_eps=self.least, impl="cce")


class CutExactly(Cut):
    """With all gradients."""

    name, least = "Cut Cross-Entropy, bf16, exact, + SGD", None  # type: ignore[assignment]
