"""The tree on a GPU: nodes that learn from the whole batch at once, from groups of examples, and from one after another."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench.gpu.machine import Contest, Machine
from bench.harness.measure import near
from bench.oracles.tree import BATCH, RATE, Task, learned
from hybrid.contract import Learned

LEAVES, QUICK_LEAVES = 1_000_000, 500
QUICK_BATCH = 80
GROUP = 64  # examples per group at a node, besides one and the whole batch
GRAPH = "ours, one graph"


def tree_contest(machine: Machine, task: Task, together: int) -> Contest:
    """Returns our step, and the same as a CUDA graph: several launches from Python, or one.

    together  examples per group at a node
    """
    classes, batch, width = task.classes, task.batch, task.width
    params = {"classes": classes, "width": width, "batch": batch, "together": together}
    made = Contest(machine, "tree.step", params, batch, "examples/s")
    put, device = machine.device.from_host, machine.device
    nodes, hidden = put(task.nodes), [put(vectors) for vectors in task.hidden]
    batches = [(one, put(target)) for one, target in zip(itertools.cycle(hidden), task.targets, strict=False)]
    grad, loss = device.empty((batch, width), np.float32), device.empty(batch, np.float32)
    turns = itertools.cycle(batches)
    expected = learned(task, together)
    learn = partial(_learner(made, task, together), grad, loss, Learned(nodes))

    def check():
        met, first, moved, pulled, losses = expected
        near("gradient of hidden", device.to_host(grad), pulled)
        near("loss", device.to_host(loss), losses)
        near("nodes", some_rows(made, nodes, met), moved, first)

    def restart():
        device.write(nodes, task.nodes)

    made.ours(lambda: learn(*next(turns)), check)
    _recorded(made, learn, batches, restart, check)
    return made


def _recorded(
    made: Contest, learn: Callable[..., None], batches: list[tuple], restart: Callable[[], None], check: Callable[[], None]
) -> None:  # fmt: skip
    """Adds the step as a rival, each batch in a graph of its own: all are recorded before the first counted step."""
    from gpu.runtime.queues import MOST as GRAPHS

    recorder, batches = made.machine.device.recorder(), batches[:GRAPHS]
    turns = itertools.cycle(range(len(batches)))

    def step(n):
        recorder.run(n, learn, *batches[n])

    def recorded():
        for n in (*range(len(batches)), *range(len(batches))):
            made.do(step, n)
        restart()
        made.do(step, 0)
        check()

    made.beside(GRAPH, lambda: step(next(turns)), recorded)


def _learner(made: Contest, task: Task, together: int) -> Callable[..., None]:
    """Returns a step of the tree: learn(grad, loss, learned, hidden, target)."""
    return _learner_in_order(made, task) if together == 1 else _learner_of_batches(made, task, together)


def _learner_of_batches(made: Contest, task: Task, together: int) -> Callable[..., None]:
    """Returns the step with nodes that learn from groups of examples."""
    from gpu import tree_batch

    plan = made.do(tree_batch.plan, task.tree)
    work = made.do(tree_batch.workspace, task.batch, task.width, task.tree.depth, together, np.float32)

    def learn(grad, loss, learned, hidden, target):
        tree_batch.step(grad, loss, learned, work, plan, hidden, target, None, RATE, together)

    return learn


def _learner_in_order(made: Contest, task: Task) -> Callable[..., None]:
    """Returns the step with nodes that learn from one example after another."""
    from gpu import tree_softmax

    plan = made.do(tree_softmax.plan, task.tree)
    work = made.do(tree_softmax.workspace, task.batch, task.width, task.tree.depth, np.float32)

    def learn(grad, loss, learned, hidden, target):
        tree_softmax.step(grad, loss, learned, work, plan, hidden, target, None, RATE)

    return learn


def some_rows(contest: Contest, table, ids: np.ndarray) -> np.ndarray:
    """Copies some rows of a table that is too large to copy whole."""
    from gpu import rows

    device = contest.machine.device
    out = device.empty((ids.size, table.shape[1]), np.float32)
    contest.do(rows.gather, out, table, device.from_host(ids.astype(np.int32)))
    return device.to_host(out)


def tree(machine: Machine, quick: bool, threads: int) -> Iterator[Callable[[], Contest]]:
    """Yields factories of the contests: nodes learn from the whole batch as one group, then in other ways.

    They share a task, which is created once.
    """
    classes, batch = (QUICK_LEAVES, QUICK_BATCH) if quick else (LEAVES, BATCH)
    task = Task(classes, threads, batch=batch)
    yield from (partial(tree_contest, machine, task, together) for together in (batch, 1, min(GROUP, batch)))
