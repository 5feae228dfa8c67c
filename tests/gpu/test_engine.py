"""A whole model with its trunk on the device: the numbers of the CPU, the same bytes in any order, faults cost nothing."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpu.device import DeviceError
from hybrid import backend
from hybrid.engine import Engine
from tests import cudasim
from tests.support.small_engine import MODELS, Feed, assert_same_bits, engine, parameters

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cuda(gpu):
    """The name of the device; under simulation its asynchronous work runs in an order drawn from a seed."""
    yield "cuda:0"
    if gpu.simulated:
        cudasim.fail("")


def outcome(ticks=12, **options):
    trained = engine("tree", **options)
    losses = [tick.loss for tick in trained.run(Feed(ticks))]
    return losses, parameters(trained)


@pytest.mark.parametrize("bags", [False, True])
@pytest.mark.parametrize("kind", ["tree", "full", "sampled"])
def test_the_numbers_are_those_of_the_cpu(cuda, kind, bags):
    found, expected = engine(kind, bags=bags, device=cuda), engine(kind, bags=bags, device="cpu")
    for trained in (found, expected):
        trained.losses = [tick.loss for tick in trained.run(Feed(12, bags=bags))]
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-5)
    for name, array in parameters(expected).items():
        np.testing.assert_allclose(parameters(found)[name], array, rtol=1e-3, atol=1e-5, err_msg=name)
    assert found.evaluate(Feed(2, bags=bags)) == pytest.approx(expected.evaluate(Feed(2, bags=bags)), rel=1e-5)


@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_overlapped_equals_serial_bit_for_bit_in_any_order_of_completion(gpu, cuda, delay, micro_batches):
    options = {"device": cuda, "delay": delay, "micro_batches": micro_batches}
    losses, expected = outcome(overlap=False, **options)
    for seed in range(20 if gpu.simulated else 3):
        if gpu.simulated:
            cudasim.seed(seed)
        others, found = outcome(**options)
        assert others == losses
        assert_same_bits(found, expected)


@pytest.mark.parametrize(
    ("model", "orders"),
    [
        ("language", 40),
        *(pytest.param(name, 200, marks=pytest.mark.slow) for name in ("language", "language, full", "factors")),
    ],
)
def test_every_model_equals_its_serial_order_for_many_orders(gpu, cuda, model, orders):
    bags = MODELS[model].get("bags", False)

    def run(overlap):
        trained = engine(**MODELS[model], device=cuda, micro_batches=2, overlap=overlap)
        losses = [tick.loss for tick in trained.run(Feed(4, bags=bags))]
        return losses, parameters(trained)

    losses, expected = run(False)
    for seed in range(orders if gpu.simulated else 3):
        if gpu.simulated:
            cudasim.seed(seed)
        others, found = run(None)
        assert others == losses, seed
        assert_same_bits(found, expected)


@pytest.mark.parametrize("there_and_back", [("cuda:0", "cuda:0"), ("cpu", "cuda:0"), ("cuda:0", "cpu")])
@pytest.mark.parametrize("delay", [0, 1])
def test_a_checkpoint_goes_on_on_either_device(cuda, tmp_path, delay, there_and_back):
    first, second = there_and_back
    whole = engine(delay=delay, micro_batches=2, device=first)
    list(whole.run(Feed(20)))
    begun = engine(delay=delay, micro_batches=2, device=first)
    list(itertools.islice(begun.run(Feed(20)), 7))
    begun.save(tmp_path / "checkpoint")
    resumed, _ = Engine.load(tmp_path / "checkpoint", device=second)
    list(resumed.run(Feed(20)))
    if first == second:
        assert_same_bits(parameters(resumed), parameters(whole))
    for name, array in parameters(whole).items():
        np.testing.assert_allclose(parameters(resumed)[name], array, rtol=1e-3, atol=1e-5, err_msg=name)


def test_saving_between_two_ticks_changes_nothing(cuda, tmp_path):
    plain, saved = engine(delay=1, device=cuda), engine(delay=1, device=cuda)
    list(plain.run(Feed(10)))
    for _ in saved.run(Feed(10)):
        saved.save(tmp_path / "checkpoint")
        saved.evaluate(Feed(2))
    assert_same_bits(parameters(plain), parameters(saved))


def test_the_timeline_has_the_copies_and_the_device(cuda):
    trained = engine(device=cuda, micro_batches=2)
    list(trained.run(Feed(5)))
    stages = {(interval.queue, interval.stage) for interval in trained.trace.recent}
    assert stages == {
        ("feed", "feed"),
        ("sparse", "gather"),
        ("copy in", "x in"),
        ("dense", "forward"),
        ("copy out", "hidden out"),
        ("sparse", "readout"),
        ("copy in", "grad in"),
        ("dense", "backward"),
        ("copy out", "x_grad out"),
        ("sparse", "scatter"),
        ("dense", "update"),
    }
    assert trained.cores.line() == "dense and sparse stages overlapped"


def test_after_the_first_ticks_nothing_is_allocated(gpu, cuda):
    if not gpu.simulated:
        pytest.skip("the simulated driver counts allocations")
    run = engine(device=cuda, micro_batches=2, delay=1).run(Feed(12))
    list(itertools.islice(run, 3))
    before = cudasim.counts()
    list(itertools.islice(run, 6))
    after = cudasim.counts()
    assert (after["alloc"], after["host_alloc"]) == (before["alloc"], before["host_alloc"])
    assert after["launch"] > before["launch"]
    list(run)


@pytest.mark.parametrize("fault", ["launch:6", "copy:9", "lost:200"])
@pytest.mark.parametrize("delay", [0, 1])
def test_a_device_that_fails_stops_the_run_and_the_checkpoint_stands(gpu, cuda, tmp_path, fault, delay):
    if not gpu.simulated:
        pytest.skip("failures are made by the simulated driver")
    script = f"""
