"""What a unit has learned: its matrices by name, and its back-projection on the frame beside finite differences."""

import dataclasses

import numpy as np
import pytest

from hybrid.pvm.config import Config
from hybrid.pvm.model import PVM
from hybrid.pvm.wiring import Unit, custom

BASE = Config(
    grids=((4, 4), (3, 3), (1, 1)),
    block=(2, 1),
    channels=2,
    hidden=(3, 4, 2),
    activation="logistic",
    init="classic",
    schedule=((0, None, 0.5, 0.0),),
    readout=None,
)
CLASSIC = dataclasses.replace(BASE, wiring="classic", squeeze=False)


def still(config, **settings):
    """A model that has learned a little and stands."""
    model = PVM(config, dtype=np.float64, **settings)
    for frame in np.random.default_rng(1).random((6, *model.wiring.frame)):
        model.step(frame)
    model.frozen = True
    return model


def sums(model, unit):
    """What goes into the activations of a unit's hidden activations, from the tape of the last tick."""
    at = int(model.layout.hidden_at[unit])
    a = model.fetch()[f"tape_{(model.tick - 1) % (model.layout.steps + 1)}"][0, at : at + model.layout.hidden[unit]]
    if model.config.activation == "tanh":
        return np.arctanh(a)
    if model.config.activation == "logistic":
        return np.log(a / (1 - a))
    half = 2 * a - 1
    return half / (1 - abs(half))


def moved(model, unit, later, where, by):
    """The sums of a unit `later` ticks after a frame with one pixel changed, from the state where the model stands."""
    kept, step = {name: array.copy() for name, array in model.fetch().items()}, model.tick
    frame = np.full(model.wiring.frame, 0.5)
    frame[where] += by
    for tick in range(later + 1):
        model.step(frame if tick == 0 else np.full(model.wiring.frame, 0.5))
    found = sums(model, unit)
    model.put(kept)
    model.tick = step
    return found


@pytest.mark.parametrize(
    "config",
    [
        dataclasses.replace(BASE, unit="complex", activation="rational"),
        dataclasses.replace(BASE, unit="residual", activation="tanh"),
        dataclasses.replace(BASE, unit="complex_residual", publish="minmax"),
        dataclasses.replace(CLASSIC, features=("signal", "derivative", "integral", "past"), predict_steps=1),
        dataclasses.replace(CLASSIC, features=("signal", "error"), predict_steps=1),
    ],
    ids=["complex", "residual", "complex residual", "classic", "error"],
)
def test_a_field_is_the_derivative_of_the_sums_by_the_pixels_of_a_frame(config):
    """A frame climbs a layer a tick, so a layer's sums show it so many ticks later; slopes are those at the last tick of a
    video at rest."""
    model = still(config)
    for _ in range(300 if "integral" in config.features else 60):
        model.step(np.full(model.wiring.frame, 0.5))  # until the state is at rest
    for layer, unit in ((0, 5), (1, 4), (2, 0)):
        field = model.receptive_field(layer, unit)
        number = int(np.flatnonzero(model.wiring.layer == layer)[unit])
        for row, column, channel in ((0, 0, 1), (field.weights.shape[1] - 1, field.weights.shape[2] - 1, 0)):
            where, by = (field.row + row, field.column + column, channel), 1e-4
            up, down = (moved(model, number, layer, where, sign * by) for sign in (1, -1))
            expected = (up - down) / (2 * by)
            assert abs(expected).max() > 1e-9
            found, near = field.weights[:, row, column, channel], {"rtol": 2e-3, "atol": 1e-3 * abs(expected).max()}
            np.testing.assert_allclose(found, expected, **near)


def test_a_region_is_what_reaches_a_unit():
    model = PVM(BASE)
    field = model.receptive_field(1, 8)  # sees 2 x 2 units of layer 0, in the lower right corner
    assert (field.row, field.column, field.weights.shape) == (4, 2, (4, 4, 2, 2))
    top = model.receptive_field(2, 0)
    assert (top.row, top.column, top.weights.shape) == (0, 0, (2, 6, 3, 2))  # of 3 x 3 units it sees 2 x 2
    for layer, unit, found in ((3, 0, "layer: found 3"), (0, 16, "unit: found 16"), (0, -1, "unit: found -1")):
        with pytest.raises(ValueError, match=found):
            model.receptive_field(layer, unit)


