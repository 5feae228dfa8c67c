"""The layout of a Predictive Vision Model in flat arrays.

Three arrays hold the state, with one row per stream:

    world    [ the frame, row-major | output of unit 0 | unit 1 ... ]
    signals  the targets of each unit: its part of the world, squeezed, concatenated over units
    tape     all activations of a frame; a unit's part, by the kind of its dense layers:

        simple            [ features | context | hidden (| raw context) | prediction ]
        change            the same; its prediction is the signal, the first feature, and a correction, the output
        complex           [ features | context | 2 h | hidden | prediction ]    ([ features | 2 h | context | ... ])
        residual          [ context | a | features | hidden | prediction of a | prediction of b ]
        complex residual  [ context | a | a | features | b | hidden | prediction of a | prediction of b ]

A dense layer reads one contiguous range of the tape and writes another. A unit of any kind is thus a list of dense layers,
computed in order. An additional input of a layer (a context, a's hidden vector) is adjacent to the output before it.
"""

from typing import Any, NamedTuple

import numpy as np

from .config import FEATURES, Config
from .wiring import Wiring

LATERAL, FEEDBACK, RAW = range(3)  # kinds of a copy of the context


class TapeLayout(NamedTuple):
    """The layout of U units; sizes are int32, offsets int64, both in numbers. A namedtuple, readable by Numba and launchers.

    layer_at, part_at, copy_at, signal_at, tape_at  (U + 1,) offsets of a unit's layers, parts, copies, signals and tape
    block          (U,) a unit's signals are blocks of this size, each followed by its other features
    features_at    (U,) on the tape
    hidden_at, hidden, published_at  (U,) the hidden vector: its tape offset, its size, its world offset when published
    predicted_at   (U,) on the tape; predictions of `steps` frames, each of all signals
    residual_at    (U,) on the tape, the prediction of the error of the one at predicted_at; -1: none
    signed         (U,) number of leading errors that are replaced by their sign: all or none
    part_from, part_size                      ranges of the world that are a unit's signals, in order
    copy_from, copy_to, copy_size, copy_kind  ranges of the world copied to the tape as LATERAL, FEEDBACK or RAW context
    rows, columns, pulled, w_at, in_at, out_at  of a dense layer: a matrix (rows, columns), followed by its bias (rows,). It
                   reads the tape at in_at and writes it at out_at; gradients flow back to the first `pulled` inputs
    features       bits: number k is the k-th of FEATURES in config.py
    steps          number of predicted frames
    newest_first   True: the prediction of the last of them comes first
    world          W, the numbers of the world
    model_units    units of the whole model, which may contain more: a GPU's summation order depends on their number
    """

    layer_at: np.ndarray
    part_at: np.ndarray
    copy_at: np.ndarray
    signal_at: np.ndarray
    tape_at: np.ndarray
    block: np.ndarray
    features_at: np.ndarray
    hidden_at: np.ndarray
    hidden: np.ndarray
    published_at: np.ndarray
    predicted_at: np.ndarray
    residual_at: np.ndarray
    signed: np.ndarray
    part_from: np.ndarray
    part_size: np.ndarray
    copy_from: np.ndarray
    copy_to: np.ndarray
    copy_size: np.ndarray
    copy_kind: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    pulled: np.ndarray
    w_at: np.ndarray
    in_at: np.ndarray
    out_at: np.ndarray
    features: int
    steps: int
    newest_first: bool
    world: int
    model_units: int


