"""Initial values, a pipeline's arrays and stages, the predicted frame; ticks are tested with the model and the kernels."""

import dataclasses

import numpy as np
import pytest

from hybrid.pvm import pipeline
from hybrid.pvm.config import Config
from hybrid.pvm.layout import taken, tape_layout, weights_at
from hybrid.pvm.model import PVM
from hybrid.pvm.pipeline import Prediction
from hybrid.pvm.presets import load
from hybrid.pvm.wiring import Unit, custom, wire

CONFIG = Config(grids=((1, 2),), block=(2, 2), channels=1, hidden=(3,), readout=None)
WIRING = custom((2, 4, 1), [Unit(0, 3, (0, 0, 2, 2)), Unit(0, 3, (0, 2, 2, 2), context=(0,))])
LAYER = np.zeros(2, int)


def begun(streams=2, **changes):
    config = dataclasses.replace(CONFIG, **changes)
    layout = tape_layout(WIRING, config)
    weights = pipeline.initial_weights(layout, config, 0, np.float64)
    return config, layout, weights, pipeline.initial_state(layout, config, LAYER, weights, streams)


def test_weights_are_those_of_their_seed_and_rule():
    config, layout, weights, _ = begun()
    assert np.array_equal(weights, pipeline.initial_weights(layout, config, 0, np.float64))
    assert not np.array_equal(weights, pipeline.initial_weights(layout, config, 1, np.float64))
    assert weights.size == (layout.rows * (layout.columns + 1)).sum()
    assert -0.015 <= weights.min() < -0.01 < 0.01 < weights.max() < 0.015
    classic = pipeline.initial_weights(layout, dataclasses.replace(config, init="classic"), 0, np.float32)
    for at, rows, columns in zip(layout.w_at, layout.rows, layout.columns, strict=False):
        one = np.abs(classic[at : at + rows * (columns + 1)]).max()
        assert 0.5 < one * np.sqrt(columns) <= 1


def test_units_of_a_part_draw_what_they_draw_in_the_whole():
    config, layout, weights, _ = begun()  # both units have an odd number of weights, so the second begins within a draw
    at = weights_at(layout)
    assert at[1] % 2 == 1
    for units in ([1], [0], [1, 0], [0, 1]):
        own = pipeline.initial_weights(taken(layout, np.array(units)), config, 0, np.float64, at[units])
        assert np.array_equal(own, np.concatenate([weights[at[u] : at[u + 1]] for u in units]))


RATIONAL, LOGISTIC = lambda s: s / (2 * (abs(s) + 1)) + 0.5, lambda s: 1 / (1 + np.exp(-s))


@pytest.mark.parametrize(("activation", "f"), [("rational", RATIONAL), ("logistic", LOGISTIC), ("tanh", np.tanh)])
def test_a_model_has_predicted_what_it_makes_of_nothing(activation, f):
    _, layout, weights, state = begun(activation=activation)
    tape = state[f"tape_{layout.steps}"][0]  # of the tick before the first
    k = layout.layer_at[0]
    matrix, bias = np.split(weights[layout.w_at[k] :][: layout.rows[k] * (layout.columns[k] + 1)], [-layout.rows[k]])
    sums = bias + matrix.reshape(layout.rows[k], -1) @ np.zeros(layout.columns[k])
    hidden = f(sums)
    np.testing.assert_allclose(tape[layout.hidden_at[0] :][:3], hidden, rtol=1e-12)
    np.testing.assert_allclose(state["world_0"][0, 8:11], hidden, rtol=1e-12)
    assert not state["tape_0"].any() and not state["world_1"].any()


def test_what_is_stretched_by_its_range_is_so_from_the_start():
    changes = {"publish": "minmax", "wiring": "classic", "schedule": ((0, None, 0.1, None),)}
    *_, state = begun(**changes)
    low, high, published = (state[name][:, 8:] for name in ("low", "high", "world_0"))
    assert (low == 1e-6).all() and (high == 1 - 1e-6).all()
    assert (0 < published).all() and (published < 1).all()
    *_, still = begun(**changes | {"schedule": ((5, None, 0.1, None),)})
    assert not still["low"].any() and (still["high"] == 1).all()


@pytest.mark.parametrize(
    ("activation", "features"),
    [("logistic", ("signal",)), ("rational", ("signal", "derivative", "past")), ("tanh", ("signal",))],
)
def test_units_of_changes_begin_by_repeating_the_frame(activation, features):
    fields = {"wiring": "classic", "unit": "change", "features": features, "predict_steps": 1, "squeeze": False}
    model = PVM(dataclasses.replace(CONFIG, **fields, activation=activation), device="cpu")
    model.frozen = True
    for frame in np.random.default_rng(0).random((3, 2, 4, 1), np.float32):
        np.testing.assert_allclose(model.step(frame).prediction, frame, atol=1e-6)


def test_a_residual_unit_adds_what_its_second_net_says_and_a_pixel_that_nobody_sees_is_0():
    """Of 2 x 3 pixels unit 0 sees the first two columns, unit 1 the middle one too, nobody the lower right corner."""
    corner = custom((2, 3, 1), [Unit(0, 2, (0, 0, 2, 2)), Unit(0, 1, (0, 1, 1, 2)), Unit(1, 1, signal=(0,))])
    two = {"wiring": "classic", "features": ("signal", "past"), "predict_steps": 2, "unit": "residual"}
    config = Config(grids=((2, 1), (1, 1)), hidden=(2, 1), readout=None, squeeze=False, **two)
    layout = tape_layout(corner, config)
    made = Prediction(corner, layout, config)
    for index, at in zip(made.index, (layout.predicted_at, layout.residual_at), strict=True):
        assert index.tolist() == [at[0], at[1], at[1] + 1, at[0] + 2, at[0] + 3, 0]
    parts = np.array([[[0.5, 0.5, 0.25, 0.5, 0.5, 9]], [[0.5, 0.75, 0.5, 0, 1, 9]]])
    assert made.shown(parts).tolist() == [[[[0.5], [1.0], [0.25]], [[0.0], [1.0], [0.0]]]]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(pipeline, "PORTION", 100)


def test_what_fails_is_raised():
    def fail(these):
        if these.start == 200:
            raise ValueError("two hundred")

    with pytest.raises(ValueError, match="two hundred"):
        pipeline.in_portions(fail, 1000, 3)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_predicted_frame_has_the_bits_of_one_pass(threads):
    config = load("small")[0]
    made = Prediction(wire(config), tape_layout(wire(config), config), config)
    parts = np.random.default_rng(0).uniform(-0.2, 1.2, (1, 2, made.unit.size)).astype(np.float32)
    expected = np.where(made.covered, np.clip((parts[0] - 0.1) / 0.8, 0, 1), 0).astype(np.float32)
    found = made.shown(parts, threads)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.reshape(2, -1).view(np.int32), expected.view(np.int32))
