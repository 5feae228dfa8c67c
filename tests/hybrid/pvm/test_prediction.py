import numpy as np

from hybrid.pvm.config import Config
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.pipeline import Prediction
from hybrid.pvm.wiring import Unit, custom

# 2 x 3 pixels: unit 0 sees the first two columns, unit 1 the middle one too, nobody the lower right corner.
WIRING = custom((2, 3, 1), [Unit(0, 2, patch=(0, 0, 2, 2)), Unit(0, 1, patch=(0, 1, 1, 2)), Unit(1, 1, signal=(0,))])
TWO = {"wiring": "classic", "features": ("signal", "past"), "predict_steps": 2}


def picture(**fields):
    config = Config(grids=((2, 1), (1, 1)), hidden=(2, 1), readout=None, **fields)
    layout = tape_layout(WIRING, config)
    return Prediction(WIRING, layout, config), layout


def places(layout, step, first="predicted_at"):
    """Where the pixels of a step are on the tape; 0 for the one that nobody sees."""
    a, b = getattr(layout, first)[:2]
    a, b = a + 4 * step, b + 2 * step
    return [a, b, b + 1, a + 2, a + 3, 0]


def test_the_next_frame_is_the_second_half_where_the_newest_comes_first():
    made, layout = picture()
    assert [index.tolist() for index in made.index] == [places(layout, 1)]
    assert made.covered.tolist() == [True] * 5 + [False]
    made, layout = picture(**TWO)
    assert [index.tolist() for index in made.index] == [places(layout, 0)]
    made, layout = picture(wiring="classic", features=("signal",), predict_steps=1)
    assert [index.tolist() for index in made.index] == [places(layout, 0)]


def test_a_residual_unit_adds_what_its_second_net_says():
    made, layout = picture(**TWO, unit="residual", squeeze=False)
    assert [index.tolist() for index in made.index] == [places(layout, 0), places(layout, 0, "residual_at")]
    parts = np.array([[[0.5, 0.5, 0.25, 0.5, 0.5, 9]], [[0.5, 0.75, 0.5, 0, 1, 9]]])
    assert made.shown(parts).tolist() == [[[[0.5], [1.0], [0.25]], [[0.0], [1.0], [0.0]]]]


def test_what_is_squeezed_is_taken_back():
    made, _ = picture()
    parts = np.array([[[0.1, 0.9, 0.5, 0.0, 1.0, 0.5]]], np.float32)
    shown = made.shown(parts)
    assert shown.dtype == np.float32 and shown.shape == (1, 2, 3, 1)
    np.testing.assert_allclose(shown.ravel(), [0, 1, 0.5, 0, 1, 0], atol=1e-6)
