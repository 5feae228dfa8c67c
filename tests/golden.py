"""Replay a recording of an original Predictive Vision Model, or of a twin, on ours, and say how far it is from it.

    python -m tests.golden FILE [--device cuda:0]

A recording is an .npz of the CUDA implementation (its frames are `t_frame_raw`) or of the classic one (`t_frame_u8`). Ours
is made from the recorded configuration alone, begins with the recorded weights and sees the recorded frames; everything
else in the file is compared, a line for each array, with the frame where it is worst. The exit code is 0 where all is
within the tolerance, 1 where something is not, 2 where the file is no recording.

A CPU computes in the recorded dtype, a GPU in float32.

The originals have mistakes that ours has not: `as_original`, and `wired`, `state` and `expected` of the replays, repeat them.
"""

import argparse
import copy
import dataclasses
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybrid.pvm import originals
from hybrid.pvm import pipeline as initial
from hybrid.pvm.config import Config, Event
from hybrid.pvm.layout import runs
from hybrid.pvm.model import PVM, StepResult
from hybrid.pvm.wiring import Wiring, receptive, wire
from hybrid.storage import tables

TOLERANCE = {"float64": 1e-12, "float32": 2e-6}
GPU = 1e-5  # sums in another order, with fused multiply-adds
ROUNDED = 1e-7  # of what is recorded in float32 beside float64: numbers up to 1 are rounded by half of this
FED = (  # what ours is given, so there is nothing to compare; errors and gradients show in the weights of the next frames
    "t_out_error", "t_out_delta", "t_hid_error", "t_hid_delta",
    "config_json", "launches_json", "real", "weights_init", "readout_w0_init", "readout_w1_init", "readout_init",
    "readout_hidden", "t_frame_in", "t_frame_u8", "t_learned", "t_step", "w_steps",
    "unit_i_ptr", "unit_r_ptr", "unit_w0_ptr", "unit_w1_ptr", "readout_w0_ptr", "readout_w1_ptr",
)  # fmt: skip


class Row(NamedTuple):
    """One recorded array: the worst difference, where it is (None: it is no array of frames), and what is allowed."""

    name: str
    worst: float
    frame: int | None
    allowed: float

    @property
    def fails(self) -> bool:
        return not self.worst <= self.allowed

    def __str__(self) -> str:
        at = "" if self.frame is None else f"frame {self.frame}"
        return f"{self.name:24}{self.worst:12.3g}  {at:10}{self.allowed:10.1g}  {'FAILS' if self.fails else 'ok'}"


