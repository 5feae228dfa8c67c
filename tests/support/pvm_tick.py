"""A tick of five unlike units: its arguments, the CPU's answer, and the same by hand from the words of the contract."""

from types import SimpleNamespace

import numpy as np

from cpu import pvm
from hybrid.contract import Gathering, Learning, Past, State
from hybrid.pvm.config import Config
from hybrid.pvm.layout import FEATURES, LATERAL, RAW, tape_layout
from hybrid.pvm.wiring import custom

# Odd sizes, units without context, with overlapping patches, with a patch and a signal, sources of unequal sizes.
UNITS = (
    {"layer": 0, "hidden": 3, "patch": (0, 0, 2, 3), "context": (1, 4, 0), "feedback": (False, True, False)},
    {"layer": 0, "hidden": 5, "patch": (1, 2, 3, 5)},
    {"layer": 0, "hidden": 1, "patch": (4, 6, 1, 1), "context": (0, 1, 3)},
    {"layer": 1, "hidden": 9, "signal": (0, 1), "context": (4, 4, 2)},
    {"layer": 1, "hidden": 2, "patch": (0, 0, 1, 2), "signal": (2,), "context": (3,)},
)
FRAME = (5, 7, 2)
WRITTEN = tuple("world_next tape signals integral delta low high miss weights velocity".split())
READ = ("world", "last", "record", "before")
ALL = {"wiring": "classic", "features": FEATURES}
TWO = {"wiring": "classic", "features": ("signal", "past"), "predict_steps": 2}
KINDS = {
    "simple, newest first": {"activation": "rational"},
    "simple, context twice": {"context_to_output": True, "activation": "logistic"},
    "all features": {**ALL, "predict_steps": 1, "activation": "logistic"},
    "all features, two steps": {**ALL, "predict_steps": 2, "activation": "tanh"},
    "complex": {**ALL, "unit": "complex", "predict_steps": 1, "activation": "rational"},
    "complex, context later": {**TWO, "unit": "complex", "context_to_output": True, "activation": "logistic"},
    "residual": {**TWO, "unit": "residual", "activation": "rational"},
    "complex residual": {**TWO, "unit": "complex_residual", "activation": "logistic"},
    "change": {**ALL, "unit": "change", "predict_steps": 1, "activation": "tanh"},
    "sign of the error": {"sign_of_error": True},
}


def case(kind, streams=1, seed=0, plain=False, **fields):
    """`drawn` of the five units of a kind."""
    config = Config(grids=((3, 1), (2, 1)), hidden=(3, 2), readout=None, **KINDS[kind], **fields)
    layout, first = tape_layout(custom(FRAME, UNITS), config), config.wiring == "cuda"
    return drawn(layout, streams, seed, plain) | {"predict_first": first, "activation": config.activation}


def drawn(layout, streams=1, seed=0, plain=False):
    """Arguments of a tick by name, all arrays random: also those that a run would have zeros in.

    plain  without momentum, and published as it is; a kernel is compiled for either
    """
    rng = np.random.default_rng(seed)
    world, tape, signals = layout.world, layout.tape_at[-1], layout.signal_at[-1]
    weights, units = int((layout.rows.astype(int) * (layout.columns + 1)).sum()), len(layout.hidden)

    def some(*shape):
        return rng.random(shape)

    sizes = [(streams, n) for n in (world, tape, signals, signals, tape, world, world)]
    sizes += [(units,), (weights,), (weights,)]
    made = {name: some(*size) for name, size in zip(WRITTEN, sizes, strict=True)}
    made["weights"] -= 0.5
    made["high"] += 1.0
    made |= {} if layout.features & pvm.INTEGRAL else {"integral": np.zeros((streams, 0))}
    made |= {"low": None, "high": None, "velocity": None} if plain else {}
    made |= {"layout": layout, "world": some(streams, world), "last": some(streams, tape)}
    made |= {"record": some(streams, tape), "before": some(streams, signals)}
    made |= {"rate": 0.1 * some(units), "momentum": some(units) * (not plain)}
    made |= {"learns": np.ones(units, np.uint8), "adapts": np.resize(np.array([1, 0, 1, 1, 0], np.uint8), units)}
    made |= {"squeeze": (0.8, 0.1), "tau": 0.9, "factors": (0.5, 2.0), "units": (0, units)}
    return made | {"predict_first": True, "activation": "rational"}


def tick(made):
    """The arrays afterwards; those of `made` stay as they are."""
    own = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in made.items()}
    pvm.tick(*arguments(**own))
    return own


def arguments(layout, activation, squeeze, tau, factors, units, **arrays):
    """The arrays of a case as the contract's tick takes them."""
    *written, world, tape, record, before = (arrays[name] for name in WRITTEN + READ)
    learning = Learning(*(arrays[name] for name in Learning._fields))
    gathering = Gathering(*squeeze, tau, *factors)
    return State(*written), layout, Past(world, tape, record, before), learning, gathering, activation, *units


ACTIVATE = {
    "logistic": lambda s: 1 / (1 + np.exp(-s)),
    "tanh": np.tanh,
    "rational": lambda s: s / (2 * (abs(s) + 1)) + 0.5,
}
SLOPE = {
    "logistic": lambda a: a * (1 - a),
    "tanh": lambda a: 1 - a * a,
    "rational": lambda a: (1 - abs(2 * a - 1)) ** 2 / 2,
}


