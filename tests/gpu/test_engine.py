"""Whole models with parts on the device: the numbers of the CPU, the same bytes in any order, faults cost nothing.

Here is tested hybrid/sparse.py too.
"""

import copy
import functools
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from hybrid import (
    MLP,
    SGD,
    AdamW,
    Embedding,
    Engine,
    FullReadout,
    HeadParts,
    HeadReadout,
    TreeReadout,
    backend,
)
from tests import cudasim
from tests.support.placed_engine import Ragged, placed
from tests.support.ruled_engine import Weighed, ruled
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, Feed, assert_same_bits, engine, parameters, through

ROOT = Path(__file__).parents[2]
BESIDE = {
    "tree": TreeReadout,
    "full": FullReadout,
    "head": functools.partial(HeadReadout, parts=HeadParts(head=7, clusters=3)),
}
DEEP = {
    "plain": {"optimiser": SGD(momentum=0.5)},
    "all": {"dropout": 0.25, "optimiser": AdamW(0.003, clip=0.5)},
}


def beside(kind, place, **options):
    """The readout beside its trunk; of a "head" the dense part is."""
    host = engine("full" if kind == "full" else "tree", bags=options.pop("bags", False))
    readout = BESIDE[kind](Feed.counts, 6, batch=BATCH, optimiser=SGD(0.05), backend=backend.choose(place))
    return Engine(host.embedding, host.trunk, readout, **through({"device": place} | options))


def deep(kind, place, **options):
    embedding = Embedding(CLASSES, 4, per_example=CONTEXT, spread=0.3, optimiser=SGD(0.05))
    readout = FullReadout(CLASSES, 6, batch=BATCH, optimiser=SGD(0.05))
    return Engine(embedding, MLP((12, 10, 10, 6), **DEEP[kind]), readout, device=place, **through(options))


class Model(NamedTuple):
    """make(place, **options) is an engine with its parts in a place; parts: those beside the trunk that a load may move."""

    make: Callable
    feed: Callable = Feed
    parts: tuple = ()


def trunk(kind, bags=False):
    return Model(
        lambda place, **more: engine(kind, bags=bags, device=place, **more), functools.partial(Feed, bags=bags)
    )


MODELS = {
    "tree": trunk("tree"),
    "full": trunk("full"),
    "sampled over bags": trunk("sampled", True),
    **{f"beside: {kind}": Model(functools.partial(beside, kind), parts=("readout_device",)) for kind in BESIDE},
    "rows": Model(placed, parts=("rows_device",)),
    "rows, full over bags": Model(
        functools.partial(placed, readout="device", bags=True), Ragged, ("rows_device", "readout_device")
    ),
    "rows, head": Model(functools.partial(placed, readout="both"), parts=("rows_device", "readout_device")),
    **{
        f"{kind} by {optimiser}": Model(
            lambda place, kind=kind, optimiser=optimiser, **more: ruled(
                kind, optimiser, place, **({"trunk": place} | more)
            ),
            Weighed,
            ("rows_device", "readout_device"),
        )
        for kind, optimiser in (
            ("tree", "row-adagrad"),
            ("tree by groups", "adagrad"),
            ("head", "adagrad"),
            ("full", "adagrad"),
        )
    },
    **{f"deep: {kind}": Model(functools.partial(deep, kind)) for kind in DEEP},
}


def run(trained, feed):
    return [tick.loss for tick in trained.run(feed)], parameters(trained)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "full"])
def test_the_numbers_are_those_of_the_cpu(cuda, name):
    model = MODELS[name]
    found, expected = model.make(cuda), model.make("cpu")
    losses, arrays = run(found, model.feed(12))
    others, wanted = run(expected, model.feed(12))
    np.testing.assert_allclose(losses, others, rtol=1e-4)
    assert arrays.keys() == wanted.keys()
    close = {"rtol": 1e-2, "atol": 1e-4} if name.startswith("deep") else {"rtol": 2e-3, "atol": 2e-5}
    for key, array in wanted.items():
        np.testing.assert_allclose(arrays[key], array, **close, err_msg=key)
    assert found.evaluate(model.feed(2)) == pytest.approx(expected.evaluate(model.feed(2)), rel=1e-4)
    batch = model.feed(1)[0]
    if batch.values is None:
        given = batch.ids, batch.bag_at
        np.testing.assert_allclose(found.hidden(*given), expected.hidden(*given), rtol=1e-3, atol=1e-5)


# Micro-batches with each place of rows and readout
ORDERS = [("tree", 3), ("tree", 1), ("sampled over bags", 2), ("rows, full over bags", 3), ("beside: full", 2)]
ORDERS += [("beside: head", 3), ("rows, head", 2), ("tree by row-adagrad", 3), ("deep: all", 2)]


