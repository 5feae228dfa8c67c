"""The cases of tests/smoke: each launches kernels on random numbers, and says what NumPy makes of them in float64.

What a kernel writes is NaN before it, and so are workspaces. What learns sparsely is held to tests/support/visits.py.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from bench.gpu.ceilings import OF_PRODUCTS, TOLERANCE
from bench.oracles import pvm as ticks
from bench.oracles import units as oracle
from bench.oracles.tree import huffman, path
from gpu import batch_rows, head, mlp, optimiser, pvm, rows, softmax, sort, tree_batch, tree_softmax, units
from gpu.runtime import blas
from hybrid.contract import Learned
from hybrid.units import unit_layout
from tests.cudasim.counted import UNITS
from tests.smoke.device import Case, Check, Gpu
from tests.support import layers, optimisers, visits

RATE, MOMENTUM, ACTIVATION, F32 = 0.1, 0.9, "logistic", np.float32
open_gpu = Gpu  # what tests/smoke asks for, beside CASES
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
    learned = visits.drawn(gpu.rng, 75, 33, kind, True)
    misses, hidden = gpu.normal(41, 75), gpu.normal(41, 33, scale=0.2)
    there, expected = gpu.put(learned), visits.copied(learned)
    gpu.do(batch_rows.move, there, gpu.put(misses), gpu.put(hidden), RATE)
    for row, (g, g_bias) in enumerate(zip(misses.T.astype(float) @ hidden, misses.sum(0, dtype=float), strict=True)):
        visits.visit(expected, row, g, g_bias, RATE)
    yield from moved(gpu, there, expected, learned)


def full_softmax(gpu: Gpu, kind: str = "sgd", precision: str = "fp32", slots: bool = False) -> Iterator[Check]:
    """By cuBLAS in chunks of 128 classes; with Adagrad also biases and weights. slots: the head of a readout."""
    classes, width, batch, ruled = 300, 128, 20, kind != "sgd"
    learned, hidden = visits.drawn(gpu.rng, classes, width, kind, ruled), gpu.normal(batch, width, scale=width**-0.5)
    target, weight = gpu.rng.integers(0, classes, batch, np.int32), gpu.random(batch) + F32(0.5)
    slot = gpu.rng.permutation(classes).astype(np.int32)
    there, expected = gpu.put(learned), visits.copied(learned)
    grad, loss = gpu.put(np.ones((batch, width))) if slots else gpu.empty(batch, width), gpu.empty(batch)
    given = gpu.put(hidden), gpu.put(target), gpu.put(weight) if ruled else None, RATE
    patch = mock.patch.object
    with patch(gpu.device, "precision", precision), patch(softmax, "classes_of_chunk", lambda *sizes: 128):
        work = gpu.poisoned(gpu.do((head if slots else softmax).workspace, batch, width, F32))
        if slots:
            gpu.do(head.step, grad, loss, there, work, gpu.put(slot), *given)
        else:
            gpu.do(softmax.step, grad, loss, there, work, *given)
    chosen = slot[target] if slots else target
    wanted = visits.learn_classes(expected, hidden.astype(float), chosen, weight if ruled else np.ones(batch), RATE)
    tolerance = TOLERANCE[precision]
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

    def checks(self, learn: Any, how: Any) -> Iterator[Check]:
        """Against `learn` of tests/support/visits.py."""
        weight = np.ones(len(self.hidden)) if self.weight is None else self.weight
        grad, loss = learn(self.expected, self.hidden.astype(float), self.paths, weight, RATE, how)
        yield Check("gradient", self.gpu.get(self.grad), grad)
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
    pairs = zip(batch.paths, batch.hidden, strict=True)
    costs = [sum(visits.missed(batch.learned, *step, h)[1] for step in steps) for steps, h in pairs]
    yield Check("log p", gpu.get(batch.loss), -np.array(costs))


SPARSE_CASES = {
    "sort.short": Case(partial(sorted_ids, short=True), ("rank",)),
    "sort.long": Case(partial(sorted_ids, short=False), ("count", "pass")),
    "rows.gather": Case(partial(gather, width=36)),
    "rows.gather.odd": Case(partial(gather, width=33)),
    "rows.scatter": Case(partial(scatter, kind="sgd"), ("scatter",)),
    "rows.scatter.long": Case(partial(scatter, kind="sgd", digits=True), ("scatter", "pass")),
    "rows.scatter.squares-a-row": Case(partial(scatter, kind="row-adagrad"), ("measure", "steps")),
    "rows.scatter.squares-a-number": Case(partial(scatter, kind="adagrad"), ("scatter_squared",)),
    "rows.bags": Case(partial(bags, weighted=False), ("gather_mean", "label")),
    "rows.bags.weighted": Case(partial(bags, weighted=True), ("gather_mean", "label")),
    **{f"batch-rows.{kind}": Case(partial(batch_move, kind=kind), ("sum_columns",)) for kind in visits.OPTIMISERS},
    "softmax.fp32": Case(full_softmax, ("measure", "miss")),
    "softmax.tf32": Case(partial(full_softmax, precision="tf32"), ("measure", "miss")),
    "softmax.bf16": Case(partial(full_softmax, precision="bf16"), ("measure_half", "miss_half", "halve")),
    "softmax.bf16.ruled": Case(partial(full_softmax, kind="adagrad", precision="bf16"), ("sum_columns_half", "move")),
    "softmax.ruled": Case(partial(full_softmax, kind="adagrad"), ("sum_columns", "move")),
    "softmax.best": Case(partial(best_classes, biased=False), ("choose",)),
    "softmax.best.biased": Case(partial(best_classes, biased=True), ("choose",)),
    "head": Case(partial(full_softmax, slots=True), ("gather", "measure", "miss")),
    **{f"tree.deterministic.{width}": Case(partial(tree_step, width=width)) for width in WIDTHS},
    **{f"tree.ruled.{width}": Case(partial(tree_step, width=width, ruled=True)) for width in WIDTHS},
    "tree.batch.64": Case(partial(tree_together, together=64, width=128), ("meet", "move")),
    "tree.batch.all": Case(partial(tree_together, together=160, width=128), ("line_up", "move", "finish")),
    "tree.batch.long": Case(partial(tree_together, together=160, width=128, long=True), ("gather", "climb")),
    "tree.batch.ruled": Case(partial(tree_together, together=16, width=300, ruled=True), ("meet", "move")),
    "tree.log-prob": Case(partial(tree_log_prob, biased=False), ("log_prob",)),
    "tree.log-prob.biased": Case(partial(tree_log_prob, biased=True), ("log_prob",)),
    "tree.graph": Case(partial(tree_step, width=128, times=3)),
}


# Units and layers


def units_step(gpu: Gpu, sizes: Any, batch: int = 1, momentum: float = 0.0, rates: bool = False) -> Iterator[Check]:
    """rates: one per unit."""
    layout = unit_layout(*sizes)
    many, (parameters, inputs, hiddens, outputs) = len(layout.inputs), (int(at[-1]) for at in layout[3:])
    weights, x, target = gpu.normal(parameters, scale=0.2), gpu.random(batch, inputs), gpu.random(batch, outputs)
    velocity = gpu.normal(parameters, scale=0.01) if momentum else None
    rate = 0.05 + 0.1 * gpu.random(many) if rates else RATE
    plan = gpu.do(units.plan, layout)
    written = gpu.empty(many), gpu.empty(batch, outputs), gpu.empty(batch, hiddens)
    learned, grads = (gpu.put(weights), gpu.put(velocity)), (gpu.empty(batch, outputs), gpu.empty(batch, hiddens))
    given = plan, gpu.put(x), gpu.put(target), gpu.put(rate) if rates else rate, momentum, ACTIVATION
    gpu.do(units.step, *written, *learned, *grads, *given)

    hidden, y = oracle.forward(layout, weights, x, ACTIVATION)
    each = np.repeat(rate, np.diff(layout.w_at)) if rates else rate
    loss, moved, speed = oracle.step(layout, weights, velocity, hidden, y, x, target, each, momentum, ACTIVATION)
    for name, found, expected in zip(("loss", "y", "hidden"), written, (loss, y, hidden), strict=True):
        yield Check(name, gpu.get(found), expected)
    yield from before_activation(gpu, layout, weights, grads, y - target, hidden, y)
    yield Check("weights", gpu.get(learned[0]), moved, weights)
    if momentum:
        yield Check("velocity", gpu.get(learned[1]), speed, velocity)


def before_activation(
    gpu: Gpu, layout: Any, weights: Any, grads: Any, wrong: Any, hidden: Any, y: Any
) -> Iterator[Check]:
    """The gradients of y and hidden before the activation; wrong: d loss / d y."""
    delta, pulled = wrong * y * (1 - y), np.empty_like(hidden)
    for u in range(len(layout.inputs)):
        _, inner, outer = oracle.spans(layout, u)
        pulled[:, inner] = delta[:, outer] @ oracle.parts(layout, u, weights)[2]
    yield Check("gradient of y", gpu.get(grads[0]), delta)
    yield Check("gradient of hidden", gpu.get(grads[1]), pulled * hidden * (1 - hidden))


def units_passes(gpu: Gpu, many: int, batch: int) -> Iterator[Check]:
    """Forward and backward, apart."""
    layout = unit_layout([30] * many, [17] * many, [25] * many)
    parameters, inputs, hiddens, outputs = (int(at[-1]) for at in layout[3:])
    weights, x, y_grad = gpu.normal(parameters, scale=0.3), gpu.random(batch, inputs), gpu.normal(batch, outputs)
    plan, there, x_there = gpu.do(units.plan, layout), gpu.put(weights), gpu.put(x)
    y, hidden = gpu.empty(batch, outputs), gpu.empty(batch, hiddens)
    gpu.do(units.forward, y, hidden, plan, there, x_there, ACTIVATION)
    x_grad, weight_grad = gpu.empty(batch, inputs), gpu.put(np.ones(parameters))
    grads = x_grad, weight_grad, gpu.put(y_grad), gpu.empty(batch, hiddens)
    gpu.do(units.backward, *grads, plan, there, y, hidden, x_there, ACTIVATION)
    inner, outer = oracle.forward(layout, weights, x, ACTIVATION)
    slopes = oracle.backward(layout, weights, y_grad.astype(float), inner, outer, x, ACTIVATION)
    yield Check("hidden", gpu.get(hidden), inner)
    yield Check("y", gpu.get(y), outer)
    yield from before_activation(gpu, layout, weights, grads[2:], y_grad.astype(float), inner, outer)
    yield Check("gradient of x", gpu.get(x_grad), slopes[0])
    yield Check("gradient of weights", gpu.get(weight_grad), 1 + slopes[1], 1.0)


def units_update(gpu: Gpu, momentum: float) -> Iterator[Check]:
    """Weights move by a gradient, which is 0 then."""
    weights, velocity, grad = gpu.normal(5003), gpu.normal(5003), gpu.normal(5003)
    there = gpu.put(weights), gpu.put(velocity) if momentum else None, gpu.put(grad)
    gpu.do(units.update, *there, RATE, momentum)
    speed = momentum * velocity.astype(float) - RATE * grad
    yield Check("weights", gpu.get(there[0]), weights + speed, weights)
    yield Check("gradient afterwards", gpu.get(there[2]), np.zeros(5003))
    if momentum:
        yield Check("velocity", gpu.get(there[1]), speed, velocity)


def product(gpu: Gpu, precision: str) -> Iterator[Check]:
    """cuBLAS alone."""
    a, b, out = gpu.normal(64, 96), gpu.normal(96, 80), gpu.empty(64, 80)
    with mock.patch.object(gpu.device, "precision", precision):
        gpu.do(blas.gemm, out, gpu.put(a), gpu.put(b))
    yield Check("product", gpu.get(out), a.astype(float) @ b, tolerance=OF_PRODUCTS[precision])


def layer(gpu: Gpu, kind: str) -> Iterator[Check]:
    """A layer of an MLP, forward and backward."""
    own, key = layers.layer(kind, 33, 40, at=3), 12345
    many, batch = 3 + layers.size(own), 70
    weights, x, out_grad = gpu.normal(many, scale=0.3), gpu.normal(batch, own.inputs), gpu.normal(batch, 40)
    out = gpu.empty(batch, 40)
    work, there = gpu.poisoned(gpu.do(mlp.workspace, 40, F32)), (gpu.put(weights), gpu.put(x))
    gpu.do(mlp.forward, out, own, *there, key)
    x_grad, weight_grad = gpu.empty(batch, own.inputs), gpu.put(np.ones(many))
    gpu.do(mlp.backward, x_grad, weight_grad, gpu.put(out_grad), work, own, there[0], out, there[1], key)
    slopes = layers.backward(own, weights, x, out_grad.astype(float), key)
    yield Check("out", gpu.get(out), layers.forward(own, weights, x, key))
    yield Check("gradient of x", gpu.get(x_grad), slopes[0])
    yield Check("gradient of weights", gpu.get(weight_grad), 1 + slopes[1], 1.0)


def sweep(gpu: Gpu, kind: str, most: float | None = None) -> Iterator[Check]:
    """Two steps of an optimiser, the first after a merge of gradients; most: the norm that they are cut to."""
    size, move = 9001, optimisers.Move(0.03, 1 / 7, 0.1)
    weights, expected = (first := gpu.normal(size)), optimisers.Moved(first)
    there = {"weights": gpu.put(weights)} | {name: gpu.put(np.zeros(size)) for name in optimisers.STATES[kind]}
    work = gpu.poisoned(gpu.do(optimiser.workspace, size))
    for turn in range(2):
        grad, part = gpu.normal(size), gpu.normal(size)
        there["grad"], other = gpu.put(grad), gpu.put(part)
        gpu.do(optimiser.merge, there["grad"], other)
        if most:
            gpu.do(optimiser.clip, work, there["grad"], move.scale, most)
        function, given = optimisers.call(optimiser, kind, there, move._replace(cut=work if most else None), turn + 1)
        gpu.do(function, *given)
        expected.step(kind, grad.astype(float) + part, move, most)
        for name, array in (("gradient afterwards", there["grad"]), ("merged gradient afterwards", other)):
            yield Check(name, gpu.get(array), np.zeros(size))
    for name in ("weights", *optimisers.STATES[kind]):
        yield Check(name, gpu.get(there[name]), getattr(expected, name), weights if name == "weights" else 0.0)


# Predictive Vision Models


def pvm_tick(gpu: Gpu, kind: str, momentum: bool) -> Iterator[Check]:
    """A tick of five units by the kernel of that kind; "many" has three streams."""
    made = ticks.small(gpu.rng, 3 if kind == "many" else 1, momentum)
    for found in ticks.checks(pvm, made, gpu.do, gpu.put, gpu.get):
        yield Check(*found)


def frames(gpu: Gpu) -> Iterator[Check]:
    """What is around a tick: a frame is shown; predictions are collected, and spread."""
    for frame in (gpu.rng.integers(0, 256, (2, 300), np.uint8), gpu.random(2, 300)):
        world = gpu.empty(2, 350)
        gpu.do(pvm.show, world, gpu.put(frame), 1 / 255)
        yield Check("world", gpu.get(world)[:, :300], frame / 255)
    source, index = gpu.normal(2, 500), gpu.rng.permutation(500)[:280].astype(np.int32)
    out, back = gpu.empty(2, 280), gpu.put(np.zeros((2, 500)))
    gpu.do(pvm.collect, out, gpu.put(source), gpu.put(index))
    gpu.do(pvm.spread, back, out, gpu.put(index))
    spread = np.zeros((2, 500))
    spread[:, index] = source[:, index]
    yield Check("collected", gpu.get(out), source[:, index], tolerance=0)
    yield Check("spread", gpu.get(back), spread, tolerance=0)


SHORT, LARGE = UNITS["150-49-150"], UNITS["too large to hold"]
STEPS: dict[str, tuple[dict[str, Any], str]] = {  # arguments, and the kernel
    "whole": ({"sizes": SHORT}, "step_whole"),
    "whole.16": ({"sizes": SHORT, "batch": 16}, "step_whole_many"),
    "part": ({"sizes": LARGE}, "step_part"),
}
TICKS = "one", "many"
CASES = {
    "blas.fp32": Case(partial(product, precision="fp32")),
    "blas.tf32": Case(partial(product, precision="tf32")),
    **{f"units.{name}": Case(partial(units_step, **given), (kernel,)) for name, (given, kernel) in STEPS.items()},
    **{
        f"units.{name}.momentum": Case(partial(units_step, momentum=MOMENTUM, **given), (f"{kernel}_momentum",))
        for name, (given, kernel) in STEPS.items()
    },
    "units.gemm": Case(partial(units_step, sizes=SHORT, batch=20), ("finish", "miss", "bias")),
    "units.gemm.momentum": Case(partial(units_step, sizes=SHORT, batch=20, momentum=MOMENTUM), ("add",)),
    "units.ragged": Case(partial(units_step, sizes=UNITS["ragged"])),
    "units.rates": Case(partial(units_step, sizes=SHORT, rates=True), ("step_whole",)),
    "units.gemm.rates": Case(partial(units_step, sizes=UNITS["ragged"], batch=20, rates=True), ("changes",)),
    "units.passes": Case(partial(units_passes, many=32, batch=16), ("forward", "backward")),
    "units.passes.gemm": Case(partial(units_passes, many=5, batch=20), ("finish", "times_slope", "bias")),
    "units.update": Case(partial(units_update, momentum=0.0)),
    "units.update.momentum": Case(partial(units_update, momentum=MOMENTUM)),
    **{f"pvm.{kind}": Case(partial(pvm_tick, kind=kind, momentum=False), (f"tick_{kind}",)) for kind in TICKS},
    **{
        f"pvm.{kind}.momentum": Case(partial(pvm_tick, kind=kind, momentum=True), (f"tick_{kind}_momentum",))
        for kind in TICKS
    },
    "pvm.frames": Case(frames, ("show_bytes", "show_numbers", "collect", "spread")),
    **SPARSE_CASES,
    **{f"mlp.{kind.replace(' ', '-')}": Case(partial(layer, kind=kind)) for kind in layers.KINDS},
    **{f"optimiser.{kind}": Case(partial(sweep, kind=kind)) for kind in optimisers.STATES},
    "optimiser.clip": Case(partial(sweep, kind="adam", most=1.5), ("squares", "cut_factor")),
}
