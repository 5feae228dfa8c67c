"""Hierarchical softmax: one training step over 1 M and 10 M classes, ours against fastText and PyTorch."""

import importlib.metadata
import itertools
import resource
import tempfile
import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numba
import numpy as np

from bench.harness.measure import Work, append, measure, peer, show
from bench.oracles import tree as tree_task
from bench.oracles.tree import BATCH, RATE, TRUNKS, WIDTH, learned, path
from bench.step import softmax
from cpu import tree_softmax
from cpu.runtime.memory import empty
from cpu.tree.tree import Tree, huffman
from hybrid.contract import Learned


def run(arguments) -> None:
    """Measures Zipf(1) targets on their Huffman tree: 10 M classes alone, for speed and memory, then 1 M against the peers."""
    small, large, lines = (20_000, 50_000, 50_000) if arguments.quick else (1_000_000, 10_000_000, 1_000_000)
    task = Task(large, arguments.threads)  # first, since the memory peak is that of the process so far
    _show(measure([ours(task)], arguments.repeat), task, arguments)
    peak, asked = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, task.nodes.nbytes + task.hidden.nbytes
    print(f"  peak memory {peak / 1e9:.2f} GB = {peak / asked:.2f} x (nodes {task.nodes.nbytes / 1e9:.2f} GB + slots)")
    del task
    task = Task(small, arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        labels = Path(folder) / "labels.txt"
        peers = [fasttext(task, labels, lines)] if peer("fasttext") else []
        peers += [torch_tree(task), torch_adaptive(task)] if peer("torch") else []
        records = measure([ours(task), *peers], arguments.repeat)
    _show(records, task, arguments)


class Task(tree_task.Task):
    """The task of a GPU's benchmark on `threads` host threads: rows are aligned to cache lines, nodes have owners."""

    empty = staticmethod(empty)

    def __init__(self, classes: int, threads: int, width: int = WIDTH, batch: int = BATCH):
        numba.set_num_threads(threads)
        super().__init__(classes, threads, width, batch)

    @cached_property
    def tree(self) -> Tree:
        """The tree in the form that CPU kernels read."""
        return huffman(self.counts)

    def work(self, who, steps, run, check) -> Work:
        """Returns the work of one rival, whose run takes `steps` steps."""
        params = {"classes": self.classes, "width": self.width, "batch": self.batch}
        return Work("tree.step", who, params, steps * self.batch, "examples/s", run, check, threads=self.threads)


def ours(task: Task, rate: float = RATE) -> Work:
    """Returns our work, a step on each batch per run."""
    grad, loss = empty((task.batch, task.width), np.float32), empty((task.batch,), np.float32)
    work = tree_softmax.workspace(task.batch, task.width, task.tree.depth, np.float32)

    def learn(b):
        given = task.hidden[b % TRUNKS], task.targets[b], None, rate
        tree_softmax.step(grad, loss, Learned(task.nodes), work, task.tree, *given)

    def check():
        """Checks the next step against plain float64."""
        met, _, rows, *expected = learned(task, 1, rate=rate)
        learn(0)
        for found, wanted in zip((grad, loss, task.nodes[met]), (*expected, rows), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)

    count = len(task.targets)
    return task.work("ours", count, lambda: [learn(b) for b in range(count)], check)


def torch_tree(task: Task) -> Work:
    """Returns the same tree in PyTorch: rows of a sparse embedding, plain SGD; path lookup is not timed."""
    import torch

    torch.set_num_threads(task.threads)
    nodes = torch.nn.Embedding(task.classes - 1, WIDTH, sparse=True)
    optimiser = torch.optim.SGD(nodes.parameters(), lr=RATE)
    batches = []
    for hidden, targets in zip(task.hidden, task.targets[:TRUNKS], strict=True):
        lists = [path(task.tree, leaf) for leaf in targets]
        rows = torch.tensor([node for steps in lists for node, _ in steps])
        signs = torch.tensor([2.0 * turn - 1 for steps in lists for _, turn in steps])
        owner = torch.repeat_interleave(torch.arange(BATCH), torch.tensor([len(steps) for steps in lists]))
        batches.append((torch.from_numpy(hidden.copy()).requires_grad_(), rows, signs, owner))
    turn = itertools.cycle(batches)

    def losses(hidden, rows, signs, owner):
        scores = (nodes(rows) * hidden.index_select(0, owner)).sum(1) * signs
        return torch.zeros(BATCH).index_add(0, owner, torch.nn.functional.softplus(-scores))

    def step():
        batch = next(turn)
        optimiser.zero_grad()
        batch[0].grad = None
        losses(*batch).sum().backward()
        optimiser.step()

    def check():
        """Checks that the loss equals that of our nodes."""
        out = np.empty(BATCH, np.float32)
        tree_softmax.log_prob(out, Learned(nodes.weight.detach().numpy()), task.tree, task.hidden[0], task.targets[0])
        np.testing.assert_allclose(losses(*batches[0]).detach().numpy(), -out, rtol=1e-4)

    return task.work(f"torch {torch.__version__} sparse tree", 8, lambda: [step() for _ in range(8)], check)


def torch_adaptive(task: Task) -> Work:
    """Returns PyTorch's adaptive softmax: another, smaller model of the same targets, with a dense gradient."""
    torch = peer("torch")
    torch.set_num_threads(task.threads)
    targets = task.targets[:TRUNKS]
    learn = softmax.adaptive(
        softmax.Batches(task.hidden, targets), task.classes, softmax.cutoffs(task.classes), RATE, softmax.NARROWER
    )
    turn, losses = itertools.cycle(range(TRUNKS)), list[float]()

    def check():
        losses.extend(learn(0) for _ in range(3))
        if not losses[-1] < losses[0]:
            raise AssertionError(f"losses of one batch: {losses}")

    return task.work(f"torch {torch.__version__} adaptive softmax", 1, lambda: learn(next(turn)), check)


def fasttext(task: Task, file: Path, lines: int) -> Work:
    """Returns hierarchical softmax over labels, one per line; three epochs minus one, which cancels start and end.

    Its tree lacks labels that no line has, so it is smaller than ours.
    """
    import fasttext

    labels = task.draw(lines)
    file.write_text("".join(f"__label__{label} x\n" for label in labels))
    found = set()

    def epochs(count):
        start = time.perf_counter()
        model = fasttext.train_supervised(
            str(file), dim=WIDTH, loss="hs", epoch=count, thread=task.threads, minCount=1, bucket=0, verbose=0
        )
        found.add(len(model.labels))
        return time.perf_counter() - start

    def check():
        if found != {np.unique(labels).size}:
            raise AssertionError(f"fastText found {found} labels, the file has {np.unique(labels).size}")

    who = f"fastText {importlib.metadata.version('fasttext-wheel')} hs, {np.unique(labels).size} labels met"
    work = task.work(who, 0, lambda: epochs(3) - epochs(1), check)
    return replace(work, amount=2 * lines, own_clock=True, warm=0)


def _show(records: list[dict], task: Task, arguments) -> None:
    show(records)
    append(arguments.json, records)
    print(f"  mean path {task.length():.1f} nodes, the longest {task.tree.depth}")