import itertools
from tests import cudasim
from tests.cudasim import cublas
cublas.use()
from gpu.device import DeviceError
from hybrid.engine import Engine
from tests.support.small_engine import Feed, engine
trained = engine(device="cuda:0", delay={delay})
ticks = trained.run(Feed(40))
list(itertools.islice(ticks, 2))
trained.save({str(tmp_path / "checkpoint")!r})
cudasim.fail({fault!r})
try:
    list(ticks)
except DeviceError as error:
    print(error)
    print("hidden on the host:", trained.embedding.table.shape, trained.tick < 40)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "cuda:0: " in done.stdout and "the last checkpoint stands" in done.stdout, done.stdout + done.stderr
    assert "hidden on the host: (30, 4) True" in done.stdout
    whole, (resumed, _) = engine(delay=delay, device=cuda), Engine.load(tmp_path / "checkpoint", device=cuda)
    for trained in (whole, resumed):
        list(trained.run(Feed(40)))
    assert_same_bits(parameters(resumed), parameters(whole))


def test_a_device_is_made_once(cuda):
    assert backend.choose(cuda).device is backend.choose(cuda).device


def test_tf32_is_used_only_by_name(gpu, cuda):
    losses, exact = outcome(device=cuda)
    others, rounded = outcome(device=f"{cuda}+tf32")
    np.testing.assert_allclose(others, losses, rtol=1e-2)
    if gpu.device.capability >= (8, 0):
        assert rounded["trunk.weights"].tobytes() != exact["trunk.weights"].tobytes()


def test_another_device_of_several_can_be_chosen(gpu, cuda):
    if not gpu.simulated:
        pytest.skip("several devices are made by the simulated driver")
    script = """
from tests.cudasim import cublas
cublas.use()
from tests.support.small_engine import Feed, engine
both = [engine(device=name) for name in ("cuda:0", "cuda:3")]
runs = [trained.run(Feed(6)) for trained in both]
print([first.loss == second.loss for first, second in zip(*runs)], [trained.dense.device.ordinal for trained in both])
"""
    environment = os.environ | {"CUDASIM_DEVICES": "4"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout == f"{[True] * 6} [0, 3]\n", done.stdout + done.stderr
    assert done.stderr == ""


def test_a_device_that_is_not_there_is_refused(cuda):
    with pytest.raises((ValueError, DeviceError), match="cuda:9"):
        engine(device="cuda:9")
