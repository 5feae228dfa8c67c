"""The cases of bench/gpu_smoke.py for rows, softmaxes and trees, against tests/support/visits.py."""

from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from bench.gpu_ceilings import TF32_TOLERANCE
from bench.gpu_smoke_device import Case, Check, Gpu
from bench.tree_shape import huffman, path
from bench.tree_shape import split as cut
from gpu import batch_rows, head, rows, softmax, sort, split, tree_batch, tree_softmax
from hybrid.contract import Learned
from tests.support import visits

RATE, F32 = 0.1, np.float32
WIDTHS = *(32 * chunks for chunks in tree_softmax.CHUNKS), 300  # a kernel each


def moved(gpu: Gpu, there: Learned, expected: Learned, first: Learned, tolerance: float = 1e-4) -> Iterator[Check]:
    """Every array of what learns."""
    for name, found, one, other in zip(Learned._fields, gpu.get(there), expected, first, strict=True):
        if found is not None:
            yield Check(name, found, one, other, tolerance)


def ids_drawn(gpu: Gpu, many: int, below: int) -> np.ndarray:
    """As words come."""
    return np.minimum(gpu.rng.zipf(1.3, many) - 1, below - 1).astype(np.int32)


def sorted_ids(gpu: Gpu, short: bool) -> Iterator[Check]:
    """By comparisons, and by two digits in three tiles; equal ids stay in order."""
    ids = ids_drawn(gpu, 300 if short else 5000, 1000)
    found = gpu.do(lambda there: sort.by_id(there, 1000), gpu.put(ids))
    order = np.argsort(ids, kind="stable")
    for name, array, expected in zip(("ids", "places"), found, (ids[order], order), strict=True):
        yield Check(name, gpu.get(array), expected)


def gather(gpu: Gpu, width: int) -> Iterator[Check]:
    """Rows of whole 16 bytes, or not."""
    table, ids, out = gpu.normal(100, width), ids_drawn(gpu, 300, 100), gpu.empty(300, width)
    gpu.do(rows.gather, out, gpu.put(table), gpu.put(ids))
    yield Check("rows", gpu.get(out), table[ids], tolerance=0)


def scatter(gpu: Gpu, kind: str, digits: bool = False) -> Iterator[Check]:
    """digits: sorted as a long list is."""
    learned, ids, grad = visits.drawn(gpu.rng, 100, 36, kind), ids_drawn(gpu, 300, 100), gpu.normal(300, 36)
    there, expected = gpu.put(learned), visits.copied(learned)
    with mock.patch.object(sort, "SHORT", 0 if digits else sort.SHORT):
        gpu.do(rows.scatter, there, gpu.put(ids), gpu.put(grad), RATE)
    visits.scatter(expected, ids, grad.astype(float), RATE)
    yield from moved(gpu, there, expected, learned)


def bags(gpu: Gpu, weighted: bool) -> Iterator[Check]:
    """Means, or sums by weight, of rows, and their way back."""
    learned, ids, grad = visits.drawn(gpu.rng, 50, 36), ids_drawn(gpu, 90, 50), gpu.normal(12, 36)
    at = np.array([0, 7, 7, *range(20, 90, 8), 90])
    values, size, bag = gpu.random(90), np.diff(at), np.repeat(np.arange(12), np.diff(at))
    share = values.astype(float) if weighted else 1 / size[bag]
    there, out, expected = gpu.put(learned), gpu.empty(12, 36), visits.copied(learned)
    given = gpu.put(at), gpu.put(ids), gpu.put(values) if weighted else None
    gpu.do(rows.gather_mean, out, there.rows, *given)
    sums = np.zeros((12, 36))
    np.add.at(sums, bag, share[:, None] * learned.rows[ids])
    yield Check("bags", gpu.get(out), sums)
    gpu.do(rows.scatter_mean, there, *given, gpu.put(grad), RATE)
    visits.scatter(expected, ids, share[:, None] * grad[bag], RATE)
    yield from moved(gpu, there, expected, learned)