def tape_layout(wiring: Wiring, config: Config) -> TapeLayout:
    """Returns the layout of the units of a wiring; the configuration gives their kind and their inputs."""
    published_at = np.prod(wiring.frame) + _offsets(wiring.hidden)
    parts = [_parts(wiring, u, published_at) for u in range(len(wiring.hidden))]
    signals = [sum(size for _, size in part) for part in parts]
    units = [_unit(wiring, config, u, size) for u, size in enumerate(signals)]
    tape_at = _offsets([unit.size for unit in units])
    start = tape_at[:-1]
    layers = [(*layer, at) for unit, at in zip(units, start, strict=True) for layer in unit.layers]
    rows, columns, pulled, reads, writes, at = (np.array(field, np.int64) for field in zip(*layers, strict=True))
    copies = [_copies(wiring, u, unit, published_at) for u, unit in enumerate(units)]
    copied, residual = [len(unit) for unit in copies], np.array([unit.residual for unit in units])
    copy_from, copy_to, copy_size, copy_kind = np.concatenate(copies).T
    return TapeLayout(
        layer_at=_offsets([len(unit.layers) for unit in units]),
        part_at=_offsets([len(part) for part in parts]),
        copy_at=_offsets(copied),
        signal_at=_offsets(signals),
        tape_at=tape_at,
        block=_sizes([_block(wiring, config, u, size) for u, size in enumerate(signals)]),
        features_at=start + [unit.features for unit in units],
        hidden_at=start + [unit.hidden for unit in units],
        hidden=_sizes(wiring.hidden),
        published_at=published_at[:-1],
        predicted_at=start + [unit.predicted for unit in units],
        residual_at=np.where(residual, start + residual, -1),
        signed=_sizes(np.array(signals) * config.predict_steps * config.sign_of_error),
        part_from=np.array([at for part in parts for at, _ in part], np.int64),
        part_size=_sizes([size for part in parts for _, size in part]),
        copy_from=np.ascontiguousarray(copy_from),
        copy_to=copy_to + np.repeat(start, copied),
        copy_size=_sizes(copy_size),
        copy_kind=_sizes(copy_kind),
        rows=_sizes(rows),
        columns=_sizes(columns),
        pulled=_sizes(pulled),
        w_at=_offsets(rows * (columns + 1))[:-1],
        in_at=at + reads,
        out_at=at + writes,
        features=sum(1 << k for k, name in enumerate(FEATURES) if name in config.features),
        steps=config.predict_steps,
        newest_first=config.wiring == "cuda",
        world=int(published_at[-1]),
        model_units=len(units),
    )


def taken(layout: TapeLayout, units: np.ndarray) -> TapeLayout:
    """Returns the layout of the units (u,), in this order: tape, signals, weights hold only them, the world all."""
    tape_at = _offsets(np.diff(layout.tape_at)[units])
    moved = tape_at[:-1] - layout.tape_at[units]  # tape offset shifts of each unit
    own: dict[str, Any] = {"tape_at": tape_at, "signal_at": _offsets(np.diff(layout.signal_at)[units])}
    own |= {name: getattr(layout, name)[units] for name in ("block", "hidden", "published_at", "signed")}
    own |= {name: getattr(layout, name)[units] + moved for name in ("features_at", "hidden_at", "predicted_at")}
    own["residual_at"] = np.where(layout.residual_at[units] < 0, -1, layout.residual_at[units] + moved)
    for kind, same, on_tape in (
        ("layer_at", ("rows", "columns", "pulled"), ("in_at", "out_at")),
        ("part_at", ("part_from", "part_size"), ()),
        ("copy_at", ("copy_from", "copy_size", "copy_kind"), ("copy_to",)),
    ):
        at = getattr(layout, kind)
        counts = np.diff(at)[units]
        places, by = runs(at[units], counts), np.repeat(moved, counts)
        own |= {kind: _offsets(counts)} | {name: getattr(layout, name)[places] for name in same}
        own |= {name: getattr(layout, name)[places] + by for name in on_tape}
    own["w_at"] = _offsets(own["rows"].astype(np.int64) * (own["columns"] + 1))[:-1]
    return layout._replace(**own)


def weights_at(layout: TapeLayout) -> np.ndarray:
    """Returns the weight offsets of the units and their total, (U + 1,)."""
    ends = _offsets(layout.rows.astype(np.int64) * (layout.columns + 1))
    return ends[layout.layer_at]


