"""The cases of bench/gpu_smoke.py: each launches kernels on random numbers, and says what NumPy makes of them in float64.

What a kernel writes is NaN before it, and so are workspaces. Those of what learns sparsely are in bench/gpu_smoke_sparse.py.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from bench import gpu_smoke_sparse
from bench.gpu_cases import UNITS
from bench.gpu_ceilings import TF32_TOLERANCE
from bench.gpu_smoke_device import Case, Check, Gpu
from gpu import mlp, optimiser, pvm, units
from gpu.runtime import blas
from hybrid.contract import Gathering, Learning, Past, State
from hybrid.pvm.config import Config
from hybrid.pvm.layout import LATERAL, RAW, TapeLayout, tape_layout
from hybrid.pvm.wiring import wire
from hybrid.units import unit_layout
from tests.support import layers, optimisers
from tests.twins import units as oracle

open_gpu = Gpu  # what bench/gpu_smoke.py asks for, beside CASES
RATE, MOMENTUM, ACTIVATION = 0.1, 0.9, "logistic"
F32 = np.float32


def units_step(gpu: Gpu, sizes: Any, batch: int = 1, momentum: float = 0.0, rates: bool = False) -> Iterator[Check]:
    """rates: one a unit."""
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


def product(gpu: Gpu, tf32: bool) -> Iterator[Check]:
    """cuBLAS alone."""
    a, b, out = gpu.normal(64, 96), gpu.normal(96, 80), gpu.empty(64, 80)
    with mock.patch.object(gpu.device, "tf32", tf32):
        gpu.do(blas.gemm, out, gpu.put(a), gpu.put(b))
    yield Check("product", gpu.get(out), a.astype(float) @ b, tolerance=TF32_TOLERANCE if tf32 else 1e-5)


def layer(gpu: Gpu, kind: str) -> Iterator[Check]:
    """A layer of an MLP, forward and backward."""
    own, key = layers.layer(kind, 33, 40, at=3), 12345
    many, batch = 3 + layers.size(own), 70
    weights, x, out_grad = gpu.normal(many, scale=0.3), gpu.normal(batch, own.inputs), gpu.normal(batch, 40)
    passed = layers.passed(own, batch, lambda shape, dtype: gpu.empty(*shape))
    work, there = gpu.poisoned(gpu.do(mlp.workspace, 40, F32)), (gpu.put(weights), gpu.put(x))
    gpu.do(mlp.forward, passed, own, *there, key)
    x_grad, weight_grad = gpu.empty(batch, own.inputs), gpu.put(np.ones(many))
    gpu.do(mlp.backward, x_grad, weight_grad, gpu.put(out_grad), work, own, there[0], passed, there[1], key)
    slopes = layers.backward(own, weights, x, out_grad.astype(float), key)
    yield Check("out", gpu.get(passed.out), layers.forward(own, weights, x, key).out)
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
    config = Config(grids=((2, 2), (1, 1)), block=(3, 3), hidden=(9, 20), context_to_output=True, readout=None)
    layout, streams = tape_layout(wire(config), config), 3 if kind == "many" else 1
    tape, signals, many = int(layout.tape_at[-1]), int(layout.signal_at[-1]), len(layout.hidden)
    size = int((layout.rows.astype(int) * (layout.columns + 1)).sum())
    reads = {"world": layout.world, "tape": tape, "record": tape, "signals": signals}
    past = Past(**{name: gpu.random(streams, numbers) for name, numbers in reads.items()})
    weights, velocity = gpu.normal(size, scale=0.2), gpu.normal(size, scale=0.01) if momentum else None
    speeds, flags = (0.1 + 0.1 * gpu.random(many), 0.9 * gpu.random(many)), np.ones(many, np.uint8)
    gathering = Gathering(0.8, 0.1, 0.9, 1.0, 0.5)
    sizes = {"world": layout.world, "tape": tape, "signals": signals, "integral": 0, "delta": tape}
    written = {name: gpu.empty(streams, numbers) for name, numbers in sizes.items()}
    learned = {"miss": gpu.empty(many), "weights": gpu.put(weights), "velocity": gpu.put(velocity)}
    state = State(**written, low=None, high=None, **learned)
    rate, momenta, learns, adapts = map(gpu.put, (*speeds, flags, flags))
    given = Past(*map(gpu.put, past)), Learning(rate, momenta, learns, adapts, True), gathering
    gpu.do(pvm.tick, state, gpu.do(pvm.plan, layout), *given, config.activation, 0, many)
    expected = ticked(layout, past, weights, velocity, speeds, gathering)
    for name, array in expected.items():
        there, first = ~np.isnan(array), {"weights": weights, "velocity": velocity}.get(name, 0.0)
        yield Check(name, gpu.get(getattr(state, name))[there], array[there], first)


def ticked(
    layout: TapeLayout, past: Past, weights: Any, velocity: Any, speeds: Any, gathering: Gathering
) -> dict[str, Any]:
    """What a tick of simple units writes, as the contract has it; NaN where it writes nothing. See hybrid/contract/pvm.py.

    The features are signal and past, two frames are predicted, the newest first, by the rational activation.
    """
    world, _, record, before = (array.astype(float) for array in past)
    scale, offset = gathering.scale, gathering.offset
    factors = {LATERAL: (gathering.lateral * scale, gathering.lateral * offset), RAW: (1.0, 0.0)}
    like = {"world": world, "tape": record, "signals": before, "delta": record}
    own: dict[str, Any] = {name: np.full(array.shape, np.nan) for name, array in like.items()}
    own |= {"miss": np.empty(len(layout.hidden)), "weights": weights.astype(float)}
    if velocity is not None:
        own["velocity"] = velocity.astype(float)
    for u, hidden in enumerate(layout.hidden):
        parts = range(layout.part_at[u], layout.part_at[u + 1])
        seen = scale * np.hstack([world[:, layout.part_from[k] :][:, : layout.part_size[k]] for k in parts]) + offset
        span = slice(layout.signal_at[u], layout.signal_at[u + 1])
        own["signals"][:, span], both = seen, np.hstack([seen, before[:, span]])
        own["tape"][:, layout.features_at[u] :][:, : both.shape[1]] = both
        for k in range(layout.copy_at[u], layout.copy_at[u + 1]):
            factor, more = factors.get(layout.copy_kind[k], (gathering.feedback * scale, gathering.feedback * offset))
            copied = factor * world[:, layout.copy_from[k] :][:, : layout.copy_size[k]] + more
            own["tape"][:, layout.copy_to[k] :][:, : layout.copy_size[k]] = copied
        error = both - record[:, layout.predicted_at[u] :][:, : both.shape[1]]
        own["miss"][u] = abs(error).sum()
        _layers(layout, u, own, record, error, speeds)
        own["world"][:, layout.published_at[u] :][:, :hidden] = own["tape"][:, layout.hidden_at[u] :][:, :hidden]
    return own


def _layers(layout: TapeLayout, u: int, own: dict[str, Any], record: Any, error: Any, speeds: Any) -> None:
    """The dense layers of a unit predict, then learn from an error of what they predicted before."""
    activate, slope = oracle.ACTIVATIONS["rational"]
    changes: list[tuple[slice, Any]] = []
    for k in range(layout.layer_at[u], layout.layer_at[u + 1]):
        rows, columns = layout.rows[k], layout.columns[k]
        matrix, bias = np.split(own["weights"][layout.w_at[k] :][: rows * (columns + 1)], [rows * columns])
        x = own["tape"][:, layout.in_at[k] :][:, :columns]
        own["tape"][:, layout.out_at[k] :][:, :rows] = activate(x @ matrix.reshape(rows, columns).T + bias)
    for k in reversed(range(layout.layer_at[u], layout.layer_at[u + 1])):
        rows, columns = layout.rows[k], layout.columns[k]
        delta = slope(record[:, layout.out_at[k] :][:, :rows]) * error
        own["delta"][:, layout.out_at[k] :][:, :rows] = delta
        span = slice(layout.w_at[k], layout.w_at[k] + rows * (columns + 1))
        x = record[:, layout.in_at[k] :][:, :columns]
        changes.append((span, np.append(delta.T @ x, delta.sum(0))))
        error = (delta @ own["weights"][span][: rows * columns].reshape(rows, columns))[:, : layout.pulled[k]]
    for span, change in changes:
        speed = speeds[0][u] * change
        if "velocity" in own:
            speed = own["velocity"][span] = speeds[1][u] * own["velocity"][span] + speed
        own["weights"][span] += speed


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
    "part.16": ({"sizes": LARGE, "batch": 16}, "step_part_many"),
}
TICKS = "one", "many"
CASES = {
    "blas.fp32": Case(partial(product, tf32=False)),
    "blas.tf32": Case(partial(product, tf32=True)),
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
    **gpu_smoke_sparse.CASES,
    **{f"mlp.{kind.replace(' ', '-')}": Case(partial(layer, kind=kind)) for kind in layers.KINDS},
    **{f"optimiser.{kind}": Case(partial(sweep, kind=kind)) for kind in optimisers.STATES},
    "optimiser.clip": Case(partial(sweep, kind="adam", most=1.5), ("squares", "cut_factor")),
}
