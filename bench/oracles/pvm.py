"""A float64 oracle of a Predictive Vision Model's tick, per hybrid/contract.py, and checks of a backend against it.

Five simple units in two layers: features are signal and past, two frames are predicted, the newest first, with the rational
activation.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.oracles.units import ACTIVATIONS
from hybrid.contract import Gathering, Learning, Past, State
from hybrid.pvm.config import Config
from hybrid.pvm.layout import LATERAL, RAW, TapeLayout, tape_layout
from hybrid.pvm.wiring import wire

CONFIG = Config(grids=((2, 2), (1, 1)), block=(3, 3), hidden=(9, 20), context_to_output=True, readout=None)
GATHERING = Gathering(0.8, 0.1, 0.9, 1.0, 0.5)


class Tick(NamedTuple):
    """The inputs of a tick. speeds: rates and momenta of the units; velocity: None without momentum."""

    layout: TapeLayout
    past: Past
    weights: np.ndarray
    velocity: np.ndarray | None
    speeds: tuple[np.ndarray, np.ndarray]


def drawn(rng: np.random.Generator, streams: int, momentum: bool) -> Tick:
    """Draws a tick of random numbers."""
    layout = tape_layout(wire(CONFIG), CONFIG)
    tape, signals, many = int(layout.tape_at[-1]), int(layout.signal_at[-1]), len(layout.hidden)
    size = int((layout.rows.astype(int) * (layout.columns + 1)).sum())
    reads = {"world": layout.world, "tape": tape, "record": tape, "signals": signals}
    past = Past(**{name: rng.random((streams, numbers), np.float32) for name, numbers in reads.items()})
    weights, velocity = ((scale * rng.normal(size=size)).astype(np.float32) for scale in (0.2, 0.01))
    speeds = 0.1 + 0.1 * rng.random(many, np.float32), 0.9 * rng.random(many, np.float32)
    return Tick(layout, past, weights, velocity if momentum else None, speeds)


def checks(
    kernels: Any, tick: Tick, do: Callable[..., Any], put: Callable[[Any], Any], get: Callable[[Any], Any]
) -> Iterator[tuple[str, np.ndarray, np.ndarray, Any]]:
    """Yields the name of each array that a backend's tick writes, its values, the oracle's, and the old values if updated.

    kernels  cpu.pvm or gpu.pvm
    do       runs work on a queue and returns its result; put, get: copies to the device and back, put(None) is None
    """
    layout, many = tick.layout, len(tick.layout.hidden)
    streams, tape = tick.past.tape.shape
    sizes = {"world": layout.world, "tape": tape, "signals": tick.past.signals.shape[1], "integral": 0, "delta": tape}
    written = {name: put(np.full((streams, numbers), np.nan, np.float32)) for name, numbers in sizes.items()}
    miss = put(np.full(many, np.nan, np.float32))
    state = State(**written, low=None, high=None, miss=miss, weights=put(tick.weights), velocity=put(tick.velocity))
    flags = np.ones(many, np.uint8)
    rate, momenta, learns, adapts = map(put, (*tick.speeds, flags, flags))
    given = Past(*map(put, tick.past)), Learning(rate, momenta, learns, adapts, True), GATHERING
    do(kernels.tick, state, do(kernels.plan, layout), *given, CONFIG.activation, 0, many)
    for name, array in expected(tick).items():
        there, first = ~np.isnan(array), {"weights": tick.weights, "velocity": tick.velocity}.get(name, 0.0)
        yield name, get(getattr(state, name))[there], array[there], first


def expected(tick: Tick) -> dict[str, Any]:
    """Returns the arrays that a tick writes; NaN where nothing is written."""
    layout = tick.layout
    world, _, record, before = (array.astype(float) for array in tick.past)
    scale, offset = GATHERING.scale, GATHERING.offset
    factors = {LATERAL: (GATHERING.lateral * scale, GATHERING.lateral * offset), RAW: (1.0, 0.0)}
    like = {"world": world, "tape": record, "signals": before, "delta": record}
    own: dict[str, Any] = {name: np.full(array.shape, np.nan) for name, array in like.items()}
    own |= {"miss": np.empty(len(layout.hidden)), "weights": tick.weights.astype(float)}
    if tick.velocity is not None:
        own["velocity"] = tick.velocity.astype(float)
    for u, hidden in enumerate(layout.hidden):
        parts = range(layout.part_at[u], layout.part_at[u + 1])
        seen = scale * np.hstack([world[:, layout.part_from[k] :][:, : layout.part_size[k]] for k in parts]) + offset
        span = slice(layout.signal_at[u], layout.signal_at[u + 1])
        own["signals"][:, span], both = seen, np.hstack([seen, before[:, span]])
        own["tape"][:, layout.features_at[u] :][:, : both.shape[1]] = both
        for k in range(layout.copy_at[u], layout.copy_at[u + 1]):
            factor, more = factors.get(layout.copy_kind[k], (GATHERING.feedback * scale, GATHERING.feedback * offset))
            copied = factor * world[:, layout.copy_from[k] :][:, : layout.copy_size[k]] + more
            own["tape"][:, layout.copy_to[k] :][:, : layout.copy_size[k]] = copied
        error = both - record[:, layout.predicted_at[u] :][:, : both.shape[1]]
        own["miss"][u] = abs(error).sum()
        _learn(layout, u, own, record, error, tick.speeds)
        own["world"][:, layout.published_at[u] :][:, :hidden] = own["tape"][:, layout.hidden_at[u] :][:, :hidden]
    return own


def _learn(layout: TapeLayout, u: int, own: dict[str, Any], record: Any, error: Any, speeds: Any) -> None:
    """Lets a unit's dense layers predict, then learn from the error of an earlier prediction."""
    activate, slope = ACTIVATIONS["rational"]
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
