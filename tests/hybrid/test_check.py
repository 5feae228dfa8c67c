import numpy as np
import pytest

from hybrid import check


@pytest.mark.parametrize("value", [0, 7, -1, 2.0, True, None, "3"])
def test_whole_refuses(value):
    with pytest.raises(ValueError, match=r"n: found .*, expected a whole number from 1 to 6"):
        check.whole("n", value, 1, 6)


def test_whole_takes_the_ends_and_numpys_integers():
    assert [check.whole("n", value, 0, 0) for value in (0, np.int32(0))] == [0, 0]
    assert check.whole("n", 10**12, 1) == 10**12


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, "1", None, True])
def test_number_refuses(value):
    with pytest.raises(ValueError, match=r"rate: found .*, expected a finite number of at least 0"):
        check.number("rate", value, 0)


def test_ids_names_the_first_bad_place():
    check.ids("ids", np.empty(0, np.int32), 1)
    check.ids("ids", np.array([0, 4], np.int32), 5)
    with pytest.raises(IndexError, match=r"ids\[1, 0\]: found 5, expected 0 to 4"):
        check.ids("ids", np.array([[0, 4], [5, -1]], np.int32), 5)


def test_finite_names_the_first_bad_row():
    check.finite("x", np.full((2, 2), 3e38, np.float32))
    with pytest.raises(ValueError, match=r"x\[1\]: found NaN or infinity"):
        check.finite("x", np.array([[0, 1], [np.inf, 0], [np.nan, 0]], np.float32))


def test_loss_is_the_mean_and_names_the_first_bad_row():
    assert check.loss(np.array([1, 2], np.float32)) == 1.5
    with pytest.raises(FloatingPointError, match=r"loss\[1\]: found inf"):
        check.loss(np.array([1, np.inf, np.nan], np.float32))
