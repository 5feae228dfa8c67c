"""The replay of a recording of the CUDA implementation."""

import dataclasses
from typing import Any

import numpy as np

from .. import presets
from ..config import Config
from ..layout import runs
from ..wiring import receptive
from .replayer import Replay


class Cuda(Replay):
    """Two frames in, two out, readouts of tiles; then dreams, in which nothing is learned."""

    frames = "t_frame_raw"

    def configured(self) -> Config:
        config, _ = presets.load(self.recording.options, compat="cuda2023", wiring="cuda")
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
        self.tape_hidden, self.hidden = runs(layout.hidden_at, self.h), runs(r, self.h)
        self.tape_inner, self.inner = self.tape_hidden, self.hidden
        if self.config.context_to_output:
            self.tape_inner = runs(layout.hidden_at, self.h + self.contexts)
            two = np.stack([r, r + self.h + 1], 1).ravel(), np.stack([self.h, self.contexts], 1).ravel()
            self.inner = runs(*two)
        # In [signals of now | those before] the two halves of each unit's target.
        halves = np.stack([layout.signal_at[:-1], layout.signal_at[-1] + layout.signal_at[:-1]], 1).ravel()
        self.target = runs(halves, np.repeat(self.signals, 2))
        signed = np.repeat(layout.signed, self.outputs)
        self.signed = runs(np.zeros(len(self.h), int), self.outputs) < signed

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
            image = self.pvm.expected()[0]
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
        weights = pvm.fetch()["weights"].copy()
        seen = pvm.step(image, label)
        arrays = pvm.fetch()
        self._activations(t, arrays)
        if learned:
            r.near("t_mean_abs_error", t, self.mean_error(seen))
            self._errors(t, arrays, weights, (rate != 0) | (momentum != 0))
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
        r.near("t_pred_frame", t, self.pvm.expected())

    def _errors(self, t: int, arrays: dict[str, np.ndarray], weights: np.ndarray, learns: np.ndarray) -> None:
        """The engine keeps no errors, and no gradients of units that do not learn: these follow from what it keeps."""
        r, record = self.recording, arrays[f"tape_{(t - 2) % 3}"][0].astype(np.float64)
        signals = np.concatenate([arrays[f"signals_{k % 2}"][0] for k in (t, t - 1)]).astype(np.float64)
        output, hidden, kept = record[self.tape_output], record[self.tape_hidden], self.delta()
        error = signals[self.target] - output
        error[self.signed] = np.sign(error[self.signed])
        delta = np.where(np.repeat(learns, self.outputs), kept[self.tape_output], self._slope(output) * error)
        back = self._back(delta, weights.astype(np.float64))
        inner = np.where(np.repeat(learns, self.h), kept[self.tape_hidden], self._slope(hidden) * back)
        r.near("t_out_error", t, error, self.output)
        r.near("t_out_delta", t, delta, self.output)
        r.near("t_hid_error", t, back, self.hidden)
        r.near("t_hid_delta", t, inner, self.hidden)

    def _slope(self, a: np.ndarray) -> Any:
        """Of an activation, as the original has it."""
        if self.config.activation == "logistic":
            return a * (1 - a)
        w = abs(2 * a - 1)
        return 1 / (2 * (1 + w / (1 + w)) ** 2)

    def _back(self, delta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Errors of the hidden vectors."""
        layout, parts = self.layout, []
        for u, part in enumerate(np.split(delta, np.cumsum(self.outputs)[:-1])):
            k = layout.layer_at[u + 1] - 1
            matrix = weights[layout.w_at[k] :][: layout.rows[k] * layout.columns[k]].reshape(layout.rows[k], -1)
            parts.append(part @ matrix[:, : self.h[u]])
        return np.concatenate(parts)

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