def runs(start: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Returns start[0], start[0] + 1, ... start[0] + sizes[0] - 1, start[1], ..."""
    first = np.cumsum(sizes) - sizes
    return np.repeat(start - first, sizes) + np.arange(sizes.sum())


class _Unit:
    """A unit under construction: its tape grows with each placement. Offsets are relative to its start."""

    features = context = hidden = predicted = 0
    residual = 0  # none
    raw: int | None = None  # offset of the raw context

    def __init__(self) -> None:
        self.size = 0
        self.layers: list[tuple[int, int, int, int, int]] = []  # rows, columns, pulled, reads, writes

    def place(self, size: int) -> int:
        """Allocates a range of the tape; returns its offset."""
        self.size += size
        return self.size - size

    def layer(self, reads: int, columns: int, rows: int, pulled: int = 0) -> int:
        """Adds a dense layer of `columns` inputs from `reads` on the tape, which writes to its end; returns its offset.
        The first `pulled` inputs receive gradients."""
        self.layers.append((rows, columns, pulled, reads, self.place(rows)))
        return self.size - rows


def _unit(wiring: Wiring, config: Config, u: int, signals: int) -> _Unit:
    h, context = int(wiring.hidden[u]), int(sum(wiring.hidden[wiring.context[u]]))
    build = _residual if config.unit in ("residual", "complex_residual") else _plain
    return build(config, signals * len(config.features), context, h, signals * config.predict_steps)


def _plain(config: Config, inputs: int, context: int, h: int, outputs: int) -> _Unit:
    """Builds one net of three layers or, "complex", of four; the context enters the first dense layer or the second."""
    unit, later = _Unit(), config.context_to_output
    unit.features = unit.place(inputs)
    if config.unit == "complex":
        if not later:
            unit.context = unit.place(context)
        first = unit.layer(0, inputs + (0 if later else context), 2 * h)
        if later:
            unit.context = unit.place(context)
        unit.hidden = unit.layer(first, 2 * h + (context if later else 0), h, pulled=2 * h)
        unit.predicted = unit.layer(unit.hidden, h, outputs, pulled=h)
        return unit
    unit.context = unit.place(context)
    unit.hidden = unit.layer(0, inputs + context, h)
    if later:
        unit.raw = unit.place(context)
    output = unit.layer(unit.hidden, h + (context if later else 0), outputs, pulled=h)
    if config.unit == "change":  # a correction of the repeated signal, as net b of a residual unit corrects net a
        unit.predicted, unit.residual = unit.features, output
    else:
        unit.predicted = output
    return unit


def _residual(config: Config, inputs: int, context: int, h: int, outputs: int) -> _Unit:
    """Builds net a, which predicts from the context, and net b, which predicts a's error from features and a's hidden part."""
    unit, deep = _Unit(), config.unit == "complex_residual"
    unit.context = unit.place(context)
    a = unit.layer(0, context, (3 if deep else 2) * h)
    if deep:
        a = unit.layer(a, 3 * h, 2 * h, pulled=3 * h)
    unit.features = unit.place(inputs)
    b = unit.layer(a, 2 * h + inputs, (2 if deep else 1) * h)
    unit.hidden = unit.layer(b, 2 * h, h, pulled=2 * h) if deep else b
    unit.predicted = unit.layer(a, 2 * h, outputs, pulled=2 * h)
    unit.residual = unit.layer(unit.hidden, h, outputs, pulled=h)
    return unit


def _parts(wiring: Wiring, u: int, published_at: np.ndarray) -> list[tuple[int, int]]:
    """Returns the world ranges (offset, size) that a unit predicts: rows of its patch, then the units below it."""
    parts = []
    if (patch := wiring.patch[u]) is not None:
        row, column, rows, columns = patch
        _, width, channels = wiring.frame
        parts = [((r * width + column) * channels, columns * channels) for r in range(row, row + rows)]
    return parts + [(published_at[source], wiring.hidden[source]) for source in wiring.signal[u]]


def _block(wiring: Wiring, config: Config, u: int, signals: int) -> int:
    """Returns the number of contiguous values of a signal before their next feature."""
    if config.wiring == "cuda" or config.unit == "change":  # the signal is predicted in its own order, as one block
        return signals
    sizes = {int(wiring.hidden[source]) for source in wiring.signal[u]}
    if (patch := wiring.patch[u]) is not None:
        sizes.add(patch[2] * patch[3] * wiring.frame[2])
    return sizes.pop() if len(sizes) == 1 else signals


def _copies(wiring: Wiring, u: int, unit: _Unit, published_at: np.ndarray) -> np.ndarray:
    """Returns the ranges (from, to, size, kind) of a unit's context: (copies, 4) int64."""
    sources = np.asarray(wiring.context[u], np.int64)
    size = wiring.hidden[sources].astype(np.int64)
    at, done = published_at[sources], np.cumsum(size) - size
    kind = np.where(np.asarray(wiring.feedback[u], bool), FEEDBACK, LATERAL)
    copies = [(at, unit.context + done, size, kind)]
    if unit.raw is not None:
        copies.append((at, unit.raw + done, size, np.full_like(at, RAW)))
    return np.stack([np.stack(copy, axis=-1) for copy in copies], axis=1).reshape(-1, 4)


def _offsets(sizes: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _sizes(values: Any) -> np.ndarray:
    return np.array(values, np.int32)