def by_hand(made):
    """The same from the words of the contract, a stream and a unit at a time."""
    own = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in made.items()}
    o = SimpleNamespace(**own)
    for u in range(len(o.miss)):
        unit(o, u)
    return own


def unit(o, u):
    layout, streams = o.layout, range(len(o.world))
    layers = [matrix(o, k) for k in range(layout.layer_at[u], layout.layer_at[u + 1])]
    o.miss[u] = sum(gather(o, u, b) for b in streams)
    gradients = [backward(o, u, b) for b in streams]
    if o.predict_first:
        forward(o, u)
    if o.learns[u]:
        for k in range(layout.layer_at[u], layout.layer_at[u + 1]):
            for b in streams:
                o.delta[b, layout.out_at[k] :][: layout.rows[k]] = gradients[b][k - layout.layer_at[u]][1]
        for place, (weights, bias, velocity, bias_velocity) in enumerate(layers):
            moved = sum(gradient[place][0] for gradient in gradients), sum(gradient[place][1] for gradient in gradients)
            for array, speed, change in zip((weights, bias), (velocity, bias_velocity), moved, strict=True):
                if speed is None:
                    array += o.rate[u] * change
                else:
                    speed *= o.momentum[u]
                    speed += o.rate[u] * change
                    array += speed
    if not o.predict_first:
        forward(o, u)
    publish(o, u)


def matrix(o, k):
    """Views of a dense layer's matrix and bias, and of their velocities."""
    rows, columns, at = o.layout.rows[k], o.layout.columns[k], o.layout.w_at[k]

    def views(array):
        whole = array[at : at + rows * (columns + 1)]
        return whole[: rows * columns].reshape(rows, columns), whole[rows * columns :]

    return *views(o.weights), *((None, None) if o.velocity is None else views(o.velocity))


def gather(o, u, b):
    """Signals, features and context of a unit; returns how wrong it was."""
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
        value = world[layout.copy_from[k] :][: layout.copy_size[k]]
        kind = layout.copy_kind[k]
        if kind != RAW:
            value = o.factors[0 if kind == LATERAL else 1] * (scale * value + offset)
        o.tape[b, layout.copy_to[k] :][: layout.copy_size[k]] = value
    targets = [signal if step == newest else past for step in range(layout.steps)]
    return sum(abs(target - predicted(o.record[b], step)).sum() for step, target in enumerate(targets))


def backward(o, u, b):
    """(gradient of the matrix, of the bias) of each dense layer, downhill."""
    layout, record, slope = o.layout, o.record[b], SLOPE[o.activation]
    span = slice(layout.signal_at[u], layout.signal_at[u + 1])
    now, past = o.signals[b, span], o.before[b, span]
    target = np.concatenate([now] if layout.steps == 1 else [now, past] if layout.newest_first else [past, now])
    guess, rest = layout.predicted_at[u], layout.residual_at[u]
    left = target - record[guess : guess + target.size]
    error = {int(guess): np.where(np.arange(left.size) < layout.signed[u], np.sign(left), left)}
    if rest >= 0:
        error[int(rest)] = (left + 1) / 2 - record[rest : rest + left.size]
    found = []
    for k in reversed(range(layout.layer_at[u], layout.layer_at[u + 1])):
        wrote, read, rows = int(layout.out_at[k]), int(layout.in_at[k]), layout.rows[k]
        delta = slope(record[wrote : wrote + rows]) * error[wrote]
        found.insert(0, (np.outer(delta, record[read : read + layout.columns[k]]), delta))
        if layout.pulled[k]:
            error[read] = (delta @ matrix(o, k)[0])[: layout.pulled[k]]
    return found


def forward(o, u):
    for k in range(o.layout.layer_at[u], o.layout.layer_at[u + 1]):
        weights, bias, *_ = matrix(o, k)
        read, wrote = o.layout.in_at[k], o.layout.out_at[k]
        x = o.tape[:, read : read + o.layout.columns[k]]
        o.tape[:, wrote : wrote + o.layout.rows[k]] = ACTIVATE[o.activation](x @ weights.T + bias)


def publish(o, u):
    layout = o.layout
    value = o.tape[:, layout.hidden_at[u] :][:, : layout.hidden[u]]
    place = slice(layout.published_at[u], layout.published_at[u] + layout.hidden[u])
    if o.low is not None:
        if o.adapts[u]:
            o.low[:, place] = np.minimum(value, o.low[:, place]) + 1e-6
            o.high[:, place] = np.maximum(value, o.high[:, place]) - 1e-6
        value = (value - o.low[:, place]) / (o.high[:, place] - o.low[:, place])
    o.world_next[:, place] = value


def assert_close(found, expected):
    for name in ("world_next", "tape", "signals", "integral", "low", "high", "miss", "weights", "velocity"):
        if expected[name] is not None:
            np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-12, err_msg=name)
    layout = expected["layout"]
    for u in np.flatnonzero(expected["learns"]):
        guessed = layout.predicted_at[u] == layout.features_at[u]  # no layer wrote it: what is there is read by nothing
        part = slice(layout.hidden_at[u] if guessed else layout.tape_at[u], layout.tape_at[u + 1])
        np.testing.assert_allclose(found["delta"][:, part], expected["delta"][:, part], rtol=0, atol=1e-12)
