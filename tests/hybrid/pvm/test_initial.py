"""What a model begins with: weights of the two rules, and the state of one that has seen nothing."""

import dataclasses

import numpy as np
import pytest

from hybrid.pvm import pipeline
from hybrid.pvm.config import Config
from hybrid.pvm.layout import taken, tape_layout, weights_at
from hybrid.pvm.model import PVM
from hybrid.pvm.wiring import Unit, custom

CONFIG = Config(grids=((1, 2),), block=(2, 2), channels=1, hidden=(3,), readout=None)
WIRING = custom((2, 4, 1), [Unit(0, 3, (0, 0, 2, 2)), Unit(0, 3, (0, 2, 2, 2), context=(0,))])
LAYER = np.zeros(2, int)


def made(streams=2, **changes):
    config = dataclasses.replace(CONFIG, **changes)
    layout = tape_layout(WIRING, config)
    weights = pipeline.initial_weights(layout, config, 0, np.float64)
    return config, layout, weights, pipeline.initial_state(layout, config, LAYER, weights, streams)


def test_weights_are_those_of_their_seed_and_rule():
    config, layout, weights, _ = made()
    assert np.array_equal(weights, pipeline.initial_weights(layout, config, 0, np.float64))
    assert not np.array_equal(weights, pipeline.initial_weights(layout, config, 1, np.float64))
    assert (
        weights.size == (layout.rows * (layout.columns + 1)).sum()
        and -0.015 <= weights.min() < -0.01 < 0.01 < weights.max() < 0.015
    )
    classic = pipeline.initial_weights(layout, dataclasses.replace(config, init="classic"), 0, np.float32)
    for at, rows, columns in zip(layout.w_at, layout.rows, layout.columns, strict=False):
        one = np.abs(classic[at : at + rows * (columns + 1)]).max()
        assert 0.5 < one * np.sqrt(columns) <= 1


def test_units_of_a_part_draw_what_they_draw_in_the_whole():
    config, layout, weights, _ = made()  # both units have an odd number of weights, so the second begins within a draw
    at = weights_at(layout)
    assert at[1] % 2 == 1
    for units in ([1], [0], [1, 0], [0, 1]):
        own = pipeline.initial_weights(taken(layout, np.array(units)), config, 0, np.float64, at[units])
        assert np.array_equal(own, np.concatenate([weights[at[u] : at[u + 1]] for u in units]))


@pytest.mark.parametrize(
    ("activation", "f"),
    [
        ("rational", lambda s: s / (2 * (abs(s) + 1)) + 0.5),
        ("logistic", lambda s: 1 / (1 + np.exp(-s))),
        ("tanh", np.tanh),
    ],
)
def test_a_model_has_predicted_what_it_makes_of_nothing(activation, f):
    _, layout, weights, state = made(activation=activation)
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
    *_, state = made(**changes)
    low, high, published = (state[name][:, 8:] for name in ("low", "high", "world_0"))
    assert (low == 1e-6).all() and (high == 1 - 1e-6).all()
    assert (0 < published).all() and (published < 1).all()
    *_, still = made(**changes | {"schedule": ((5, None, 0.1, None),)})
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
