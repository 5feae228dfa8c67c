"""The replay of a recording of the classic implementation."""

import dataclasses
from itertools import pairwise

import numpy as np

from .. import presets
from ..config import Config, Event
from .replayer import Replay


class Classic(Replay):
    """Features, one frame out or two, a readout a unit. The rates in force come with the recording.

    Its frame begins with the prediction that our tick before made, and with the outputs that this published.
    """

    frames = "t_frame_u8"

    def configured(self) -> Config:
        config, _ = presets.load(self.recording.options, compat="classic2016", wiring="classic")
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
        return dataclasses.replace(
            config, schedule=tuple(events), lateral_at=lateral, feedback_at=feedback, readout=readout
        )

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
            self.readout_order = self._transposed(
                "r_shapes", [shape for n, h, o in sizes for shape in ((n + 1, h), (h + 1, o))]
            )

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
