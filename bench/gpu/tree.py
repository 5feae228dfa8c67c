"""The tree on a GPU: the serial loop, beside the host's cores; and ways to learn otherwise.

Only what competes on the host's cores imports Numba.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.gpu.machine import Contest, Machine
from bench.harness.measure import near, peer
from bench.oracles.tree import BATCH, RATE, Task, learned, split
from hybrid.contract import Learned

TREES, QUICK_TREES = (1_000_000, 10_000_000), (500,)
QUICK_BATCH = 80
GROUP = 64  # examples that a node learns from at once, beside one and all of a batch
TOP = 255  # nodes that learn as dense products
GRAPH = "ours, one graph"


class Way(NamedTuple):
    """How the nodes learn.

    together  from so many examples at once
    top       the first so many nodes learn from the whole batch, as dense products; 0: none
    """

    together: int = 1
    top: int = 0

    def params(self) -> dict[str, Any]:
        """What a record says of it."""
        return {"together": self.together} | {
            name: value for name, value in self._asdict().items() if value != getattr(Way(), name)
        }


def first_ways(batch: int) -> Iterator[Way]:
    """Those of a first contact, but the one that stands beside Hogwild: all of the batch together."""
    yield from (Way(batch, top=TOP), Way(), Way(top=TOP), Way(min(GROUP, batch)))


def tree(machine: Machine, quick: bool, threads: int) -> Iterator[Callable[[], Contest]]:
    """What makes the contests of the tree on the device and on all cores of its host, with the same targets."""
    for classes in QUICK_TREES if quick else TREES:
        yield partial(_beside, machine, classes, threads)


def _beside(machine: Machine, classes: int, threads: int) -> Contest:
    """Beside the same tree on the cores of the host, where Numba can be imported."""
    if peer("numba") is None:
        return tree_contest(machine, Task(classes, threads), Way())
    from bench.step import tree as on_the_host

    task = on_the_host.Task(classes, threads)
    made = tree_contest(machine, task, Way())
    made.works.append(on_the_host.ours(task))
    return made


def tree_contest(machine: Machine, task: Task, way: Way) -> Contest:
    """Our step, and the same as a CUDA graph: of several launches from Python, or of one."""
    classes, batch, width = task.classes, task.batch, task.width
    params = {"classes": classes, "width": width, "batch": batch} | way.params()
    made = Contest(machine, "tree.step", params, batch, "examples/s")
    put, device = machine.device.from_host, machine.device
    nodes, hidden = put(task.nodes), [put(vectors) for vectors in task.hidden]
    batches = [(one, put(target)) for one, target in zip(itertools.cycle(hidden), task.targets, strict=False)]
    grad, loss = device.empty((batch, width), np.float32), device.empty(batch, np.float32)
    turns = itertools.cycle(batches)
    expected = learned(task, way.together, way.top)
    learn = partial(_learner(made, task, way), grad, loss, Learned(nodes))

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
    """The step beside itself, each batch in a graph of its own: all are recorded before the first that counts."""
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


def _learner(made: Contest, task: Task, way: Way) -> Callable[..., None]:
    """A step of the tree: learn(grad, loss, learned, hidden, target)."""
    upper, lower = split(task.tree, way.top) if way.top else (None, task.tree)
    learn_rest = (_learner_in_order if way.together == 1 else _learner_of_batches)(made, task, lower, way)
    if not way.top:
        return learn_rest
    learn_top = _top_learner(made, task, upper, way.top)

    def learn(*given):
        learn_rest(*given)
        learn_top(*given)

    return learn


def _learner_of_batches(made: Contest, task: Task, tree: Any, way: Way) -> Callable[..., None]:
    """The same of a tree, or of what is left of it below a top, where nodes learn from several examples at once."""
    from gpu import tree_batch

    # Examples stand in the order of the whole tree's leaves: so those of a node are neighbours below a top, too.
    plan = made.do(tree_batch.plan, tree)._replace(rank=made.machine.device.from_host(task.tree.ranks()))
    rate = RATE
    work = made.do(tree_batch.workspace, task.batch, task.width, tree.depth, way.together, np.float32)

    def learn(grad, loss, learned, hidden, target):
        tree_batch.step(grad, loss, learned, work, plan, hidden, target, None, rate, way.together)

    return learn


def _learner_in_order(made: Contest, task: Task, tree: Any, way: Way) -> Callable[..., None]:
    """The same where nodes learn from one example after another."""
    from gpu import tree_softmax

    rate, plan, sizes = RATE, made.do(tree_softmax.plan, tree), (task.batch, task.width)
    work = made.do(tree_softmax.workspace, *sizes, tree.depth, np.float32)

    def learn(grad, loss, learned, hidden, target):
        tree_softmax.step(grad, loss, learned, work, plan, hidden, target, None, rate)

    return learn


def _top_learner(made: Contest, task: Task, tree: Any, top: int) -> Callable[..., None]:
    """The same of the first nodes, which add their part to grad and loss."""
    from gpu import head, split, tree_softmax

    rate, plan = RATE, made.do(tree_softmax.plan, tree)
    work = made.do(split.workspace, task.batch, task.width, top, np.float32)
    losses = made.machine.device.empty(task.batch, np.float32)

    def learn(grad, loss, learned, hidden, target):
        split.step(grad, losses, Learned(learned.rows[:top]), work, plan, hidden, target, None, rate)
        head.add(loss, losses)

    return learn


def some_rows(contest: Contest, table, ids: np.ndarray) -> np.ndarray:
    """Some rows of a table that is too large to fetch for them."""
    from gpu import rows

    device = contest.machine.device
    out = device.empty((ids.size, table.shape[1]), np.float32)
    contest.do(rows.gather, out, table, device.from_host(ids.astype(np.int32)))
    return device.to_host(out)


# Hogwild on a GPU, the rival of our trees: an example a warp, and all of them race (Niu et al. 2011, arXiv:1106.5730).

HOGWILD = Path(__file__).with_name("hogwild.cu")
CAREFUL = 1e-5  # the rate of the step that is checked: so small that it hardly matters who came first
TOLERANCE = 1e-2


def first(machine: Machine, quick: bool, threads: int) -> Iterator[Callable[[], Contest]]:
    """What makes those of a first contact: our tree, all of the batch together, beside this rival; then its other ways.

    They share a task, which is made once.
    """
    classes, batch = (QUICK_TREES[0], QUICK_BATCH) if quick else (TREES[0], BATCH)
    task = Task(classes, threads, batch=batch)
    yield partial(hogwild_contest, machine, task)
    yield from (partial(tree_contest, machine, task, way) for way in first_ways(batch))


def hogwild_contest(machine: Machine, task: Task) -> Contest:
    """Beside our tree whose nodes learn from the whole batch at once."""
    batch = task.batch
    made = tree_contest(machine, task, Way(batch))
    put, get, device = machine.device.from_host, machine.device.to_host, machine.device
    nodes, plan = put(task.nodes), (put(task.tree.leaf_up), put(task.tree.node_up))
    batches = [(put(h), put(t)) for h, t in zip(itertools.cycle(task.hidden), task.targets, strict=False)]
    grad, loss = device.empty((batch, task.width), np.float32), device.empty(batch, np.float32)
    turns = itertools.cycle(batches)

    def check():
        """One careful step from the first nodes: to first order it is that of a mini-batch."""
        met, first, moved, pulled, losses = learned(task, batch, rate=CAREFUL)
        device.write(nodes, task.nodes)
        made.do(hogwild_step, grad, loss, nodes, *plan, *batches[0], CAREFUL)
        near("loss", get(loss), losses, tolerance=TOLERANCE)
        near("gradient of hidden", get(grad), pulled, tolerance=TOLERANCE)
        near("nodes", some_rows(made, nodes, met), moved, first, tolerance=TOLERANCE)

    made.beside("Hogwild on the device", lambda: hogwild_step(grad, loss, nodes, *plan, *next(turns), RATE), check)
    return made


def hogwild_step(grad, loss, nodes, leaf_up, node_up, hidden, target, rate: float) -> None:
    """One step, on the current queue."""
    from gpu.runtime import kernels

    B, D = hidden.shape
    values = grad, loss, nodes, leaf_up, node_up, hidden, target, rate, B, D
    kernels.launch(str(HOGWILD), "hogwild", "PPPPPPPfii", -(-B // 8), 256, *values)
