"""How rows move, as the user says it, and what is kept for them."""

import copy
import functools
import pickle

import numpy as np
import pytest

from hybrid import sparse
from hybrid.readout import FullReadout, SampledReadout, TreeReadout, least, rebuild

COUNTS = np.arange(9, 0, -1)
SHAPES = {  # of squares, and of those of the biases
    "sgd": (None, None),
    "row-adagrad": ((7,), None),
    "adagrad": ((7, 3), (7,)),
}


@pytest.mark.parametrize("optimiser", SHAPES)
@pytest.mark.parametrize("biases", [False, True])
def test_what_is_kept(optimiser, biases):
    rows = np.ones((7, 3), np.float32)
    kept = sparse.kept(rows, optimiser, biases)
    squares, of_biases = SHAPES[optimiser]
    shapes = [None if array is None else array.shape for array in kept]
    assert shapes == [(7, 3), (7,) if biases else None, squares, of_biases if biases else None]
    assert kept.rows is rows and not any(array.any() for array in sparse.beside(kept).values())
    assert sparse.numbers(7, 3, optimiser, biases) == sum(array.size for array in kept if array is not None)


@pytest.mark.parametrize("make", [TreeReadout, FullReadout, functools.partial(SampledReadout, loss="logistic")])
def test_readouts_are_rebuilt_and_copied_with_all_that_is_kept(make):
    readout = make(COUNTS, 3, optimiser="adagrad", biases=True)
    rng = np.random.default_rng(0)
    grad, hidden = np.empty((6, 3), np.float32), rng.normal(size=(6, 3)).astype(np.float32)
    readout.step(grad, hidden, rng.integers(0, 9, 6).astype(np.int32))
    arrays = readout.parameters()
    assert {"biases", "squares", "bias_squares"} <= arrays.keys() and arrays["squares"].any()
    again = rebuild(readout.describe())
    assert again.describe() == readout.describe()
    shapes = [{name: array.shape for name, array in of.items()} for of in (again.parameters(), arrays)]
    assert shapes[0] == shapes[1]
    assert least(readout.describe()) <= sum(array.size for array in arrays.values())
    for other in (copy.deepcopy(readout), pickle.loads(pickle.dumps(readout))):
        for name, array in other.parameters().items():
            assert array.tobytes() == arrays[name].tobytes() and not np.shares_memory(array, arrays[name])
