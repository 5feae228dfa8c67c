"""The contenders of `bench crossover` on a GPU: steps of the output layer alone, with the contests of `bench gpu`."""

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from bench.crossover_costs import TOGETHER, Size
from bench.crossover_points import CLASSES, WIDTH
from bench.gpu_machine import Contest, Machine

SIZES = (
    *(Size(count, WIDTH, 1024) for count in CLASSES),
    *(Size(count, WIDTH, batch) for batch in (64, 8192) for count in (10_000, 1_000_000)),
)
QUICK = (Size(300, WIDTH, 16),)
DENSE = 1_000_000  # classes up to which dense products are measured: their oracle is computed in float64 on the host
SECONDS = 40  # that a contest takes, about
BY_NAME = {  # what a record of `bench gpu` is called, without the version of PyTorch
    "linear + cross_entropy + SGD": "torch full",
    "linear_cross_entropy by": "torch chunked",
    "Cut Cross-Entropy, bf16, exact": "cut cross-entropy",
    "Hogwild on the device": "tree Hogwild",
}


class Made(NamedTuple):
    """A contest that can be held at a size; ours: which contender our step is."""

    size: Size
    ours: str
    make: Callable[[], Contest]


@contextlib.contextmanager
def machine() -> Iterator[Machine | None]:
    """The device, given back at the end; None where there is none. CUDASIM=1 takes the simulated one."""
    if simulated := bool(os.environ.get("CUDASIM")):
        from bench.simulated import simulate

        simulate()
    from gpu.available import unavailable

    if reason := unavailable():
        print(f"no GPU to measure: {reason}")
        yield None
        return
    found = Machine(simulated)
    try:
        yield found
    finally:
        found.close()


def contests(machine: Machine, quick: bool, threads: int) -> Iterator[Made]:
    """Dense products, and trees in all ways to learn, at every size."""
    from bench import gpu_hogwild, gpu_tree
    from bench.tree_task import Task

    for size in QUICK if quick else SIZES:
        ways = {"tree of mini-batches": gpu_tree.Way(min(TOGETHER, size.batch))}
        if size.batch <= gpu_tree.MOST:
            ways["tree in order"] = gpu_tree.Way(mode="ordered")
            ways["split tree"] = gpu_tree.Way(mode="ordered", top=gpu_tree.TOP)
        for name, way in ways.items():

            def tree(size: Size = size, way: gpu_tree.Way = way) -> Contest:
                return gpu_tree.contest(machine, Task(size.classes, threads, size.width, size.batch), way)

            yield Made(size, name, tree)
        hogwild = partial(gpu_hogwild.of_classes, machine, size.classes, size.batch, threads)
        yield Made(size, "tree of whole batches", hogwild)
        if size.classes <= DENSE:
            yield Made(size, "full", partial(_dense, machine, size))


def _dense(machine: Machine, size: Size) -> Contest:
    """Ours and PyTorch's in fp32; Cut Cross-Entropy, where it is, in bf16."""
    from bench import gpu_rivals, gpu_sparse

    there = [kind for kind, _ in gpu_rivals.softmax_rivals(machine.torch)] if machine.torch else []
    kinds = [one for one in (gpu_rivals.Chunked, gpu_rivals.CutExactly) if one in there]
    return gpu_sparse.softmax_contest(
        machine, gpu_sparse.Classification(*size), False, [gpu_sparse.TorchSoftmax, *kinds]
    )


def records(made: Made, repeat: int) -> list[dict]:
    """Hold a contest; its records as those of the crossover. What is not a contender of it is left out."""
    found = []
    for one in made.make().records(repeat):
        name = (
            made.ours if one["who"] == "ours" else next((BY_NAME[part] for part in BY_NAME if part in one["who"]), None)
        )
        if name:
            params = made.size._asdict() | ({} if one["who"].startswith("torch") else {"contender": name})
            found.append(one | {"bench": "crossover", "work": "crossover.output", "params": params, "contender": name})
    return found
