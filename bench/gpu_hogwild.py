"""Hogwild on a GPU, the rival of our trees: an example a warp, and all of them race (Niu et al. 2011, arXiv:1106.5730)."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench import gpu_tree
from bench.gpu_machine import Contest, Machine, near
from bench.tree_task import BATCH, RATE, Task, learned

CAREFUL = 1e-5  # the rate of the step that is checked: so small that it hardly matters who came first
TOLERANCE = 1e-2


def first(machine: Machine, quick: bool, threads: int) -> Iterator[Callable[[], Contest]]:
    """What makes those of a first contact: our tree, all of the batch together, beside this rival; then its other ways.

    They share a task, which is made once.
    """
    classes, batch = (gpu_tree.QUICK_TREES[0], gpu_tree.QUICK_BATCH) if quick else (gpu_tree.TREES[0], BATCH)
    task = Task(classes, threads, batch=batch)
    yield partial(contest, machine, task)
    yield from (partial(gpu_tree.contest, machine, task, way) for way in gpu_tree.first_ways(batch))


def contest(machine: Machine, task: Task) -> Contest:
    """Beside our tree whose nodes learn from the whole batch at once."""
    batch = task.batch
    made = gpu_tree.contest(machine, task, gpu_tree.Way(batch))
    put, get, device = machine.device.from_host, machine.device.to_host, machine.device
    nodes, plan = put(task.nodes), (put(task.tree.leaf_up), put(task.tree.node_up))
    batches = [(put(h), put(t)) for h, t in zip(itertools.cycle(task.hidden), task.targets, strict=False)]
    grad, loss = device.empty((batch, task.width), np.float32), device.empty(batch, np.float32)
    turns = itertools.cycle(batches)

    def check():
        """One careful step from the first nodes: to first order it is that of a mini-batch."""
        met, first, moved, pulled, losses = learned(task, batch, rate=CAREFUL)
        device.write(nodes, task.nodes)
        made.do(step, grad, loss, nodes, *plan, *batches[0], CAREFUL)
        near("loss", get(loss), losses, tolerance=TOLERANCE)
        near("gradient of hidden", get(grad), pulled, tolerance=TOLERANCE)
        near("nodes", gpu_tree.some_rows(made, nodes, met), moved, first, tolerance=TOLERANCE)

    made.beside("Hogwild on the device", lambda: step(grad, loss, nodes, *plan, *next(turns), RATE), check)
    return made


def step(grad, loss, nodes, leaf_up, node_up, hidden, target, rate: float) -> None:
    """One step, on the current queue."""
    from gpu.runtime import kernels

    B, D = hidden.shape
    values = grad, loss, nodes, leaf_up, node_up, hidden, target, rate, B, D
    kernels.launch(__file__, "hogwild", "PPPPPPPfii", -(-B // 8), 256, *values)