class Recording:
    """The arrays of a file; which of them were compared, and how far ours were from them."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.arrays, self.allowed = arrays, 0.0
        self.rows: dict[str, Row] = {}
        self.options = json.loads(str(arrays["config_json"]))

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            return self.arrays[name]
        except KeyError:
            raise ValueError(f"{name}: not in the file, expected in a recording") from None

    def same(self, name: str, ours: Any, recorded: Any = None) -> None:
        """Compare what must be equal, entry by entry: a list, sizes, shapes. recorded None: the array of this name."""
        if name not in self:
            return
        theirs = self[name] if recorded is None else recorded
        equal = len(ours) == len(theirs) and all(map(np.array_equal, ours, theirs))
        self.rows[name] = Row(name, 0.0 if equal else np.inf, None, 0.0)

    def same_lists(self, flat: str, cuts: str, ours: list[list[int]]) -> None:
        """The same for a list a unit, recorded behind one another and where each begins."""
        if flat in self and cuts in self:
            recorded = [self[flat][low:high].tolist() for low, high in pairwise(self[cuts])]
            self.same(flat, ours, recorded)
            self.same(cuts, [len(part) for part in ours], [len(part) for part in recorded])

    def near(self, name: str, frame: int, ours: Any, place: Any = slice(None), at: Any = None) -> None:
        """Compare numbers of a frame with entry `at` (None: the frame; (): the whole) of an array, there where `place` says."""
        if name not in self:
            return
        recorded = np.asarray(self[name][frame if at is None else at]).reshape(-1)[place]
        allowed = self.allowed
        if self[name].dtype.kind != "f":
            allowed = 0.0
        elif self[name].dtype == np.float32:
            allowed = max(allowed, ROUNDED)
        apart = difference(np.asarray(ours, np.float64).reshape(-1), recorded.astype(np.float64))
        before = self.rows.get(name, Row(name, -1.0, frame, allowed))
        self.rows[name] = Row(name, apart, frame, allowed) if apart > before.worst else before

    def missed(self) -> list[str]:
        """Arrays that nothing was compared with."""
        known = {*self.rows, *FED}
        return [name for name in self.arrays if name not in known and not name.startswith("t_label_")]


def difference(ours: np.ndarray, recorded: np.ndarray) -> float:
    """The largest; infinite where shapes differ, or where only one of both is a number."""
    if ours.shape != recorded.shape:
        return np.inf
    apart = np.where(np.isnan(ours) & np.isnan(recorded), 0, abs(ours - recorded))
    return float(np.where(np.isnan(apart), np.inf, apart).max(initial=0))


def read(path: str | Path) -> Recording:
    """The recording in a file; ValueError for a file that is none, OSError where it cannot be read."""
    found = tables.read(path, "a recording")
    needed = ("config_json", "weights_init")
    missing = [name for name in needed if name not in found]
    if missing or not {"t_frame_raw", "t_frame_u8"} & set(found):
        what = f"no {missing[0]}" if missing else "no frames, t_frame_raw or t_frame_u8"
        raise ValueError(f"{path}: found {what} among {len(found)} arrays, expected a recording")
    try:
        return Recording(found)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: config_json: not JSON ({error}), expected a recording") from None


class Unbounded(PVM):
    """A model that takes pixels a little beyond 1: 0.8 + 0.1 is more than 0.9, if both are float32."""

    def _image(self, frame: Any) -> np.ndarray:
        image = np.asarray(frame)
        return image[None] if image.dtype.kind == "f" else super()._image(frame)


class Replay:
    """A model that repeats a recording, frame by frame. A subclass says the rest:

    configured()          our configuration of the recorded options
    patterns()            compares wiring and sizes
    places()              finds out where everything is: on our tape and in the recorded arrays
    first()               recorded weights of units and readouts at the start
    frame(t)              shows a frame and compares
    order, readout_order  where our weights are in the recorded ones
    frames                the array that says how many frames there are
    """

    frames: str

    def __init__(self, recording: Recording, device: str, real: str):
        self.recording = recording
        self.config, self.order, self.readout_order = self.configured(), np.empty(0, int), np.empty(0, int)
        self.real = np.dtype(real if device == "cpu" else "float32")
        recording.allowed = TOLERANCE[self.real.name] if device == "cpu" else GPU
        self.wiring = self.wired()
        self.pvm = as_original(Unbounded(self.config, wiring=self.wiring, device=device, dtype=self.real))
        self.layout = self.pvm.layout

    def run(self) -> None:
        """Compare what is wired and how large it is, and only where that agrees go through the frames."""
        for begin in (self.patterns, self.places):
            begin()
            if any(row.fails for row in self.recording.rows.values()):
                return
        self.give(*self.first())
        for t in range(len(self.recording[self.frames])):
            self.frame(t)

    def wired(self) -> Wiring:
        """The graph, with the original's mistakes."""
        return wire(self.config)

    def give(self, weights: np.ndarray, readouts: np.ndarray) -> None:
        """Start from these weights."""
        given = weights[self.order].astype(self.real)
        arrays = self.state(given)
        arrays["weights"] = given
        if self.pvm.readouts:
            arrays["readout.weights"] = readouts[self.readout_order].astype(self.real)
        self.pvm.put(arrays)

    def state(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        """All arrays but the weights at the start: what the units make of nothing depends on them."""
        return initial.initial_state(self.layout, self.config, self.wiring.layer, weights, 1)

    def heat(self) -> list[np.ndarray]:
        """What the readouts said: the shown heatmaps are clipped and stretched."""
        assert self.pvm.readouts
        return [heat[0] for heat in self.pvm.readouts.maps(self.pvm._step_slot.heat)]

    def mean_error(self, seen: StepResult) -> float:
        """Mean |error| of all units."""
        counts = np.bincount(self.wiring.layer, np.diff(self.layout.signal_at))
        return float(np.average(seen.error, weights=counts))

    def due(self, t: int) -> Iterator[int]:
        """At which place of the kept weights this frame's are."""
        yield from np.flatnonzero(self.recording["w_steps"] == t).tolist()


def as_original(pvm: PVM) -> PVM:
    """The model, which repeats two mistakes from here on: it learns from its first frames, and the CUDA implementation has
    another slope of the rational activation.
    """
    pvm._rates._first = 0
    if pvm.config.wiring == "cuda" and pvm.config.activation == "rational":
        pvm.pipeline.activation = "rational2023"
    return pvm


class Classic(Replay):
    """Features, one frame out or two, a readout a unit. The rates in force come with the recording.

    Its frame begins with the prediction that our tick before made, and with the outputs that this published.
    """

    frames = "t_frame_u8"

    def configured(self) -> Config:
        config, _ = originals.read(self.recording.options, wiring="classic")
        r, momentum = self.recording, float(self.recording.options["momentum"])
        events: list[Event] = [(0, layer, float(rate), momentum) for layer, rate in enumerate(r["t_lr"][0])]
        for t, (before, now) in enumerate(pairwise(r["t_lr"]), 1):
            events += [(t, int(layer), float(now[layer]), None) for layer in np.flatnonzero(now != before)]
        readout = config.readout if "readout_init" in r else None
        if readout:
            rates = r["t_readout_lr"].astype(float)
            changes = (t for t in range(len(rates)) if t == 0 or rates[t] != rates[t - 1])
            readout = dataclasses.replace(readout, schedule=tuple((t, float(rates[t])) for t in changes))
        lateral, feedback = (switched(name, r[name]) for name in ("t_lateral", "t_feedback"))
        switches = {"lateral_at": lateral, "feedback_at": feedback}
        return dataclasses.replace(config, schedule=tuple(events), readout=readout, **switches)

    def wired(self) -> Wiring:
        return beside_layer_0(wire(self.config))

    def patterns(self) -> None:
        r, wiring, layout = self.recording, self.wiring, self.layout
        patches = [patch is not None for patch in wiring.patch]
        signal = [[-1] if seen else ids.tolist() for seen, ids in zip(patches, wiring.signal, strict=True)]
        for name, ours in {"signal": signal, "context": [ids.tolist() for ids in wiring.context]}.items():
            r.same_lists(f"{name}_src", f"{name}_off", ours)
        r.same("context_is_feedback", np.concatenate(wiring.feedback).astype(int))
        shapes = [(int(c) + 1, int(n)) for c, n in zip(layout.columns, layout.rows, strict=True)]
        self.order = self._transposed("w_shapes", shapes)
        r.same("weights_init", np.arange(len(self.order)), np.arange(len(r["weights_init"])))
        if self.pvm.readouts:
            small = self.pvm.readouts.layout
            sizes = zip(small.inputs.tolist(), small.hidden.tolist(), small.outputs.tolist(), strict=True)
            shapes = [shape for n, h, o in sizes for shape in ((n + 1, h), (h + 1, o))]
            self.readout_order = self._transposed("r_shapes", shapes)

    def _transposed(self, name: str, shapes: list[tuple[int, int]]) -> np.ndarray:
        """Of each of our weights, where it is in matrices (inputs + 1, outputs), the bias in the last row."""
        r, parts, at = self.recording, [], 0
        if name in r:
            r.same(name, shapes, r[name].reshape(-1, 2).tolist())
        for rows, columns in shapes:
            matrix = at + np.arange(rows * columns).reshape(rows, columns)
            parts += [matrix[:-1].T.ravel(), matrix[-1]]
            at += rows * columns
        return np.concatenate(parts)

    def places(self) -> None:
        """Of each recorded picture, where its numbers are: -1 where there are none."""
        wiring, layout = self.wiring, self.layout
        block, side = self.config.block, round(float(self.config.hidden[0]) ** 0.5)
        published = np.append(0, np.cumsum(layout.hidden))
        self.states = [np.full((rows * side, columns * side), -1) for rows, columns in wiring.grids]
        self.predictions = [np.full(wiring.frame, -1)]
        self.predictions += [np.full((rows * side, columns * side), -1) for rows, columns in wiring.grids[:-1]]
        for u, layer in enumerate(wiring.layer):
            _put(self.states[layer], wiring.row[u], wiring.column[u], (side, side), published[u])
            at = layout.predicted_at[u]
            if layer == 0:
                _put(self.predictions[0], wiring.row[u], wiring.column[u], block, at)
                continue
            for k, source in enumerate(wiring.signal[u]):  # those that share a source overwrite one another
                place = wiring.row[source], wiring.column[source]
                _put(self.predictions[layer], *place, (side, side), at + k * side * side)

    def first(self) -> tuple[np.ndarray, np.ndarray]:
        r = self.recording
        return r["weights_init"], r["readout_init"] if self.pvm.readouts else np.empty(0)

    def frame(self, t: int) -> None:
        r, pvm, steps = self.recording, self.pvm, self.layout.steps
        r.near("t_lr", t, pvm.rates[0])
        for name, ours in zip(("t_lateral", "t_feedback"), self.config.factors(t), strict=True):
            r.near(name, t, ours)
        arrays = pvm.fetch()
        tape = np.append(arrays[f"tape_{(t - 1) % (steps + 1)}"][0], 0).clip(0, 1)
        published = arrays[f"world_{t % 2}"][0, int(np.prod(self.wiring.frame)) :]
        for layer in range(len(self.states)):
            r.near(f"t_predicted_{layer}", t, tape[self.predictions[layer]])
            r.near(f"t_state_{layer}", t, published[self.states[layer]])
        shown = tape[self.predictions[0]]
        r.near("t_predicted0", t, shown)
        r.near("t_mean_abs_error", t, np.mean(abs(r["t_frame_u8"][t] / 255 - shown)))
        pvm.step(r["t_frame_u8"][t], self._label(t))
        self._read(t)
        arrays = pvm.fetch()
        for at in self.due(t):
            r.near("w_after", t, arrays["weights"], self.order, at)
            if pvm.readouts:
                r.near("readout_after", t, arrays["readout.weights"], self.readout_order, at)

    def _read(self, t: int) -> None:
        r, readout = self.recording, self.config.readout
        if not readout:
            return
        r.near("t_readout_lr", t, readout.rate(t))
        for layer, heat in zip(self._read_layers(), self.heat(), strict=True):
            r.near(f"t_heatmap_{layer}", t, heat)

    def _read_layers(self) -> list[int]:
        readout = self.config.readout
        enabled = (readout and readout.enabled) or (True,) * len(self.states)
        return [layer for layer, on in enumerate(enabled) if on]

    def _label(self, t: int) -> list[np.ndarray] | None:
        """Of each readout, the share of the object: targets are recorded as 0.4 to 1."""
        r = self.recording
        if not self.pvm.readouts or any(f"t_label_{layer}" not in r for layer in self._read_layers()):
            return None
        return [(r[f"t_label_{layer}"][t][..., 0] - 0.4) / 0.6 for layer in self._read_layers()]


def beside_layer_0(wiring: Wiring) -> Wiring:
    """The classic original forgets where a layer begins, so neighbours of upper layers are units of layer 0."""
    begins = np.searchsorted(wiring.layer, wiring.layer)
    units = zip(wiring.context, wiring.feedback, begins, strict=True)
    return wiring._replace(context=[np.where(over, ids, ids - begin).astype(np.int32) for ids, over, begin in units])


def switched(name: str, factors: np.ndarray) -> int | None:
    """At which frame a factor becomes 1; None: never. ValueError for one that does anything else."""
    on = np.flatnonzero(factors)
    if not on.size:
        return None
    if not (factors[on[0] :] == 1).all():
        raise ValueError(f"{name}: found {sorted(set(factors.tolist()))}, expected 0 and then 1")
    return int(on[0])


def _put(picture: np.ndarray, row: int, column: int, block: tuple[int, int], first: int) -> None:
    """Number the block at a place of a picture of blocks, from `first` on."""
    high, wide = block
    part = picture[row * high : (row + 1) * high, column * wide : (column + 1) * wide]
    part[:] = first + np.arange(part.size).reshape(part.shape)


class Cuda(Replay):
    """Two frames in, two out, readouts of tiles; then dreams, in which nothing is learned."""

    frames = "t_frame_raw"

    def configured(self) -> Config:
        config, _ = originals.read(self.recording.options, wiring="cuda")
        schedule = tuple(
            (at, layer, rounded(rate), None if momentum is None else rounded(momentum))
            for at, layer, rate, momentum in config.schedule
        )
        readout = config.readout if "readout_w0_init" in self.recording else None
        if readout:
            readout = dataclasses.replace(
                readout,
                hidden=(int(self.recording["readout_hidden"]),),
                schedule=tuple((step, rounded(rate)) for step, rate in readout.schedule),
                momentum=rounded(readout.momentum),
            )
        return dataclasses.replace(config, schedule=schedule, readout=readout)

    def state(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        """All ones, which causes two spurious updates."""
        return {name: np.ones_like(array) for name, array in super().state(weights).items()}

    def expected(self) -> np.ndarray:
        """The frame that a dream shows: the one after the next, still squeezed to 0.1..0.9."""
        prediction, pipeline = copy.copy(self.pvm.pipeline.prediction), self.pvm.pipeline
        prediction.squeeze = False
        return prediction.shown(pipeline.predicted(self.pvm.tick - 1, prediction._index(self.layout, 0)))

    def patterns(self) -> None:
        r, wiring, layout = self.recording, self.wiring, self.layout
        self.h, self.signals = layout.hidden.astype(int), np.diff(layout.signal_at)
        self.contexts = np.array([int(wiring.hidden[ids].sum()) for ids in wiring.context])
        self.inputs, self.outputs = 2 * self.signals + self.contexts, 2 * self.signals
        for name, ours in {
            "layer": wiring.layer, "x": wiring.row, "y": wiring.column, "size": self.h,
            "input_dim": self.inputs, "output_dim": self.outputs, "context_dim": self.contexts,
        }.items():  # fmt: skip
            r.same(f"unit_{name}", ours)
        self._lists()

    def _lists(self) -> None:
        """The wiring, by its lists and its offsets."""
        r, wiring = self.recording, self.wiring
        over = receptive(wiring)
        tiles = np.flatnonzero([patch is not None for patch in wiring.patch])
        seen = [tiles[[unit in ids for ids in over]] for unit in range(len(self.h))]
        found = {
            "primary": [ids.tolist() for ids in wiring.signal],
            "context": [ids.tolist() for ids in wiring.context],
            "xs": [np.unique(wiring.row[ids]).tolist() for ids in seen],
            "ys": [np.unique(wiring.column[ids]).tolist() for ids in seen],
        }
        for name, ours in found.items():
            flat = name if name in r else f"{name}_src"
            r.same_lists(flat, f"{name}_off", ours)
        if readout := self.config.readout:
            r.same("readout_sizes", [int(wiring.hidden[ids].sum()) for ids in over])
            r.near("readout_momentum", 0, readout.momentum, at=())
            r.near("readout_lr_initial", 0, readout.rate(0), at=())

    def places(self) -> None:
        self._weights()
        layout, i, r = self.layout, self.recording["unit_i_ptr"], self.recording["unit_r_ptr"]
        self.tape_input, self.input = runs(layout.features_at, self.inputs), runs(i, self.inputs)
        self.tape_output, self.output = runs(layout.predicted_at, self.outputs), runs(i, self.outputs)
        self.tape_inner, self.inner = runs(layout.hidden_at, self.h), runs(r, self.h)
        if self.config.context_to_output:
            self.tape_inner = runs(layout.hidden_at, self.h + self.contexts)
            two = np.stack([r, r + self.h + 1], 1).ravel(), np.stack([self.h, self.contexts], 1).ravel()
            self.inner = runs(*two)

    def _weights(self) -> None:
        """Of each of our weights, where it is among the recorded ones; there the biases are columns."""
        r, parts, late = self.recording, [], self.contexts * self.config.context_to_output
        for u, h in enumerate(self.h):
            first = r["unit_w0_ptr"][u] + np.arange(h * (self.inputs[u] + 1)).reshape(h, -1)
            second = np.arange(self.outputs[u] * (h + 1 + late[u])).reshape(self.outputs[u], -1) + r["unit_w1_ptr"][u]
            parts += [first[:, :-1], first[:, -1], np.delete(second, h, axis=1), second[:, h]]
        self.order = np.concatenate([part.ravel() for part in parts])
        r.same("weights_init", np.arange(len(r["weights_init"])), np.sort(self.order))
        if not self.pvm.readouts:
            return
        layout, size, parts = self.pvm.readouts.layout, len(r["readout_w0_init"]), []
        for tile, (n, h, o) in enumerate(zip(layout.inputs, layout.hidden, layout.outputs, strict=True)):
            first = r["readout_w0_ptr"][tile] + np.arange(h * (n + 1)).reshape(h, -1)
            second = size + r["readout_w1_ptr"][tile] + np.arange(o * (h + 1)).reshape(o, -1)
            parts += [first[:, :-1], first[:, -1], second[:, :-1], second[:, -1]]
        self.readout_order = np.concatenate([part.ravel() for part in parts])

    def first(self) -> tuple[np.ndarray, np.ndarray]:
        return self.recording["weights_init"], self._readouts("init")

    def _readouts(self, when: str, at: Any = ()) -> np.ndarray:
        """Recorded weights of the readouts, first and second matrices behind one another."""
        if not self.pvm.readouts:
            return np.empty(0)
        return np.concatenate([self.recording[f"readout_w{k}_{when}"][at] for k in (0, 1)])

    def _image(self, t: int) -> np.ndarray:
        """What to show: recorded frames, our own in a dream."""
        r, learned = self.recording, self._learned(t)
        image = r["t_frame_raw"][t]
        if not learned:
            image = self.expected()[0]
            r.near("t_frame_raw", t, image)
        if self.real == np.float32:
            return np.asarray(image, np.float32)
        pushed = r["t_frame_in"][t] if learned and "t_frame_in" in r else squeezed(image)
        return unsqueezed(pushed)

    def _learned(self, t: int) -> bool:
        return "t_learned" not in self.recording or bool(self.recording["t_learned"][t])

    def frame(self, t: int) -> None:
        r, pvm = self.recording, self.pvm
        image, learned = self._image(t), self._learned(t)
        pvm.frozen = not learned
        rate, momentum = (per_layer[self.wiring.layer] for per_layer in pvm.rates)
        r.near("t_lr", t, rate)
        r.near("t_mom", t, momentum)
        label = None
        if pvm.readouts and learned and "t_label_raw" in r:
            pushed = r["t_label_in"][t] if "t_label_in" in r else squeezed(r["t_label_raw"][t])
            label = [unsqueezed(pushed)]
        seen = pvm.step(image, label)
        arrays = pvm.fetch()
        self._activations(t, arrays)
        if learned:
            r.near("t_mean_abs_error", t, self.mean_error(seen))
        self._read(t, label is not None, arrays)
        for at in self.due(t):
            r.near("w_after", t, arrays["weights"], self.order, at)
            if "velocity" in arrays:
                r.near("dw_after", t, arrays["velocity"], self.order, at)

    def _activations(self, t: int, arrays: dict[str, np.ndarray]) -> None:
        r, tape = self.recording, arrays[f"tape_{t % 3}"][0]
        r.near("t_input", t, tape[self.tape_input], self.input)
        r.near("t_hidden", t, tape[self.tape_inner], self.inner)
        r.near("t_output", t, tape[self.tape_output], self.output)
        r.near("t_pred_frame", t, self.expected())

    def _read(self, t: int, labelled: bool, arrays: dict[str, np.ndarray]) -> None:
        r, readout = self.recording, self.config.readout
        if not readout:
            return
        r.near("t_readout_trained", t, labelled and t >= readout.start)
        r.near("t_readout_lr", t, readout.rate(t))
        r.near("t_heatmap", t, self.heat()[0])
        size = len(r["readout_w0_init"])
        for at in self.due(t):
            back = np.empty(len(self.readout_order))
            back[self.readout_order] = arrays["readout.weights"]
            r.near("readout_w0_after", t, back[:size], at=at)
            r.near("readout_w1_after", t, back[size:], at=at)


def squeezed(image: np.ndarray) -> np.ndarray:
    """As the CUDA implementation does it to pixels, whatever it computes in."""
    return np.float32(0.8) * image.astype(np.float32) + np.float32(0.1)


def rounded(value: float) -> float:
    """Rates are float32 there, too."""
    return float(np.float32(value))


def unsqueezed(pushed: np.ndarray) -> np.ndarray:
    """What our squeeze makes this of, in float64: the original's own is rounded to float32 before."""
    return np.asarray((pushed.astype(np.float64) - 0.1) / 0.8)


def replay(path: str | Path, *, device: str = "cpu") -> tuple[list[Row], list[str]]:
    """Run ours on a recording: a row for each array that could be compared, and the names of those that could not."""
    recording = read(path)
    classic = "t_frame_u8" in recording
    kind, real = (Classic, "float64") if classic else (Cuda, str(recording["real"]))
    kind(recording, device, real).run()
    return list(recording.rows.values()), recording.missed()


def main() -> int:
    """The command `python -m tests.golden`: a row for each array; returns 0, 1 where one differs, 2 for no recording."""
    parser = argparse.ArgumentParser(prog="tests.golden", description=__doc__.splitlines()[0])
    parser.add_argument("file", help="a recording (.npz)")
    parser.add_argument("--device", default="cpu", help="cpu (the default) or cuda:0")
    arguments = parser.parse_args()
    try:
        rows, missed = replay(arguments.file, device=arguments.device)
    except (OSError, ValueError) as error:
        print(f"tests.golden: {error}", file=sys.stderr)
        return 2
    print(f"{'array':24}{'worst':>12}  {'where':10}{'allowed':>10}", *rows, sep="\n")
    if missed:
        print(f"ignored: {', '.join(missed)}")
    failed = [row.name for row in rows if row.fails]
    print(f"{len(rows) - len(failed)} of {len(rows)} arrays agree" + (f"; not {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
