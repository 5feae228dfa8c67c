"""A tick on the device against a recording of an original Predictive Vision Model."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gpu import pvm
from hybrid.contract import Gathering, Learning, Past, State
from hybrid.pvm.config import Config
from hybrid.pvm.layout import tape_layout

GOLDEN = Path(os.environ.get("HYBRID_GOLDEN") or Path(__file__).parents[3] / "shared" / "golden")


class Recording:
    """Recording A of PVM_cuda, see the README beside it; weights in our order."""

    def __init__(self, name):
        if not (GOLDEN / name).is_file():
            pytest.skip(f"no {name} in {GOLDEN}; HYBRID_GOLDEN names the folder")
        with np.load(GOLDEN / name, allow_pickle=False) as arrays:
            self.arrays = {key: arrays[key] for key in arrays.files}
        config, units = json.loads(str(self["config_json"])), range(len(self["unit_layer"]))
        side = int(config["input_block_size"])
        patch = [(x * side, y * side, side, side) for x, y in zip(self["unit_x"], self["unit_y"], strict=True)]
        context = [self._part("context", u) for u in units]
        self.frame = self["t_frame_in"].shape[1:]
        self.inputs, self.outputs = self["unit_input_dim"], self["unit_output_dim"]
        wiring = SimpleNamespace(
            frame=self.frame,
            hidden=self["unit_size"],
            signal=[self._part("primary", u) for u in units],
            context=context,
            feedback=[np.zeros(sources.size, bool) for sources in context],
            patch=[place if layer == 0 else None for place, layer in zip(patch, self["unit_layer"], strict=True)],
        )
        self.layout = tape_layout(wiring, Config())

    def __getitem__(self, name):
        return self.arrays[name]

    def _part(self, name, u):
        return self[f"{name}_src"][self[f"{name}_off"][u] : self[f"{name}_off"][u + 1]]

    def weights(self, flat):
        """The bias, which is the last column there, follows its matrix here."""
        parts = []
        for u, h in enumerate(self["unit_size"]):
            for name, rows, columns in (("unit_w0_ptr", h, self.inputs[u]), ("unit_w1_ptr", self.outputs[u], h)):
                both = flat[self[name][u] :][: rows * (columns + 1)].reshape(rows, columns + 1)
                parts += [both[:, :-1].ravel(), both[:, -1]]
        return np.concatenate(parts)

    def activations(self, t):
        """Of each unit in turn what the recorded tick wrote: input, hidden, output, as our tape has it."""
        for u, h in enumerate(self["unit_size"]):
            at, hidden_at = self["unit_i_ptr"][u], self["unit_r_ptr"][u]
            yield self["t_input"][t, at : at + self.inputs[u]]
            yield self["t_hidden"][t, hidden_at : hidden_at + h]
            yield self["t_output"][t, at : at + self.outputs[u]]


def test_the_numbers_of_the_original(gpu):
    """50 frames learned and 6 dreamed: at each all activations are those of PVM_cuda, and so are weights and velocities."""
    golden = Recording("A_poly4_float32.npz")
    layout, units = golden.layout, len(golden["unit_size"])
    size, pixels = layout.published_at[-1] + layout.hidden[-1], int(np.prod(golden.frame))
    worlds, tapes, signals = (  # all starts from ones
        [gpu.put(np.ones((1, width), np.float32)) for _ in range(count)]
        for count, width in ((2, size), (3, layout.tape_at[-1]), (2, layout.signal_at[-1]))
    )
    weights = gpu.put(golden.weights(golden["weights_init"]).astype(np.float32))
    velocity, miss = gpu.put(np.zeros(weights.size, np.float32)), gpu.empty(units, np.float32)
    integral, delta = gpu.empty((1, 0), np.float32), gpu.empty((1, layout.tape_at[-1]), np.float32)
    rate, momentum = (gpu.empty(units, np.float32) for _ in range(2))
    kept = integral, delta, None, None, miss, weights, velocity
    plan = gpu.run(pvm.plan, layout)
    for t, raw in enumerate(golden["t_frame_raw"]):
        now, learned = worlds[t % 2], bool(golden["t_learned"][t])
        gpu.device.write(now[:1].reshape(-1)[:pixels], raw.ravel())
        gpu.device.write(rate, golden["t_lr"][t].astype(np.float32))
        gpu.device.write(momentum, golden["t_mom"][t].astype(np.float32))
        flags = gpu.put(np.full(units, learned, np.uint8))
        written = worlds[(t + 1) % 2], tapes[t % 3], signals[t % 2], *kept
        past = Past(now, tapes[(t - 1) % 3], tapes[(t - 2) % 3], signals[(t - 1) % 2])
        learning, gathering = Learning(rate, momentum, flags, flags, True), Gathering(0.8, 0.1, 0.98, 1.0, 1.0)
        gpu.run(pvm.tick, State(*written), plan, past, learning, gathering, "rational2023", 0, units)
        expected = np.concatenate(list(golden.activations(t)))
        np.testing.assert_allclose(gpu.get(tapes[t % 3])[0], expected, atol=1e-5, err_msg=f"frame {t}")
        if learned:
            mean = gpu.get(miss).sum() / golden.outputs.sum()
            np.testing.assert_allclose(mean, golden["t_mean_abs_error"][t], atol=1e-5)
        for k in np.flatnonzero(golden["w_steps"] == t):
            np.testing.assert_allclose(gpu.get(weights), golden.weights(golden["w_after"][k]), atol=1e-5)
            np.testing.assert_allclose(gpu.get(velocity), golden.weights(golden["dw_after"][k]), atol=1e-5)
