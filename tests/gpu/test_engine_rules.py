"""Rows and readout on the device with optimisers, biases, weights of examples and values of ids: the numbers of the CPU.

Here is tested hybrid/sparse.py too.
"""

import copy
import itertools

import numpy as np
import pytest

from hybrid.engine import Engine
from tests import cudasim
from tests.support.ruled_engine import Weighed, ruled
from tests.support.small_engine import assert_same_bits, parameters


def run(trained, ticks=12):
    return [tick.loss for tick in trained.run(Weighed(ticks))], parameters(trained)


WAYS = [("tree", "adagrad"), ("tree by groups", "row-adagrad"), ("split", "sgd"), ("full", "adagrad")]


@pytest.mark.parametrize(("readout", "optimiser"), WAYS)
def test_the_numbers_are_those_of_the_cpu(cuda, readout, optimiser):
    found, expected = ruled(readout, optimiser), ruled(readout, optimiser, "cpu", "cpu")
    losses, arrays = run(found)
    others, wanted = run(expected)
    np.testing.assert_allclose(losses, others, rtol=1e-4)
    assert arrays.keys() == wanted.keys() and "readout.biases" in arrays
    assert ("embedding.squares" in arrays) == (optimiser != "sgd")
    for name, array in wanted.items():
        np.testing.assert_allclose(arrays[name], array, rtol=2e-3, atol=2e-5, err_msg=name)
    assert found.evaluate(Weighed(2)) == pytest.approx(expected.evaluate(Weighed(2)), rel=1e-4)


@pytest.mark.parametrize(("readout", "optimiser"), [("tree", "row-adagrad"), ("full", "adagrad")])
def test_overlapped_equals_serial_bit_for_bit_in_any_order_of_completion(gpu, cuda, readout, optimiser):
    options = {"delay": 1, "micro_batches": 3}
    losses, expected = run(ruled(readout, optimiser, overlap=False, **options), 6)
    for seed in range(2):
        if gpu.simulated:
            cudasim.seed(seed)
        others, found = run(ruled(readout, optimiser, **options), 6)
        assert others == losses, seed
        assert_same_bits(found, expected)


@pytest.mark.parametrize(
    ("readout", "optimiser", "first", "second"),
    [
        ("tree", "row-adagrad", "cuda:0", "cuda:0"),
        ("full", "adagrad", "cuda:0", "cpu"),
        ("split", "adagrad", "cpu", "cuda:0"),
    ],
)
def test_a_checkpoint_goes_on_on_either_device_with_all_that_is_kept(cuda, tmp_path, readout, optimiser, first, second):
    options = {"delay": 1, "micro_batches": 2}
    _, expected = run(ruled(readout, optimiser, first, **options), 16)
    begun = ruled(readout, optimiser, first, **options)
    list(itertools.islice(begun.run(Weighed(16)), 7))
    begun.save(tmp_path / "checkpoint")
    places = {"rows_device": second, "readout_device": second}
    resumed, _ = Engine.load(tmp_path / "checkpoint", device=cuda, threads=2, **places)
    assert resumed.embedding.describe() == begun.embedding.describe()
    assert resumed.readout.describe() == begun.readout.describe()
    _, found = run(resumed, 16)
    if first == second:
        assert_same_bits(found, expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=5e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("optimiser", ["row-adagrad", "adagrad"])
def test_copies_have_all_that_is_kept(cuda, optimiser):
    trained = ruled(optimiser=optimiser)
    run(trained, 4)
    other = copy.deepcopy(trained)
    assert_same_bits(parameters(other), parameters(trained))
    for one in (trained, other):
        list(one.run(Weighed(8)))
    assert_same_bits(parameters(other), parameters(trained))


def test_what_is_kept_beside_is_not_counted_as_learned(cuda):
    sizes = {name: ruled(optimiser=name).size for name in ("sgd", "row-adagrad", "adagrad")}
    assert len(set(sizes.values())) == 1
