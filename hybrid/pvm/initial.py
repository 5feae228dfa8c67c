"""Initial values: weights drawn from a seed, and the state before the first frame."""

from typing import Any

import numpy as np

from .config import Config
from .layout import TapeLayout, runs, weights_at

CHANGE, REST = np.float32(10), np.float32(0.1)  # factors of first weights: of derivatives, and of all else


def weights(
    layout: TapeLayout, config: Config, seed: int, dtype: Any, drawn_at: np.ndarray | None = None
) -> np.ndarray:
    """The weights and biases of all dense layers, flat, (weights,) of `dtype`; by the rule of `config.init`.

    drawn_at  (U,) where the numbers of each unit begin among those that are drawn for a whole model; None: one behind the
              other. What is drawn for other units is left out, not made
    """
    sizes = layout.rows.astype(np.int64) * (layout.columns + 1)
    at = weights_at(layout)
    drawn = np.empty(at[-1], np.float32)
    _draw(drawn, seed, at, at[:-1] if drawn_at is None else drawn_at)
    drawn -= np.float32(0.5)
    if config.init == "cuda":
        drawn *= np.float32(0.03)
    else:
        drawn *= np.repeat(np.float32(2) / np.sqrt(np.maximum(layout.columns, 1).astype(np.float32)), sizes)
    if config.unit == "change":
        _start_from_repeating(drawn, layout, config)
    return drawn.astype(dtype, copy=False)


def _start_from_repeating(drawn: np.ndarray, layout: TapeLayout, config: Config) -> None:
    """Make of drawn weights those of units that predict no change: the last matrix and its bias are 0.

    What will change is first sought in what has changed: derivatives are small, so their first weights are larger than those
    of the signal and the context, by which a unit would know the clip by heart. Biases take the derivatives' middle, 1/2, away.
    """
    at, last = weights_at(layout), layout.layer_at[1:] - 1
    rows, columns = layout.rows.astype(np.int64), layout.columns.astype(np.int64)
    drawn[runs(layout.w_at[last], (rows * (columns + 1))[last])] = 0
    if config.activation == "tanh":  # its 0 is not the middle of 0..1
        drawn[runs((layout.w_at + rows * columns)[last], rows[last])] = np.arctanh(0.5)
    if "derivative" not in config.features:
        return
    for u, first in enumerate(layout.layer_at[:-1]):
        signals = int(layout.signal_at[u + 1] - layout.signal_at[u])
        bias = at[u] + rows[first] * columns[first]
        matrix = drawn[at[u] : bias].reshape(rows[first], columns[first])
        changes = matrix[:, signals : 2 * signals]
        matrix *= REST
        changes *= CHANGE / REST
        drawn[bias : bias + rows[first]] -= changes.sum(axis=1) / 2


def _draw(drawn: np.ndarray, seed: int, at: np.ndarray, drawn_at: np.ndarray) -> None:
    """Write drawn[at[u] : at[u + 1]] of each unit from place drawn_at[u] on of the numbers of this seed.

    A draw of the generator makes two float32, so an odd place is reached by one number that is thrown away.
    """
    breaks = np.flatnonzero(np.diff(drawn_at) != np.diff(at[:-1])) + 1  # units that do not follow the one before
    for first, last in zip([0, *breaks], [*breaks, len(drawn_at)], strict=True):
        bits, begin = np.random.PCG64([seed, 0]), int(drawn_at[first])
        bits.advance(begin // 2)
        rng = np.random.Generator(bits)  # from its beginning, `default_rng`
        rng.random(begin % 2, np.float32)
        rng.random(dtype=np.float32, out=drawn[at[first] : at[last]])


def state(
    layout: TapeLayout, config: Config, layer: np.ndarray, weights: np.ndarray, streams: int
) -> dict[str, np.ndarray]:
    """All arrays but the weights that change from tick to tick, as they are before tick 0. B streams.

    Tick t writes the array with number t modulo their count, so the last one is that of the tick before the first.

    layer   (U,) of each unit

    world_0, world_1   (B, W): tick t reads number t, writes what the units publish to the next
    tape_0 ... tape_k  (B, T), of the last `steps` ticks and this one
    signals_0, _1      (B, S)
    integral           (B, S), or (B, 0) where it is no feature
    low, high          (B, W), with `config.publish` "minmax"

    The first predictions are those for inputs that are 0.
    """
    dtype = weights.dtype
    sizes = {
        "world": layout.world,
        "tape": int(layout.tape_at[-1]),
        "signals": int(layout.signal_at[-1]),
    }
    counts = {"world": 2, "tape": layout.steps + 1, "signals": 2}
    arrays = {f"{name}_{k}": np.zeros((streams, sizes[name]), dtype) for name in sizes for k in range(counts[name])}
    arrays["integral"] = np.zeros((streams, sizes["signals"] if "integral" in config.features else 0), dtype)
    if config.publish == "minmax":
        arrays |= {"low": np.zeros((streams, sizes["world"]), dtype), "high": np.ones((streams, sizes["world"]), dtype)}
    _predict(arrays, layout, config, weights)
    if config.publish == "minmax":
        learning = np.repeat(config.rates(0)[0][layer] != 0, layout.hidden)
        _stretch(arrays, runs(layout.published_at, layout.hidden), learning)
    return arrays


def _predict(arrays: dict[str, np.ndarray], layout: TapeLayout, config: Config, weights: np.ndarray) -> None:
    """Compute what the units predict and publish for inputs that are 0, on the tape of the tick before the first."""
    tape, world = arrays[f"tape_{layout.steps}"], arrays["world_0"]
    for k in range(len(layout.rows)):
        rows, columns, at = layout.rows[k], layout.columns[k], layout.w_at[k]
        matrix, bias = weights[at : at + rows * columns].reshape(rows, columns), at + rows * columns
        x = tape[:, layout.in_at[k] : layout.in_at[k] + columns]
        tape[:, layout.out_at[k] : layout.out_at[k] + rows] = _activate(
            x @ matrix.T + weights[bias : bias + rows], config
        )
    world[:, runs(layout.published_at, layout.hidden)] = tape[:, runs(layout.hidden_at, layout.hidden)]


def _stretch(arrays: dict[str, np.ndarray], places: np.ndarray, learning: np.ndarray) -> None:
    """As `_publish` of cpu/pvm.py, of the numbers published at these places."""
    published, low, high = (arrays[name][:, places] for name in ("world_0", "low", "high"))
    least = published.dtype.type(1e-6)
    low[:, learning] = np.minimum(published, low)[:, learning] + least
    high[:, learning] = np.maximum(published, high)[:, learning] - least
    for name, values in (("world_0", (published - low) / (high - low)), ("low", low), ("high", high)):
        arrays[name][:, places] = values


def _activate(s: np.ndarray, config: Config) -> Any:
    if config.activation == "logistic":
        return 1 / (1 + np.exp(-s))
    return np.tanh(s) if config.activation == "tanh" else s / (2 * (abs(s) + 1)) + s.dtype.type(0.5)
