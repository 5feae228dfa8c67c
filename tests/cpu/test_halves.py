"""Rows of 16 bits. Here is tested cpu/bits.py too."""

import numba
import numpy as np
import pytest

from cpu import halves, rows
from hybrid.contract import Learned, Rule

NAMES = ["bfloat16", "float16"]
VALUES = np.array([0, -0.0, 1, -2.5, 1e-7, -3e-6, 6e-5, 0.1, 3.14159, -65504, 65520, 1e30, -np.inf], np.float32)
STEP = {"bfloat16": 2.0**-7, "float16": 2.0**-10}  # between 1 and the next number


def table(name, values):
    made = np.empty(np.shape(values), halves.BITS[name])
    halves.narrow(made, np.asarray(values, np.float32))
    return made


def moved(name, values, by, dice=1):
    """Every row once moved by a number."""
    made, values = table(name, values), np.asarray(values)
    ids, grad = np.arange(len(values), dtype=np.int32), np.full(values.shape, -by, np.float32)
    rows.scatter(Learned(made), ids, grad, Rule(1.0, dice=dice))
    return made


def test_the_nearest_numbers_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    values = np.concatenate([VALUES, (rng.normal(size=4000) * 10.0 ** rng.integers(-9, 5, 4000)).astype(np.float32)])
    for name in NAMES:
        theirs = torch.from_numpy(values).to(getattr(torch, name))
        np.testing.assert_array_equal(table(name, values).view(np.int16), theirs.view(torch.int16).numpy())
        np.testing.assert_array_equal(halves.wide(table(name, values)), theirs.to(torch.float32).numpy())


def test_a_table_of_float32_is_taken_as_it_is():
    values = np.ones((2, 2), np.float32)
    assert halves.wide(values) is values
    np.testing.assert_array_equal(table("float32", VALUES), VALUES)


@pytest.mark.parametrize("name", NAMES)
def test_a_gather_gives_the_numbers(name):
    made = table(name, np.random.default_rng(0).normal(size=(7, 37)))
    ids, out = np.array([3, 0, 3], np.int32), np.empty((3, 37), np.float32)
    rows.gather(out, made, ids)
    np.testing.assert_array_equal(out, halves.wide(made)[ids])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_is_a_neighbour_and_right_in_the_mean(name):
    """From 1 and -1 a quarter of a step up: a quarter of the numbers moves a whole step. 37 columns: a masked end, too."""
    for start in (1, -1):
        size = STEP[name] if start > 0 else STEP[name] / 2  # towards 0 numbers are denser
        found = halves.wide(moved(name, np.full((400, 37), start), 0.25 * size))
        assert set(np.unique(found)) == {start, np.float32(start + size)}
        share = (found != start).mean()
        assert abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / found.size)
        columns = (found != start).mean(axis=0)  # and in no column or row more than in others
        assert np.abs(columns - 0.25).max() < 0.12


def test_the_smallest_float16s_are_right_in_the_mean():
    found = halves.wide(moved("float16", np.full((400, 37), 2.0**-20), 0.3 * 2.0**-24))
    assert set(np.unique(found)) == {np.float32(2.0**-20), np.float32(2.0**-20 + 2.0**-24)}
    assert abs((found > 2.0**-20).mean() - 0.3) < 0.02


@pytest.mark.parametrize("name", NAMES)
def test_what_does_not_move_stays_and_what_is_not_finite_stays_visible(name):
    values = np.tile(np.append(VALUES[2:], np.nan), (3, 2))
    np.testing.assert_array_equal(moved(name, values, 0.0), table(name, values))
    assert np.isinf(halves.wide(moved("float16", [[60000.0]], 1e6))).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_dice_of_a_step_and_nothing_else_decide(name):
    made = []
    for threads, dice in ((1, 5), (2, 5), (2, 6)):
        numba.set_num_threads(threads)
        made.append(moved(name, np.ones((50, 8)), 0.3 * STEP[name], dice).tobytes())
    assert made[0] == made[1] != made[2]
