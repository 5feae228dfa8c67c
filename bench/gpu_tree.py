"""The tree on a GPU: the serial loop, to the bit or up to rounding, beside the host's cores; and ways to learn otherwise."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bench import tree as cpu_tree
from bench.gpu_machine import Contest, Machine, near
from cpu.tree import split
from hybrid.contract import Learned, Rule

TREES, QUICK_TREES = (1_000_000, 10_000_000), (500,)
SWEEP, QUICK_SWEEP = (64, 256, 1024, 4096, 16_384, 65_536), (80,)  # examples of a batch
GROUP = 64  # examples that a node learns from at once, beside one and all of a batch
TOP = 255  # nodes that learn as dense products
MOST = 4096  # examples of the largest batch in which nodes learn in order up to rounding


class Way(NamedTuple):
    """How the nodes learn.

    together  from so many examples at once
    mode      of those that learn from one after another
    top       the first so many nodes learn from the whole batch, as dense products; 0: none
    """

    together: int = 1
    mode: str = "deterministic"
    top: int = 0

    def params(self) -> dict[str, Any]:
        """What a record says of it."""
        return {"together": self.together} | {
            name: value for name, value in self._asdict().items() if value != getattr(Way(), name)
        }


def ways(batch: int) -> Iterator[Way]:
    """Those that are measured at this size of a batch."""
    for together in sorted({1, min(GROUP, batch), batch}):
        yield Way(together)
    if batch <= MOST:
        yield Way(mode="ordered")
        yield Way(mode="ordered", top=TOP)


def tree(machine: Machine, quick: bool, threads: int) -> Iterator[Callable[[], Contest]]:
    """What makes the contests of the tree on the device and on all cores of its host, with the same targets."""
    for classes in QUICK_TREES if quick else TREES:
        yield partial(_tree, machine, classes, cpu_tree.BATCH, threads, Way(), beside=True)


def sweep(machine: Machine, quick: bool, threads: int) -> Iterator[Callable[[], Contest]]:
    """What makes the contests of batches of other sizes, and of nodes that learn in other ways: ours alone."""
    for batch in QUICK_SWEEP if quick else SWEEP:
        for way in ways(batch):
            if (batch, way) != (cpu_tree.BATCH, Way()):
                yield partial(_tree, machine, (QUICK_TREES if quick else TREES)[0], batch, threads, way, beside=False)


def _tree(machine: Machine, classes: int, batch: int, threads: int, way: Way, beside: bool) -> Contest:
    """Beside the same tree on the cores of the host, or alone."""
    task = cpu_tree.Task(classes, threads, batch=batch)
    made = contest(machine, task, way)
    if beside:
        made.works.append(cpu_tree.ours(task))
    return made


def contest(machine: Machine, task: cpu_tree.Task, way: Way) -> Contest:
    """Our step."""
    classes, batch, width = task.classes, task.batch, task.width
    params = {"classes": classes, "width": width, "batch": batch} | way.params()
    made = Contest(machine, "tree.step", params, batch, "examples/s")
    put, device = machine.device.from_host, machine.device
    nodes, targets = put(task.nodes), [put(target) for target in task.targets]
    hidden = [put(vectors) for vectors in task.hidden]
    grad, loss = device.empty((batch, width), np.float32), device.empty(batch, np.float32)
    turns = itertools.cycle(zip(itertools.cycle(hidden), targets, strict=False))
    expected = cpu_tree.learned(task, way.together, way.top)
    learn = _learner(made, task, way)

    def check():
        met, first, moved, pulled, losses = expected
        near("gradient of hidden", device.to_host(grad), pulled)
        near("loss", device.to_host(loss), losses)
        near("nodes", some_rows(made, nodes, met), moved, first)

    made.ours(lambda: learn(grad, loss, Learned(nodes), *next(turns)), check)
    return made


def _learner(made: Contest, task: cpu_tree.Task, way: Way) -> Callable[..., None]:
    """A step of the tree: learn(grad, loss, learned, hidden, target)."""
    from gpu import tree_batch

    if way.together == 1:
        return _learner_in_order(made, task, way)
    rule, sizes = Rule(cpu_tree.RATE), (task.batch, task.width, task.tree.depth, way.together)
    plan, work = made.do(tree_batch.plan, task.tree), made.do(tree_batch.workspace, *sizes, np.float32)

    def learn(grad, loss, learned, hidden, target):
        tree_batch.step(grad, loss, learned, work, plan, hidden, target, None, rule, way.together)

    return learn


def _learner_in_order(made: Contest, task: cpu_tree.Task, way: Way) -> Callable[..., None]:
    """The same where nodes learn from one example after another, but for those of the top."""
    from gpu import tree_softmax

    upper, lower = split(task.tree, way.top) if way.top else (None, task.tree)
    rule, plan, sizes = Rule(cpu_tree.RATE), made.do(tree_softmax.plan, lower), (task.batch, task.width)
    work = made.do(tree_softmax.workspace, *sizes, task.tree.depth, np.float32)
    learn_top = _top_learner(made, task, upper, way.top) if way.top else None

    def learn(grad, loss, learned, hidden, target):
        tree_softmax.step(grad, loss, learned, work, plan, hidden, target, None, rule, way.mode)
        if learn_top:
            learn_top(grad, loss, learned, hidden, target)

    return learn


def _top_learner(made: Contest, task: cpu_tree.Task, tree: Any, top: int) -> Callable[..., None]:
    """The same of the first nodes, which add their part to grad and loss."""
    from gpu import head, split, tree_softmax

    rule, plan = Rule(cpu_tree.RATE), made.do(tree_softmax.plan, tree)
    work = made.do(split.workspace, task.batch, task.width, top, np.float32)
    losses = made.machine.device.empty(task.batch, np.float32)

    def learn(grad, loss, learned, hidden, target):
        split.step(grad, losses, Learned(learned.rows[:top]), work, plan, hidden, target, None, rule)
        head.add(loss, losses)

    return learn


def some_rows(contest: Contest, table, ids: np.ndarray) -> np.ndarray:
    """Some rows of a table that is too large to fetch for them."""
    from gpu import rows

    device = contest.machine.device
    out = device.empty((ids.size, table.shape[1]), np.float32)
    contest.do(rows.gather, out, table, device.from_host(ids.astype(np.int32)))
    return device.to_host(out)