@pytest.mark.parametrize(
    ("name", "micro_batches", "orders"),
    [
        *((*case, 4) for case in ORDERS),
        *(pytest.param(name, 2, 100, marks=pytest.mark.slow) for name in MODELS),
    ],
)
def test_overlapped_equals_serial_bit_for_bit_in_any_order_of_completion(gpu, cuda, name, micro_batches, orders):
    model, options = MODELS[name], {"micro_batches": micro_batches}
    losses, expected = run(model.make(cuda, overlap=False, **options), model.feed(5))
    for seed in gpu.orders(orders if gpu.simulated else 3):
        others, found = run(model.make(cuda, overlap=True, **options), model.feed(5))
        assert others == losses, seed
        assert_same_bits(found, expected)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("tree", "cuda:0", "cuda:0"),
        ("tree", "cuda:0", "cpu"),
        ("beside: head", "cuda:0", "cpu"),
        ("beside: full", "cpu", "cuda:0"),
        ("rows", "cuda:0", "cuda:0"),
        ("rows, full over bags", "cpu", "cuda:0"),
        ("full by adagrad", "cuda:0", "cuda:0"),
        ("head by adagrad", "cpu", "cuda:0"),
        ("deep: all", "cuda:0", "cuda:0"),
        ("deep: all", "cuda:0", "cpu"),
    ],
)
def test_a_checkpoint_goes_on_on_either_device(cuda, tmp_path, name, first, second):
    model, options = MODELS[name], {"micro_batches": 2}
    _, expected = run(model.make(first, **options), model.feed(12))
    begun = model.make(first, **options)
    list(itertools.islice(begun.run(model.feed(12)), 5))
    begun.save(tmp_path / "checkpoint")
    places = dict.fromkeys(("device", *model.parts), second)
    resumed, _ = Engine.load(tmp_path / "checkpoint", threads=2, **places)
    assert resumed.embedding.describe() == begun.embedding.describe()
    assert resumed.readout.describe() == begun.readout.describe()
    _, found = run(resumed, model.feed(12))
    if first == second:
        assert_same_bits(found, expected)
    for key, array in expected.items():
        np.testing.assert_allclose(found[key], array, rtol=1e-2, atol=1e-4, err_msg=key)
    home, _ = Engine.load(tmp_path / "checkpoint", device="cpu")
    assert_same_bits(parameters(home), parameters(begun))


@pytest.mark.parametrize("name", ["tree", "beside: head", "rows"])
def test_saving_and_asking_between_two_ticks_changes_nothing(cuda, tmp_path, name):
    plain, saved = (MODELS[name].make(cuda) for _ in range(2))
    list(plain.run(Feed(8)))
    for _ in saved.run(Feed(8)):
        saved.save(tmp_path / "checkpoint")
        saved.evaluate(Feed(2))
        saved.best(Feed(1)[0].ids, 3)
    assert_same_bits(parameters(plain), parameters(saved))


@pytest.mark.parametrize("name", ["tree", "beside: full", "rows, head", "tree by row-adagrad"])
def test_after_the_first_ticks_nothing_is_allocated(simulated, cuda, name):
    model = MODELS[name]
    ticks = model.make(cuda, micro_batches=2).run(model.feed(12))
    list(itertools.islice(ticks, 3))
    made = cudasim.calls(list, itertools.islice(ticks, 6))
    assert made["launch"] and not made.keys() & {"alloc", "host_alloc"}
    list(ticks)


def test_copies_have_all_that_is_kept(cuda):
    trained = ruled(optimiser="row-adagrad")
    list(trained.run(Weighed(4)))
    other = copy.deepcopy(trained)
    for one in (trained, other):
        list(one.run(Weighed(8)))
    assert_same_bits(parameters(other), parameters(trained))


@pytest.mark.parametrize("fault", ["launch:6", "copy:9", "lost:200"])
def test_a_device_that_fails_stops_the_run_and_the_checkpoint_stands(simulated, cuda, tmp_path, fault):
    script = f"""
import itertools
from tests import cudasim
from tests.cudasim import cublas
cublas.use()
from gpu.device import DeviceError
from hybrid.engine import Engine
from tests.support.small_engine import Feed, engine
trained = engine(device="cuda:0")
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
    assert "cuda:0: " in done.stdout and "the last checkpoint is intact" in done.stdout, done.stdout + done.stderr
    assert "hidden on the host: (30, 4) True" in done.stdout
    whole, (resumed, _) = engine(device=cuda), Engine.load(tmp_path / "checkpoint", device=cuda)
    for trained in (whole, resumed):
        list(trained.run(Feed(40)))
    assert_same_bits(parameters(resumed), parameters(whole))


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_a_lower_precision_is_used_only_by_name(gpu, cuda, precision):
    losses, exact = run(engine(device=cuda), Feed(12))
    others, rounded = run(engine(device=f"{cuda}+{precision}"), Feed(12))
    np.testing.assert_allclose(others, losses, rtol=1e-2)
    if gpu.device.capability >= (8, 0):
        assert rounded["trunk.weights"].tobytes() != exact["trunk.weights"].tobytes()


def test_another_device_of_several_can_be_chosen(simulated):
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