def test_fields_of_a_graph_made_by_hand():
    """Patches on any layer, signals over two layers, and a loop, which is not followed."""
    units = Unit(0, 2, patch=(0, 0, 2, 2), signal=(2,)), Unit(1, 2, patch=(1, 1, 1, 2), signal=(0,))
    wiring = custom((3, 4, 1), [*units, Unit(2, 3, signal=(0, 1))])
    model = PVM(dataclasses.replace(BASE, grids=(1, 1, 1), hidden=(2, 2, 3)), wiring=wiring, dtype=np.float64)
    low, middle, top = (model.weights_of(unit)["hidden.weights"] for unit in range(3))
    zero, one, two = (model.receptive_field(layer, 0) for layer in range(3))
    np.testing.assert_allclose(zero.weights.reshape(2, 4), 0.8 * low[:, :4])
    tape = model.pipeline.tape(-1)[0]
    slopes = [tape[at : at + 2] * (1 - tape[at : at + 2]) for at in model.layout.hidden_at[:2]]
    of_low = 0.8 * middle[:, 2:4] * slopes[0] @ (0.8 * low[:, :4])
    expected = np.zeros((2, 2, 3))
    expected[:, :2, :2] += of_low.reshape(2, 2, 2)
    expected[:, 1, 1:] += 0.8 * middle[:, :2]
    np.testing.assert_allclose(one.weights[..., 0], expected)
    assert two.weights.shape == (3, 2, 3, 1)
    direct = np.zeros((3, 2, 3))
    direct[:, :2, :2] = (0.8 * top[:, :2] * slopes[0] @ (0.8 * low[:, :4])).reshape(3, 2, 2)
    through = np.einsum("ah,hrc->arc", 0.8 * top[:, 2:4] * slopes[1], expected)
    np.testing.assert_allclose(two.weights[..., 0], direct + through)


def test_what_is_published_by_its_range_is_stretched_by_it():
    model = PVM(dataclasses.replace(BASE, publish="minmax"), streams=2, dtype=np.float64)
    rng = np.random.default_rng(0)
    model.step(rng.random((2, *BASE.frame)))
    low, high = 0.4 * rng.random((2, model.layout.world)), 1 - 0.4 * rng.random((2, model.layout.world))
    model.put({"low": low, "high": high})
    np.testing.assert_allclose(model.projection().stretch, (1 / (high - low)).mean(axis=0))


@pytest.mark.parametrize(
    ("unit", "shapes"),
    [
        # a frame of 2 pixels, one unit of 3 hidden activations that listens to itself: features 4, context 3, outputs 4
        ("simple", {"hidden": (3, 7), "prediction": (4, 3)}),
        (
            "complex_residual",
            {"context 1": (9, 3), "context 2": (6, 9), "first": (6, 10), "hidden": (3, 6)}
            | {"context prediction": (4, 6), "prediction": (4, 3)},
        ),
    ],
)
def test_matrices_by_name(unit, shapes):
    fields = {"grids": 1, "block": 1, "channels": 2, "hidden": 3, "lateral_radius": 0, "unit": unit}
    model = PVM(Config(**fields, schedule=((0, None, 0.1, 0.5),), readout=None))
    for shade in (0, 1, 1):
        model.step(np.full((1, 1, 2), float(shade)))
    found = model.weights_of(0)
    expected = {f"{name}.weights": shape for name, shape in shapes.items()}
    expected |= {f"{name}.bias": shape[:1] for name, shape in shapes.items()}
    expected |= {f"{name} velocity": shape for name, shape in expected.items()}
    assert {name: array.shape for name, array in found.items()} == expected
    assert sum(array.size for array in found.values()) == model.weights.size + model.velocity.size
    found["hidden.bias"][:] = 9  # a copy
    assert not (model.fetch()["weights"] == 9).any()
    for bad in (1, -1, 0.5):
        with pytest.raises(ValueError, match="unit: found"):
            model.weights_of(bad)