def batch_move(gpu: Gpu, kind: str) -> Iterator[Check]:
    """Rows that a batch moves together, with biases."""
    learned, misses, hidden = (
        visits.drawn(gpu.rng, 75, 33, kind, True),
        gpu.normal(41, 75),
        gpu.normal(41, 33, scale=0.2),
    )
    there, expected = gpu.put(learned), visits.copied(learned)
    gpu.do(batch_rows.move, there, gpu.put(misses), gpu.put(hidden), RATE)
    for row, (g, g_bias) in enumerate(zip(misses.T.astype(float) @ hidden, misses.sum(0, dtype=float), strict=True)):
        visits.visit(expected, row, g, g_bias, RATE)
    yield from moved(gpu, there, expected, learned)


def full_softmax(gpu: Gpu, kind: str = "sgd", tf32: bool = False, slots: bool = False) -> Iterator[Check]:
    """By cuBLAS in chunks of 128 classes; with Adagrad also biases and weights. slots: the head of a readout."""
    classes, width, batch, ruled = 300, 128, 20, kind != "sgd"
    learned, hidden = visits.drawn(gpu.rng, classes, width, kind, ruled), gpu.normal(batch, width, scale=width**-0.5)
    target, weight = gpu.rng.integers(0, classes, batch, np.int32), gpu.random(batch) + F32(0.5)
    slot = gpu.rng.permutation(classes).astype(np.int32)
    there, expected = gpu.put(learned), visits.copied(learned)
    grad, loss = gpu.put(np.ones((batch, width))) if slots else gpu.empty(batch, width), gpu.empty(batch)
    given = gpu.put(hidden), gpu.put(target), gpu.put(weight) if ruled else None, RATE
    patch = mock.patch.object
    with patch(gpu.device, "tf32", tf32), patch(softmax, "classes_of_chunk", lambda *sizes: 128):
        work = gpu.poisoned(gpu.do((head if slots else softmax).workspace, batch, width, F32))
        if slots:
            gpu.do(head.step, grad, loss, there, work, gpu.put(slot), *given)
        else:
            gpu.do(softmax.step, grad, loss, there, work, *given)
    chosen = slot[target] if slots else target
    wanted = visits.learn_classes(expected, hidden.astype(float), chosen, weight if ruled else np.ones(batch), RATE)
    tolerance = TF32_TOLERANCE if tf32 else 1e-4
    yield Check("gradient", gpu.get(grad), wanted[0] + slots, float(slots), tolerance)
    yield Check("loss", gpu.get(loss), wanted[1], tolerance=tolerance)
    yield from moved(gpu, there, expected, learned, tolerance)


def best_classes(gpu: Gpu, biased: bool) -> Iterator[Check]:
    """The ten likeliest, in chunks; and how likely a class is."""
    learned, hidden = visits.drawn(gpu.rng, 300, 64, biases=biased), gpu.normal(9, 64, scale=0.1)
    target, there, given = gpu.rng.integers(0, 300, 9, np.int32), gpu.put(learned), gpu.put(hidden)
    ids, log_probs, out = gpu.empty(9, 10, dtype=np.int32), gpu.empty(9, 10), gpu.empty(9)
    with mock.patch.object(softmax, "classes_of_chunk", lambda *sizes: 128):
        work = gpu.poisoned(gpu.do(softmax.workspace, 9, 64, F32))
        gpu.do(softmax.best, ids, log_probs, there, work, given)
        gpu.do(softmax.log_prob, out, there, work, given, gpu.put(target))
    logits = hidden.astype(float) @ learned.rows.T + (learned.biases if biased else 0)
    logits -= np.logaddexp.reduce(logits, axis=1, keepdims=True)
    order = np.argsort(-logits, axis=1)[:, :10]
    yield Check("classes", gpu.get(ids), order)
    yield Check("log p of the best", gpu.get(log_probs), np.take_along_axis(logits, order, 1))
    yield Check("log p", gpu.get(out), logits[np.arange(9), target])


