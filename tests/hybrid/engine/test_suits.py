"""Parts and feeds that do not suit each other are refused before anything is made or moved."""

from types import SimpleNamespace

import numpy as np
import pytest

from hybrid import backend
from hybrid.engine import Engine
from hybrid.engine import engine as suits
from hybrid.engine.embedding import Embedding, Inputs
from hybrid.readout import FullReadout
from tests.support import small_engine
from tests.support.points import Points, engine
from tests.support.toys.linear import LinearTrunk


class Whole(LinearTrunk):
    """Shows its examples to nobody in groups of 4, but says so."""

    whole, undelayed = 4, "it must not"


def grouped(**options):
    return Engine(Inputs(5), Whole(5, 3), FullReadout(9, 3, batch=12), threads=1, **options)


@pytest.mark.parametrize("device", [None, "auto"])
def test_a_trunk_of_the_cpu_alone_is_put_there_and_another_where_there_is_room(monkeypatch, device):
    asked, choose = [], backend.choose
    monkeypatch.setattr(backend, "choose", lambda device: (asked.append(device), choose("cpu"))[1])
    for places in (("cpu",), ("cpu", "cuda")):
        suits.dense_backend(SimpleNamespace(places=places), device)
    assert asked == ["cpu", device]


def test_a_part_on_a_device_must_be_on_that_of_the_trunk():
    here, there, host = (
        SimpleNamespace(name=name, device=SimpleNamespace(host_memory=name == "cpu"))
        for name in ("cuda:0", "cuda:1", "cpu")
    )
    for found in (here, host):
        suits.check_place("readout", SimpleNamespace(backend=found), LinearTrunk(5, 3), here)
    with pytest.raises(
        ValueError, match=r'readout: found one on "cuda:1", expected .* on the trunk.s device, "cuda:0"'
    ):
        suits.check_place("readout", SimpleNamespace(backend=there), LinearTrunk(5, 3), here)


class Groups(Points):
    def __getitem__(self, tick):
        batch = super().__getitem__(tick)
        size = self.sizes[tick % len(self.sizes)]
        return batch._replace(x=batch.x[:size], target=batch.target[:size])

    sizes = (8, 4, 0)


def test_micro_batches_are_cut_at_whole_groups():
    counts = []
    trained = grouped(micro_batches=2)
    trained.trunk.forward = lambda slot, forward=trained.trunk.forward: (counts.append(slot.count), forward(slot))
    assert [tick.examples for tick in trained.run(Groups(True))] == [8, 4, 0, 8, 4, 0, 8, 4]
    assert counts == [4, 4, 4] * 2 + [4, 4, 4]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: grouped(delay=1), "delay: found 1, expected 0: it must not"),
        (lambda: grouped(delay=17), "delay: found 17, expected a whole number from 0 to 1"),
        (
            lambda: list(grouped(micro_batches=4).run(Groups(True))),
            "found 4, expected 1 to 3, the sequences of 4",
        ),
        (lambda: list(engine(True, micro_batches=13).run(Points(True))), "expected 1 to 12, the examples of"),
        (lambda: list(engine(True).run(Points(False))), "feed: has 0 numbers an example, the engine takes 5"),
        (lambda: list(engine(False).run(Points(True))), "feed: has 5 numbers an example, the engine takes 0"),
        (lambda: Engine(Embedding(4, 5), None, FullReadout(9, 2)), "readout: width 2, the embedding gives 5"),
    ],
)
def test_what_does_not_suit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


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
    with pytest.raises(ValueError, match="found 3 examples, expected a multiple of 4"):
        trained.hidden(x=np.zeros((3, 5), np.float32))


def test_rates_fall_to_nothing_unless_asked_otherwise():
    assert small_engine.engine().schedule == "linear" and small_engine.engine(decay=False).schedule == "constant"
