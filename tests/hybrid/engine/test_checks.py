"""Parts, feeds and questions that do not suit an engine are refused by name, before anything is made or moved."""

from types import SimpleNamespace

import numpy as np
import pytest

from hybrid.engine import Embedding, Engine, Inputs
from hybrid.readout import FullReadout
from tests.support.points import Points
from tests.support.points import engine as points
from tests.support.small_engine import Feed, engine, through
from tests.support.toys.linear import LinearTrunk

X, NAN = np.zeros((4, 3), np.float32), np.float32("nan")


class Whole(LinearTrunk):
    """Shows its examples to nobody in groups of 4, but says so."""

    whole = 4


class Groups(Points):
    sizes = (8, 4, 0)

    def __getitem__(self, tick):
        batch = super().__getitem__(tick)
        size = self.sizes[tick % len(self.sizes)]
        return batch._replace(x=batch.x[:size], target=batch.target[:size])


def grouped(**options):
    return Engine(Inputs(5), Whole(5, 3), FullReadout(9, 3, batch=12), **through({"threads": 1} | options))


def numbers():
    return Engine(Inputs(3), None, FullReadout(9, 3), threads=1)


def bags(kind="mean"):
    return Engine(Embedding(10, 3, bags=kind), None, FullReadout(9, 3), threads=1)


def runs(made, feed):
    return lambda: next(made.run(feed))


def too_many(**sizes):
    feed = Feed()
    vars(feed).update(sizes)
    return feed


PARTS = [
    (lambda: Engine(Embedding(4, 5), None, FullReadout(9, 2)), "readout: width 2, the embedding gives 5"),
    (lambda: Engine(Embedding(4, 5), LinearTrunk(5, 7), FullReadout(9, 2)), "readout: width 2, the trunk gives 7"),
    (lambda: Engine(Embedding(4, 6), LinearTrunk(5, 7), FullReadout(9, 2)), "trunk: takes 5 inputs, the embedding"),
    (lambda: engine(threads=0), "threads: found 0"),
    (lambda: engine(device="tpu"), 'device: found "tpu"'),
    (lambda: engine(schedule="sine"), "schedule: found 'sine', expected one of constant, linear, cosine, step"),
]
FEEDS = [
    (runs(engine(threads=1, overlap=True), Feed()), "overlap: needs at least 2 threads"),
    (runs(grouped(micro_batches=4), Groups(True)), "found 4, expected 1 to 3, the sequences of 4"),
    (runs(engine(micro_batches=17), Feed()), "found 17, expected 1 to 16, the examples of"),
    (runs(points(True), Points(False)), "feed: has 0 numbers per example, the engine takes 5"),
    (runs(points(False), Points(True)), "feed: has 5 numbers per example, the engine takes 0"),
    (runs(engine(), too_many(rows=35)), r"the embedding 30 rows; embedding\.add_rows makes more"),
    (runs(engine(), too_many(classes=35)), r"has 35 classes, the readout 30; readout\.add_classes makes more"),
    (runs(engine(), too_many(batch=17)), "feed: 17 examples per micro-batch, the readout was made for 16"),
]
QUESTIONS = [
    (lambda: numbers().hidden(), "x: found NoneType, expected an array float32"),
    (lambda: numbers().hidden(x=X[:, :2]), r"x: found float32 \(4, 2\), expected float32 \(any, 3\)"),
    (lambda: numbers().hidden(x=X * NAN), r"x\[0\]: found NaN or infinity"),
    (lambda: numbers().hidden([1], x=X), r"ids: found list, expected None: not used by an engine with Inputs\(3\)"),
    (lambda: numbers().hidden(x=X, values=X), "values: found ndarray, expected None"),
    (lambda: grouped().hidden(x=np.zeros((3, 5), np.float32)), "found 3 examples, expected a multiple of 4, the seq"),
    (lambda: engine().hidden([1, 2, 3], x=X), "x: found ndarray, expected None: not used by this engine, which has an"),
    (lambda: engine().hidden([1, 2]), "ids: found 2, expected a multiple of 3"),
    (lambda: engine().hidden([1.5, 2, 3]), "ids: found float64"),
    (lambda: engine().hidden([1, 2, 3], [0, 3]), "bag_at: not used by this embedding"),
    (lambda: bags().best([1, 2], 3), "bag_at: needed by this embedding"),
    (lambda: bags().best([1, 2], 3, [0, 2_000_000_000]), r"bag_at\[1\]: found 2000000000, expected 2"),
    (lambda: bags().scores([1, 2], [0, 2], values=X[0]), "values: not used by this embedding"),
    (lambda: bags("weighted").hidden([1, 2], [0, 2]), "values: needed by this embedding"),
    (lambda: bags("weighted").hidden([1, 2], [0, 2], values=X[0]), r"values: found float32 \(3,\)"),
]


@pytest.mark.parametrize(("call", "message"), PARTS + FEEDS + QUESTIONS)
def test_what_does_not_suit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_ids_out_of_range_are_refused():
    with pytest.raises(IndexError, match=r"ids\[2\]: found 30, expected 0 to 29"):
        engine().hidden([1, 2, 30])
    with pytest.raises(IndexError, match=r"ids\[1\]: found 4294967296, expected 0 to 29"):  # its int32 is 0
        engine().best([1, 2**32, 3], 2)


def test_a_part_on_a_device_must_be_on_that_of_the_trunk():
    readout = FullReadout(9, 3)
    readout.backend = SimpleNamespace(name="cuda:1", device=SimpleNamespace(host_memory=False))
    for trunk, message in (
        (LinearTrunk(3, 3), r'found one on "cuda:1", expected .* on the trunk.s device, "cpu"'),
        (None, r'found one on "cuda:1", expected one on the CPU: without a trunk the hidden vectors are rows'),
    ):
        with pytest.raises(ValueError, match=f"readout: {message}"):
            Engine(Inputs(3), trunk, readout, device="cpu")


def test_micro_batches_are_cut_at_whole_groups():
    counts = []
    trained = grouped(micro_batches=2)
    trained.trunk.forward = lambda slot, forward=trained.trunk.forward: (counts.append(slot.count), forward(slot))
    assert [tick.examples for tick in trained.run(Groups(True))] == [8, 4, 0, 8, 4, 0, 8, 4]
    assert counts == [4, 4, 4] * 2 + [4, 4, 4]


def test_batches_that_cut_a_group_are_refused_by_tick():
    feed = Groups(True)
    feed.sizes = (8, 6)
    trained = grouped()
    run = trained.run(feed)
    next(run)
    with pytest.raises(ValueError, match=r"Groups\[1\]: found 6 examples, expected a multiple of 4"):
        next(run)
    feed.batch = 10
    with pytest.raises(ValueError, match="feed: has batches of 10, expected a multiple of 4"):
        trained.evaluate(feed)
