"""A float64 oracle of a Predictive Vision Model's tick, per hybrid/contract.py, and checks of a backend against it.

A tick is a mapping from names to its arguments: those of `drawn`.
"""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.oracles.units import ACTIVATIONS
from hybrid.contract import Gathering, Learning, Past, State
from hybrid.pvm.config import FEATURES, Config
from hybrid.pvm.layout import LATERAL, RAW, TapeLayout, tape_layout
from hybrid.pvm.wiring import wire

# Of the checks: features are signal and past, two frames are predicted, the newest first, with the rational activation.
CONFIG = Config(grids=((2, 2), (1, 1)), block=(3, 3), hidden=(9, 20), context_to_output=True, readout=None)
WRITTEN = tuple("world_next tape signals integral delta low high miss weights velocity".split())
READ = ("world", "last", "record", "before")
Made = dict[str, Any]


def drawn(layout: TapeLayout, streams: int = 1, rng: np.random.Generator | None = None) -> Made:
    """Draws the arguments of a tick by name; all arrays are random, also those that are zeros in a run."""
    rng = rng or np.random.default_rng(0)
    world, tape, signals = layout.world, layout.tape_at[-1], layout.signal_at[-1]
    weights, units = int((layout.rows.astype(int) * (layout.columns + 1)).sum()), len(layout.hidden)
    sizes: list[tuple[int, ...]] = [(streams, n) for n in (world, tape, signals, signals, tape, world, world)]
    sizes += [(units,), (weights,), (weights,)]
    made: Made = {name: rng.random(size) for name, size in zip(WRITTEN, sizes, strict=True)}
    made["weights"] -= 0.5
    made["high"] += 1.0
    made |= {} if layout.features >> FEATURES.index("integral") & 1 else {"integral": np.zeros((streams, 0))}
    made |= {"layout": layout, "world": rng.random((streams, world)), "last": rng.random((streams, tape))}
    made |= {"record": rng.random((streams, tape)), "before": rng.random((streams, signals))}
    made |= {"rate": 0.1 * rng.random(units), "momentum": rng.random(units)}
    made |= {"learns": np.ones(units, np.uint8), "adapts": np.resize(np.array([1, 0, 1, 1, 0], np.uint8), units)}
    made |= {"squeeze": (0.8, 0.1), "tau": 0.9, "factors": (0.5, 2.0), "units": (0, units)}
    return made | {"predict_first": True, "activation": "rational"}


def small(rng: np.random.Generator, streams: int, momentum: bool) -> Made:
    """Draws a tick of five simple units in two layers in float32, with weights and speeds as in a run."""
    made = drawn(tape_layout(wire(CONFIG), CONFIG), streams, rng) | {"low": None, "high": None}
    weights, velocity = (scale * rng.normal(size=made["weights"].size) for scale in (0.2, 0.01))
    rate, momenta = 0.1 + made["rate"], 0.9 * made["momentum"]
    made |= {"weights": weights, "velocity": velocity if momentum else None, "rate": rate, "momentum": momenta}
    return typed(made, np.float32)


def typed(made: Made, dtype: Any) -> Made:
    """Returns copies of all arrays but flags in a dtype."""
    return {
        name: value.astype(dtype) if getattr(value, "dtype", np.uint8) != np.uint8 else value
        for name, value in made.items()
    }


def arguments(layout, activation, squeeze, tau, factors, units, **arrays) -> tuple[Any, ...]:
    """Returns a tick as the contract's function takes it."""
    *written, world, tape, record, before = (arrays[name] for name in WRITTEN + READ)
    learning = Learning(*(arrays[name] for name in Learning._fields))
    gathering = Gathering(squeeze[0], squeeze[1], tau, *factors)
    return State(*written), layout, Past(world, tape, record, before), learning, gathering, activation, *units


def checks(
    kernels: Any, made: Made, do: Callable[..., Any], put: Callable[[Any], Any], get: Callable[[Any], Any]
) -> Iterator[tuple[str, np.ndarray, np.ndarray, Any]]:
    """Yields the name of each array that a backend's tick writes, its values, the oracle's, and the old values if updated.

    kernels  cpu.pvm or gpu.pvm
    do       runs work on a queue and returns its result; put, get: copies to the device and back
    """
    updated = "weights", "velocity"
    nothing = {
        name: np.full_like(made[name], np.nan) for name in WRITTEN if made[name] is not None and name not in updated
    }
    made = made | nothing
    there = {name: put(value) if isinstance(value, np.ndarray) else value for name, value in made.items()}
    do(kernels.tick, *arguments(**there | {"layout": do(kernels.plan, made["layout"])}))
    found = expected(made)
    for name in WRITTEN:
        if made[name] is not None and made[name].size:
            written = ~np.isnan(found[name])
            yield name, get(there[name])[written], found[name][written], made[name] if name in updated else 0.0