# Trees


class Examples:
    """Examples of a Huffman tree of 300 classes, on the host and there; ruled: with every square, biases and weights."""

    def __init__(self, gpu: Gpu, width: int, ruled: bool = False, batch: int = 160):
        self.gpu, self.tree = gpu, huffman(3000 // np.arange(1, 301))
        self.learned = visits.drawn(gpu.rng, 299, width, "adagrad" if ruled else "sgd", ruled)
        self.hidden, self.weight = gpu.normal(batch, width, scale=width**-0.5), gpu.random(batch) if ruled else None
        self.target = ids_drawn(gpu, batch, 300)
        self.paths = [path(self.tree, leaf) for leaf in self.target]
        self.there, self.expected = gpu.put(self.learned), visits.copied(self.learned)
        self.grad, self.loss = gpu.empty(batch, width), gpu.empty(batch)
        self.given = gpu.put(self.hidden), gpu.put(self.target), gpu.put(self.weight), RATE

    def checks(self, learn: Any, how: Any, lists: Any = None, first: float = 0.0) -> Iterator[Check]:
        """Against `learn` of tests/support/visits.py; first: what the gradient was before, where it is added to."""
        weight = np.ones(len(self.hidden)) if self.weight is None else self.weight
        grad, loss = learn(self.expected, self.hidden.astype(float), lists or self.paths, weight, RATE, how)
        yield Check("gradient", self.gpu.get(self.grad), first + grad, first)
        yield Check("loss", self.gpu.get(self.loss), loss)
        yield from moved(self.gpu, self.there, self.expected, self.learned)


def tree_step(gpu: Gpu, width: int, ruled: bool = False, times: int = 0) -> Iterator[Check]:
    """times: as work that comes again, which is done, recorded in a CUDA graph, and launched once more."""
    batch = Examples(gpu, width, ruled)
    plan = gpu.do(tree_softmax.plan, batch.tree)
    work = gpu.poisoned(gpu.do(tree_softmax.workspace, 160, width, batch.tree.depth, F32))
    step = partial(tree_softmax.step, batch.grad, batch.loss, batch.there, work, plan, *batch.given)
    recorder = gpu.device.recorder()
    for _ in range(times):
        gpu.do(recorder.run, "step", step)
    if not times:
        gpu.do(step)
    groups = [(b, b + 1) for b in range(160)]
    for _ in range(times - 1):  # the last is below
        visits.learn_nodes(batch.expected, batch.hidden.astype(float), batch.paths, np.ones(160), RATE, groups)
    yield from batch.checks(visits.learn_nodes, groups)


def tree_together(gpu: Gpu, together: int, width: int, ruled: bool = False, long: bool = False) -> Iterator[Check]:
    """The mode `batch`; long: lined up as a batch of more examples is."""
    batch = Examples(gpu, width, ruled)
    plan = gpu.do(tree_batch.plan, batch.tree)
    work = gpu.poisoned(gpu.do(tree_batch.workspace, 160, width, batch.tree.depth, together, F32))
    with mock.patch.object(tree_batch, "FEW", 0 if long else tree_batch.FEW):
        gpu.do(tree_batch.step, batch.grad, batch.loss, batch.there, work, plan, *batch.given, together)
    yield from batch.checks(visits.learn_together, together)


def tree_log_prob(gpu: Gpu, biased: bool) -> Iterator[Check]:
    """How likely classes are."""
    batch = Examples(gpu, 100, biased)
    gpu.do(tree_softmax.log_prob, batch.loss, batch.there, gpu.do(tree_softmax.plan, batch.tree), *batch.given[:2])
    costs = [
        sum(visits.missed(batch.learned, *step, h)[1] for step in steps)
        for steps, h in zip(batch.paths, batch.hidden, strict=True)
    ]
    yield Check("log p", gpu.get(batch.loss), -np.array(costs))


def dense_top(gpu: Gpu, ruled: bool) -> Iterator[Check]:
    """The first 20 nodes of a tree, as products."""
    batch, top = Examples(gpu, 64, ruled), 20
    batch.learned = Learned(*(part if part is None else part[:top] for part in batch.learned))
    batch.there, batch.expected = gpu.put(batch.learned), visits.copied(batch.learned)
    batch.grad = gpu.put(np.ones((160, 64)))
    plan = gpu.do(tree_softmax.plan, cut(batch.tree, top)[0])
    work = gpu.poisoned(gpu.do(split.workspace, 160, 64, top, F32))
    gpu.do(split.step, batch.grad, batch.loss, batch.there, work, plan, *batch.given)
    lists = [[step for step in steps if step[0] < top] for steps in batch.paths]
    met = {node for steps in lists for node, _ in steps}
    for node in {*range(top)} - met:  # it takes part in the products
        visits.visit(batch.expected, node, np.zeros(64), 0.0, RATE)
    yield from batch.checks(visits.learn_nodes, [(0, 160)], lists, 1.0)


CASES = {
    "sort.short": Case(partial(sorted_ids, short=True), ("rank",)),
    "sort.long": Case(partial(sorted_ids, short=False), ("count", "pass")),
    "rows.gather": Case(partial(gather, width=36)),
    "rows.gather.odd": Case(partial(gather, width=33)),
    "rows.scatter": Case(partial(scatter, kind="sgd"), ("scatter",)),
    "rows.scatter.long": Case(partial(scatter, kind="sgd", digits=True), ("scatter", "pass")),
    "rows.scatter.squares-a-row": Case(partial(scatter, kind="row-adagrad"), ("measure", "steps")),
    "rows.scatter.squares-a-number": Case(partial(scatter, kind="adagrad"), ("scatter_squared",)),
    "rows.bags": Case(partial(bags, weighted=False), ("gather_mean", "label")),
    "rows.bags.weighted": Case(partial(bags, weighted=True), ("gather_sum", "label")),
    **{f"batch-rows.{kind}": Case(partial(batch_move, kind=kind), ("sum_columns",)) for kind in visits.OPTIMISERS},
    "softmax.fp32": Case(full_softmax, ("measure", "miss")),
    "softmax.tf32": Case(partial(full_softmax, tf32=True), ("measure", "miss")),
    "softmax.ruled": Case(partial(full_softmax, kind="adagrad"), ("measure_biased", "miss_weighted", "move")),
    "softmax.best": Case(partial(best_classes, biased=False), ("choose",)),
    "softmax.best.biased": Case(partial(best_classes, biased=True), ("choose_biased",)),
    "head": Case(partial(full_softmax, slots=True), ("look_up", "add")),
    **{f"tree.deterministic.{width}": Case(partial(tree_step, width=width)) for width in WIDTHS},
    **{f"tree.ruled.{width}": Case(partial(tree_step, width=width, ruled=True)) for width in WIDTHS},
    "tree.batch.64": Case(partial(tree_together, together=64, width=128), ("meet", "move")),
    "tree.batch.all": Case(partial(tree_together, together=160, width=128), ("line_up", "move", "finish")),
    "tree.batch.long": Case(partial(tree_together, together=160, width=128, long=True), ("label", "climb")),
    "tree.batch.ruled": Case(partial(tree_together, together=16, width=300, ruled=True), ("meet", "move")),
    "tree.log-prob": Case(partial(tree_log_prob, biased=False), ("log_prob",)),
    "tree.log-prob.biased": Case(partial(tree_log_prob, biased=True), ("log_prob_biased",)),
    "tree.graph": Case(partial(tree_step, width=128, times=3)),
    "split": Case(partial(dense_top, ruled=False)),
    "split.ruled": Case(partial(dense_top, ruled=True)),
}
