import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.pvm.judge.modes import NAMES, Mode

RNG = np.random.default_rng(3)
FRAME, PREDICTION = (RNG.random((8, 12, 3)).astype(np.float32) for _ in range(2))
MIDDLE = np.zeros((8, 12), bool)
MIDDLE[2:6, 3:9] = True
GREY = np.full_like(FRAME, 0.5)


def noise(tick=0, seed=0):
    return Mode("noise", seed)(FRAME, PREDICTION, tick)


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("none", FRAME, FRAME),
        ("dream", PREDICTION, PREDICTION),
        ("partial dream", PREDICTION, FRAME),
        ("inverse partial dream", FRAME, PREDICTION),
        ("blind spot", GREY, FRAME),
        ("inverse blind spot", FRAME, GREY),
        ("gray", GREY, GREY),
        ("noise", noise(7), noise(7)),
        ("noise spot", noise(7), FRAME),
        ("inverse noise spot", FRAME, noise(7)),
        ("blinks", FRAME, FRAME),
    ],
)
def test_what_is_seen_inside_and_outside_of_the_spot(name, inside, outside):
    expected = np.where(MIDDLE[..., None], inside, outside)
    np.testing.assert_array_equal(Mode(name)(FRAME, PREDICTION, 7), expected)


def test_blinks_shut_the_eye_for_2_of_20_ticks():
    shut = [tick for tick in range(60) if (Mode("blinks")(FRAME, PREDICTION, tick) == GREY).all()]
    assert shut == [0, 1, 20, 21, 40, 41]


def test_noisy_signal_stays_near_the_frame_and_in_range():
    frame = np.linspace(0, 1, 30_000, dtype=np.float32).reshape(100, 100, 3)
    change = Mode("noisy signal")(frame, frame, 0) - frame
    assert np.abs(change).max() <= 32 / 255 + 1e-6
    assert change.min() < -0.12 and change.max() > 0.12 and abs(change.mean()) < 0.01


def test_noise_is_uniform():
    seen = Mode("noise")(np.zeros((100, 100, 3), np.float32), np.zeros(()), 0)
    assert seen.min() < 0.01 and seen.max() > 0.99 and abs(seen.mean() - 0.5) < 0.01


def test_noise_is_of_its_seed_and_tick():
    assert noise(5, 6).tobytes() == noise(5, 6).tobytes()
    assert len({noise(*pair).tobytes() for pair in [(0, 0), (0, 1), (1, 0), (1, 1)]}) == 4


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_modes_give_a_new_frame_like_the_old_one(name, dtype):
    arguments = [np.random.default_rng(1).random((7, 5, 4)).astype(dtype) for _ in range(2)]
    before = [one.copy() for one in arguments]
    for tick in (0, 7):
        seen = Mode(name, seed=2)(*arguments, tick)
        assert seen.dtype == dtype and seen.shape == (7, 5, 4)
        assert seen.min() >= 0 and seen.max() <= 1
        assert not any(np.shares_memory(seen, one) for one in arguments)
        seen[:] = 9
        np.testing.assert_array_equal(arguments, before)


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0, 1))
def test_the_spot_is_in_the_middle(rows, columns, fraction):
    frame = np.zeros((rows, columns, 1), np.float32)
    grey = Mode("blind spot", fraction=fraction)(frame, frame, 0)[..., 0] > 0
    for length, lit in ((rows, grey.any(axis=1)), (columns, grey.any(axis=0))):
        if grey.any():
            before, after = lit.argmax(), lit[::-1].argmax()
            assert after - before in (0, 1)
            assert abs(lit.sum() - fraction * length) <= 0.5
    inverse = Mode("inverse blind spot", fraction=fraction)(frame, frame, 0)[..., 0] > 0
    np.testing.assert_array_equal(inverse, ~grey)


@pytest.mark.parametrize(("fraction", "name"), [(0, "none"), (1, "gray")])
def test_no_spot_and_all_spot(fraction, name):
    spot = Mode("blind spot", fraction=fraction)(FRAME, PREDICTION, 0)
    np.testing.assert_array_equal(spot, Mode(name)(FRAME, PREDICTION, 0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "sleep"}, "mode: found 'sleep', expected one of none, dream, .*, noisy signal"),
        ({"name": "noise", "seed": -1}, "seed: found -1, expected a whole number of at least 0"),
        ({"name": "noise", "fraction": -0.1}, "fraction: found -0.1"),
        ({"name": "noise", "fraction": 1.5}, "fraction: found 1.5, expected 0 to 1"),
        ({"name": "noise", "fraction": float("nan")}, "fraction: found nan"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Mode(**arguments)
