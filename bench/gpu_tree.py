"""The tree on a GPU: the serial loop, and nodes that learn from several examples at once, beside the cores of the host."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench import tree as cpu_tree
from bench.gpu_machine import Contest, Machine, near
from cpu.tree import path
from hybrid.contract import Learned, Rule
from tests.support.visits import learn_together

TREES, QUICK_TREES = (1_000_000, 10_000_000), (500,)
SWEEP, QUICK_SWEEP = (64, 256, 1024, 4096, 16_384, 65_536), (80,)  # examples of a batch
GROUP = 64  # examples that a node learns from at once, beside one and all of a batch
MODE = "deterministic"


def tree(machine: Machine, quick: bool, threads: int) -> Iterator[Callable[[], Contest]]:
    """What makes the contests of the tree on the device and on all cores of its host, with the same targets."""
    for classes in QUICK_TREES if quick else TREES:
        yield partial(_tree, machine, classes, cpu_tree.BATCH, threads, 1, beside=True)


def sweep(machine: Machine, quick: bool, threads: int) -> Iterator[Callable[[], Contest]]:
    """What makes the contests of batches of other sizes, and of nodes that learn from several examples at once: ours alone."""
    for batch in QUICK_SWEEP if quick else SWEEP:
        for together in sorted({1, min(GROUP, batch), batch}):
            if (batch, together) != (cpu_tree.BATCH, 1):
                yield partial(
                    _tree, machine, (QUICK_TREES if quick else TREES)[0], batch, threads, together, beside=False
                )


def _tree(machine: Machine, classes: int, batch: int, threads: int, together: int, beside: bool) -> Contest:
    """Beside the same tree on the cores of the host, or alone."""
    task = cpu_tree.Task(classes, threads, batch=batch)
    made = contest(machine, task, together)
    if beside:
        made.works.append(cpu_tree.ours(task))
    return made


def contest(machine: Machine, task: cpu_tree.Task, together: int) -> Contest:
    """Our step; together: the examples that a node learns from at once."""
    classes, batch, width = task.classes, task.batch, task.width
    params = {"classes": classes, "width": width, "batch": batch, "together": together}
    made = Contest(machine, "tree.step", params, batch, "examples/s")
    put, device = machine.device.from_host, machine.device
    nodes, targets = put(task.nodes), [put(target) for target in task.targets]
    hidden = [put(vectors) for vectors in task.hidden]
    grad, loss = device.empty((batch, width), np.float32), device.empty(batch, np.float32)
    turns = itertools.cycle(zip(itertools.cycle(hidden), targets, strict=False))
    expected = learned(task, together)
    learn = _learner(made, task, together)

    def check():
        met, first, moved, pulled, losses = expected
        near("gradient of hidden", device.to_host(grad), pulled)
        near("loss", device.to_host(loss), losses)
        near("nodes", some_rows(made, nodes, met), moved, first)

    made.ours(lambda: learn(grad, loss, Learned(nodes), *next(turns)), check)
    return made


def _learner(made: Contest, task: cpu_tree.Task, together: int) -> Callable[..., None]:
    """A step of the tree: learn(grad, loss, learned, hidden, target)."""
    from gpu import tree_batch, tree_softmax

    rule, depth, sizes = Rule(cpu_tree.RATE), task.tree.depth, (task.batch, task.width)
    if together == 1:
        plan = made.do(tree_softmax.plan, task.tree)
        work = made.do(tree_softmax.workspace, *sizes, depth, np.float32)

        def learn(grad, loss, learned, hidden, target):
            tree_softmax.step(grad, loss, learned, work, plan, hidden, target, None, rule, MODE)
    else:
        plan = made.do(tree_batch.plan, task.tree)
        work = made.do(tree_batch.workspace, *sizes, depth, together, np.float32)

        def learn(grad, loss, learned, hidden, target):
            tree_batch.step(grad, loss, learned, work, plan, hidden, target, None, rule, together)

    return learn


def learned(task: cpu_tree.Task, together: int, rate: float = cpu_tree.RATE):
    """Ids of the nodes that the first batch meets, those nodes before and after the step, the gradients and the losses."""
    lists = [path(task.tree, leaf) for leaf in task.targets[0]]
    met = np.unique([node for steps in lists for node, _ in steps])
    place = {int(node): i for i, node in enumerate(met)}
    first = task.nodes[met].astype(np.float64)
    nodes, hidden = Learned(first.copy()), task.hidden[0].astype(np.float64)
    short = [[(place[node], turn) for node, turn in steps] for steps in lists]
    return met, first, nodes.rows, *learn_together(nodes, hidden, short, np.ones(len(hidden)), Rule(rate), together)


def some_rows(contest: Contest, table, ids: np.ndarray) -> np.ndarray:
    """Some rows of a table that is too large to fetch for them."""
    from gpu import rows

    device = contest.machine.device
    out = device.empty((ids.size, table.shape[1]), np.float32)
    contest.do(rows.gather, out, table, device.from_host(ids.astype(np.int32)))
    return device.to_host(out)