def expected(made: Made) -> Made:
    """Returns the arrays after the tick, from the words of the contract, a unit at a time; as before where none is written."""
    own = typed(made, np.float64)
    o = SimpleNamespace(**own)
    for u in range(len(o.miss)):
        layers, streams = range(o.layout.layer_at[u], o.layout.layer_at[u + 1]), range(len(o.world))
        o.miss[u] = sum(_gather(o, u, b) for b in streams)
        changes = [_backward(o, u, b) for b in streams]
        if o.predict_first:
            _forward(o, layers)
        for k in layers if o.learns[u] else ():
            for b, (delta, _) in enumerate(change[k] for change in changes):
                o.delta[b, o.layout.out_at[k] :][: delta.size] = delta
            step = o.rate[u] * sum(change[k][1] for change in changes)
            span = slice(o.layout.w_at[k], o.layout.w_at[k] + step.size)
            if o.velocity is not None:
                step = o.velocity[span] = o.momentum[u] * o.velocity[span] + step
            o.weights[span] += step
        if not o.predict_first:
            _forward(o, layers)
        _publish(o, u)
    return own


def _gather(o: Any, u: int, b: int) -> Any:
    """Writes signals, features and context of a unit; returns its error."""
    layout, world, (scale, offset) = o.layout, o.world[b], o.squeeze
    span = slice(layout.signal_at[u], layout.signal_at[u + 1])
    parts = range(layout.part_at[u], layout.part_at[u + 1])
    runs = [world[layout.part_from[k] :][: layout.part_size[k]] for k in parts]
    signal = o.signals[b, span] = scale * np.concatenate(runs) + offset
    past, n, guess = o.before[b, span], signal.size, layout.predicted_at[u]
    newest = 0 if layout.newest_first else layout.steps - 1
    next_at = layout.steps - 1 if layout.newest_first else 0

    def predicted(tape, step):
        values = tape[guess + step * n :][:n].copy()
        if layout.residual_at[u] >= 0:
            values += 2 * tape[layout.residual_at[u] + step * n :][:n] - 1
        return values

    blocks = {
        "signal": signal,
        "derivative": (signal - past) / 2 + 0.5,
        "error": (signal - predicted(o.last[b], next_at).clip(0, 1)) / 2 + 0.5,
        "past": past,
    }
    if o.integral.size:
        o.integral[b, span] = blocks["integral"] = o.tau * o.integral[b, span] + (1 - o.tau) * signal
    chosen = [blocks[name] for k, name in enumerate(FEATURES) if layout.features & 1 << k]
    stacked = np.stack([part.reshape(-1, layout.block[u]) for part in chosen], 1).ravel()
    o.tape[b, layout.features_at[u] :][: stacked.size] = stacked
    for k in range(layout.copy_at[u], layout.copy_at[u + 1]):
        value, kind = world[layout.copy_from[k] :][: layout.copy_size[k]], layout.copy_kind[k]
        if kind != RAW:
            value = o.factors[0 if kind == LATERAL else 1] * (scale * value + offset)
        o.tape[b, layout.copy_to[k] :][: layout.copy_size[k]] = value
    targets = [signal if step == newest else past for step in range(layout.steps)]
    return sum(abs(target - predicted(o.record[b], step)).sum() for step, target in enumerate(targets))


def _backward(o: Any, u: int, b: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Returns delta and the gradient of each dense layer, downhill, as laid out."""
    layout, record, slope = o.layout, o.record[b], ACTIVATIONS[o.activation][1]
    span = slice(layout.signal_at[u], layout.signal_at[u + 1])
    now, past = o.signals[b, span], o.before[b, span]
    target = np.concatenate([now] if layout.steps == 1 else [now, past] if layout.newest_first else [past, now])
    guess, rest = layout.predicted_at[u], layout.residual_at[u]
    left = target - record[guess : guess + target.size]
    error = {int(guess): np.where(np.arange(left.size) < layout.signed[u], np.sign(left), left)}
    if rest >= 0:
        error[int(rest)] = (left + 1) / 2 - record[rest : rest + left.size]
    found = {}
    for k in reversed(range(layout.layer_at[u], layout.layer_at[u + 1])):
        wrote, read, rows = int(layout.out_at[k]), int(layout.in_at[k]), layout.rows[k]
        delta = slope(record[wrote : wrote + rows]) * error[wrote]
        found[k] = delta, np.append(np.outer(delta, record[read : read + layout.columns[k]]), delta)
        if layout.pulled[k]:
            error[read] = (delta @ _matrix(o, k)[0])[: layout.pulled[k]]
    return found


def _matrix(o: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns views of a dense layer's matrix and bias."""
    rows, columns, at = o.layout.rows[k], o.layout.columns[k], o.layout.w_at[k]
    bias = at + rows * columns
    return o.weights[at:bias].reshape(rows, columns), o.weights[bias : bias + rows]


def _forward(o: Any, layers: range) -> None:
    for k in layers:
        weights, bias = _matrix(o, k)
        read, wrote = o.layout.in_at[k], o.layout.out_at[k]
        x = o.tape[:, read : read + o.layout.columns[k]]
        o.tape[:, wrote : wrote + o.layout.rows[k]] = ACTIVATIONS[o.activation][0](x @ weights.T + bias)


def _publish(o: Any, u: int) -> None:
    layout = o.layout
    value = o.tape[:, layout.hidden_at[u] :][:, : layout.hidden[u]]
    place = slice(layout.published_at[u], layout.published_at[u] + layout.hidden[u])
    if o.low is not None:
        if o.adapts[u]:
            o.low[:, place] = np.minimum(value, o.low[:, place]) + 1e-6
            o.high[:, place] = np.maximum(value, o.high[:, place]) - 1e-6
        value = (value - o.low[:, place]) / (o.high[:, place] - o.low[:, place])
    o.world_next[:, place] = value
