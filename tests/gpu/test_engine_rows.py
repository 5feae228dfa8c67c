"""A model whose rows are on the trunk's device: the numbers of the CPU, the same bytes in any order, one checkpoint."""

import itertools

import numpy as np
import pytest

from hybrid import backend
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.readout import TreeReadout
from tests import cudasim
from tests.support import points
from tests.support.placed_engine import READOUTS, Ragged, placed
from tests.support.small_engine import BATCH, CLASSES, Feed, assert_same_bits, parameters


def feed(bags, ticks=12):
    return Ragged(ticks) if bags else Feed(ticks)


def run(trained, bags=False, ticks=12):
    return [tick.loss for tick in trained.run(feed(bags, ticks))], parameters(trained)


@pytest.mark.parametrize("bags", [False, True])
@pytest.mark.parametrize("readout", READOUTS)
def test_the_numbers_are_those_of_rows_on_the_cpu(cuda, readout, bags):
    found, expected = placed(readout=readout, bags=bags), placed("cpu", readout, bags)
    losses, arrays = run(found, bags)
    others, wanted = run(expected, bags)
    np.testing.assert_allclose(losses, others, rtol=1e-5)
    for name, array in wanted.items():
        np.testing.assert_allclose(arrays[name], array, rtol=1e-4, atol=1e-6, err_msg=name)
    assert np.abs(arrays["embedding.table"] - Embedding(CLASSES, 4, spread=0.3).table).max() > 1e-3
    assert found.evaluate(feed(bags, 2)) == pytest.approx(expected.evaluate(feed(bags, 2)), rel=1e-5)
    batch = feed(bags, 1)[0]
    hidden = found.hidden(batch.ids, batch.bag_at)
    np.testing.assert_allclose(hidden, expected.hidden(batch.ids, batch.bag_at), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("bags", [False, True])
@pytest.mark.parametrize("orders", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_overlapped_equals_serial_bit_for_bit_in_any_order_of_completion(gpu, cuda, readout, delay, bags, orders):
    options = {"readout": readout, "delay": delay, "micro_batches": 3, "bags": bags}
    losses, expected = run(placed(overlap=False, **options), bags, 6)
    for seed in range(orders if gpu.simulated else 3):
        if gpu.simulated:
            cudasim.seed(seed)
        others, found = run(placed(overlap=True, **options), bags, 6)
        assert others == losses, seed
        assert_same_bits(found, expected)


@pytest.mark.parametrize("places", [("cuda:0", "cuda:0"), ("cpu", "cuda:0"), ("cuda:0", "cpu")])
@pytest.mark.parametrize("bags", [False, True])
@pytest.mark.parametrize("delay", [0, 1])
def test_a_checkpoint_goes_on_with_the_rows_on_either_device(cuda, tmp_path, delay, bags, places):
    first, second = places
    options = {"delay": delay, "micro_batches": 2, "bags": bags}
    _, expected = run(placed(first, **options), bags, 20)
    begun = placed(first, **options)
    list(itertools.islice(begun.run(feed(bags, 20)), 7))
    begun.save(tmp_path / "checkpoint")
    resumed, _ = Engine.load(tmp_path / "checkpoint", device=cuda, rows_device=second, threads=2)
    assert resumed.embedding.backend.name == second
    _, found = run(resumed, bags, 20)
    if first == second:
        assert_same_bits(found, expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-3, atol=1e-5, err_msg=name)
    home, _ = Engine.load(tmp_path / "checkpoint", device="cpu")
    assert_same_bits(parameters(home), parameters(begun))


def test_saving_and_asking_between_two_ticks_changes_nothing(cuda, tmp_path):
    plain, saved = placed(delay=1), placed(delay=1)
    list(plain.run(Feed(10)))
    for _ in saved.run(Feed(10)):
        saved.save(tmp_path / "checkpoint")
        saved.evaluate(Feed(2))
    assert_same_bits(parameters(plain), parameters(saved))


def test_ids_cross_instead_of_vectors(cuda):
    trained = placed(bags=True, micro_batches=2)
    run(trained, True, 5)
    stages = {(interval.queue, interval.stage) for interval in trained.trace.recent}
    assert stages == {
        ("feed", "feed"),
        ("copy in", "ids in"),
        ("copy in", "bag_at in"),
        ("dense", "gather"),
        ("dense", "forward"),
        ("copy out", "hidden out"),
        ("sparse", "readout"),
        ("copy in", "grad in"),
        ("dense", "backward"),
        ("dense", "scatter"),
        ("dense", "update"),
    }
    assert not hasattr(trained.route.slot(4, 12), "x") and "x" not in trained.route.slot(4, 12)._buffers


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("bags", [False, True])
def test_nothing_is_allocated_after_the_first_ticks(gpu, cuda, readout, bags):
    if not gpu.simulated:
        pytest.skip("the simulated driver counts allocations")
    ticks = placed(readout=readout, bags=bags, micro_batches=2, delay=1).run(feed(bags, 16))
    list(itertools.islice(ticks, 3))
    before = cudasim.counts()
    list(itertools.islice(ticks, 10))
    after = cudasim.counts()
    assert (after["alloc"], after["host_alloc"]) == (before["alloc"], before["host_alloc"])
    assert after["launch"] > before["launch"]
    list(ticks)


def test_a_bad_id_is_refused_before_it_reaches_the_device(cuda):
    with pytest.raises(IndexError, match=r"ids\[2\]: found 30, expected 0 to 29"):
        placed().hidden([1, 2, 30])


def test_rows_that_were_filled_in_are_sent(cuda):
    embedding = placed().embedding
    embedding.table[:] = 7
    assert (embedding.parameters()["table"] < 1).all()  # fetched again: what is not sent is lost
    embedding.table[:] = 7
    embedding.send()
    assert (embedding.parameters()["table"] == 7).all()


def test_rows_are_added_on_the_device(cuda):
    embedding = placed().embedding
    before = embedding.vectors().copy()
    embedding.add_rows(4, 2)
    np.testing.assert_array_equal(np.delete(embedding.vectors(), np.r_[2:6], 0), before)
    np.testing.assert_array_equal(embedding.vectors()[2:6], Embedding(CLASSES + 4, 4, spread=0.3).table[CLASSES:])


def without_trunk():
    embedding = Embedding(CLASSES, 6, backend=backend.choose("cuda:0"))
    return Engine(embedding, None, TreeReadout(Feed.counts, 6, batch=BATCH))


def for_word2vec():
    return Embedding(CLASSES, 6, mean=True, undivided=True, backend=backend.choose("cuda:0"))


REFUSED = [
    (lambda: placed(trunk="cpu"), 'embedding: found one on "cuda:0", expected one on the CPU or on the trunk.s device'),
    (lambda: placed(trunk="cuda:0+tf32"), r'or give the engine device="cuda:0" \(--device\)'),
    (without_trunk, r"embedding: .* without a trunk the hidden vectors are rows.*--rows-device cpu"),
    (for_word2vec, "undivided: found True with rows on cuda:0"),
]


@pytest.mark.parametrize("make, message", REFUSED)
def test_rows_beside_another_trunk_are_refused(cuda, make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_numbers_of_the_feed_are_copied_to_the_device(cuda):
    engines = [points.engine(True, overlap=True, device=device) for device in ("cpu", cuda)]
    losses = [[tick.loss for tick in each.run(points.Points(True))] for each in engines]
    np.testing.assert_allclose(*losses, rtol=1e-4)
