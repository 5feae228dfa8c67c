"""A deep trunk on the device: the numbers of the CPU, dropout masks too, the same bytes in any order, exact stops anywhere."""

import itertools

import numpy as np
import pytest

from hybrid import MLP, Embedding, Engine, FullReadout
from tests import cudasim
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, Feed, assert_same_bits, parameters

SIZES = (12, 10, 10, 6)
ALL = {"layer_norm": True, "residual": True, "dropout": 0.25, "optimiser": "adamw", "rate": 0.003, "clip": 0.5}
KINDS = {
    "plain": {"momentum": 0.5},
    "adagrad": {"optimiser": "adagrad", "rate": 0.01, "activation": "gelu"},
    "all": ALL,
}


def engine(device, kind="all", **options):
    embedding = Embedding(CLASSES, 4, per_example=CONTEXT, rate=0.05, spread=0.3)
    readout = FullReadout(CLASSES, 6, batch=BATCH, rate=0.05)
    return Engine(embedding, MLP(SIZES, **KINDS[kind]), readout, device=device, **({"threads": 2} | options))


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_are_those_of_the_cpu(cuda, kind):
    found, expected = (engine(device, kind, micro_batches=2) for device in (cuda, "cpu"))
    for trained in (found, expected):
        trained.losses = [tick.loss for tick in trained.run(Feed(12))]
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-4)
    for name, array in parameters(expected).items():
        np.testing.assert_allclose(parameters(found)[name], array, rtol=1e-2, atol=1e-4, err_msg=name)
    assert found.evaluate(Feed(2)) == pytest.approx(expected.evaluate(Feed(2)), rel=1e-4)


@pytest.mark.parametrize("delay", [0, 1])
def test_the_same_bytes_in_any_order_of_completion(gpu, cuda, delay):
    def outcome(**options):
        trained = engine(cuda, micro_batches=2, delay=delay, **options)
        return [tick.loss for tick in trained.run(Feed(5))], parameters(trained)

    losses, expected = outcome(overlap=False)
    for seed in range(20 if gpu.simulated else 3):
        if gpu.simulated:
            cudasim.seed(seed)
        others, found = outcome()
        assert others == losses
        assert_same_bits(found, expected)


@pytest.mark.parametrize("there", ["cuda:0", "cpu"])
def test_a_run_that_stops_goes_on(cuda, tmp_path, there):
    whole, stopped = (engine(cuda, delay=1) for _ in range(2))
    losses = [tick.loss for tick in whole.run(Feed(9))]
    list(itertools.islice(stopped.run(Feed(9)), 4))
    stopped.save(tmp_path / "checkpoint")
    resumed, _ = Engine.load(tmp_path / "checkpoint", device=there, threads=2)
    np.testing.assert_allclose([tick.loss for tick in resumed.run(Feed(9))], losses[4:], rtol=1e-4)
    if there == cuda:
        assert_same_bits(parameters(resumed), parameters(whole))
