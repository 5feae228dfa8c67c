"""A tree step by each optimiser of its nodes: SGD, row-wise Adagrad, which keeps one number a node, and Adagrad."""

import numpy as np

from bench.measure import Work, append, measure, show
from bench.tree import Task
from bench.tree_task import BATCH, BATCHES, RATE, TRUNKS, WIDTH
from cpu import tree_softmax
from cpu.aligned import empty
from cpu.tree import path
from hybrid.contract import Learned
from tests.support.visits import learn_nodes

CLASSES, FEW = 1_000_000, 20_000
OPTIMISERS = {"SGD": None, "row-wise Adagrad": 1, "Adagrad": 2}  # axes of the squares
BEGUN = 0.01  # what the squares are at first: as after some steps


def run(arguments) -> None:
    """Zipf(1) targets on their Huffman tree, which all three learn in turns; each step is held to an oracle first."""
    task = Task(FEW if arguments.quick else CLASSES, arguments.threads)
    records = measure([_work(task, who, axes) for who, axes in OPTIMISERS.items()], arguments.repeat)
    show(records)
    append(arguments.json, records)
    plain, *others = records
    for record in others:
        print(f"  {record['who']}: {record['value'] / plain['value']:.2f} of the rate of SGD")


def _work(task: Task, who: str, axes: int | None) -> Work:
    """One run is a step on each batch."""
    learned, rate = Learned(task.nodes, squares=_squares(task, axes)), RATE
    work = tree_softmax.workspace(BATCH, WIDTH, task.tree.depth, np.float32)
    grad, loss = empty((BATCH, WIDTH), np.float32), empty((BATCH,), np.float32)

    def step(b):
        given = task.hidden[b % TRUNKS], task.targets[b], None, rate
        tree_softmax.step(grad, loss, learned, work, task.tree, *given)

    def check():
        """The next step against plain float64."""
        lists = [path(task.tree, leaf) for leaf in task.targets[0]]
        met = sorted({node for steps in lists for node, _ in steps})
        place = {node: i for i, node in enumerate(met)}
        some = Learned(*(None if array is None else array[met].astype(np.float64) for array in learned))
        lists = [[(place[node], turn) for node, turn in steps] for steps in lists]
        groups = [(b, b + 1) for b in range(BATCH)]
        expected = learn_nodes(some, task.hidden[0].astype(np.float64), lists, np.ones(BATCH), rate, groups)
        step(0)
        for found, wanted in zip((grad, loss, task.nodes[met]), (*expected, some.rows), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
        if learned.squares is not None:
            np.testing.assert_allclose(learned.squares[met], some.squares, rtol=1e-3, atol=1e-6)

    params = {"classes": task.classes, "width": WIDTH, "batch": BATCH}
    amount = BATCHES * BATCH
    return Work(
        "plugs.rows",
        who,
        params,
        amount,
        "examples/s",
        lambda: [step(b) for b in range(BATCHES)],
        check,
        threads=task.threads,
    )


def _squares(task: Task, axes: int | None) -> np.ndarray | None:
    if axes is None:
        return None
    squares = empty(task.nodes.shape[:axes], np.float32)
    squares.fill(BEGUN)
    return squares
