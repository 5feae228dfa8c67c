"""Whatever a feed or the caller's own code raises leaves a model between two ticks; what fails within one is told."""

import pytest

from hybrid.pvm.model import PVM
from tests.support.small_engine import WAYS, Feed, assert_same_bits, engine, parameters
from tests.support.small_pvm import TINY, Scene, bytes_of, walk

TICKS = 20


class Failing:
    """A feed that fails once, in a way of its own."""

    def __init__(self, feed, failure, at=5):
        self._feed, self._failure, self._at = feed, failure, at

    def __getattr__(self, name):
        return getattr(self._feed, name)

    def __len__(self):
        return len(self._feed)

    def __getitem__(self, tick):
        if tick == self._at:
            raise self._failure
        return self._feed[tick]


FAILURES = [OSError("gone"), StopIteration(), KeyboardInterrupt()]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_whatever_a_feed_raises_leaves_the_model_between_two_ticks(tmp_path, failure):
    expected = RuntimeError if isinstance(failure, StopIteration) else type(failure)
    for options in WAYS.values():
        whole, trained = engine(**options), engine(**options)
        list(whole.run(Feed(TICKS)))
        with pytest.raises(expected):
            list(trained.run(Failing(Feed(TICKS), failure)))
        trained.save(tmp_path / "engine")
        list(trained.run(Feed(TICKS)))
        assert_same_bits(parameters(trained), parameters(whole))
    whole, model = PVM(TINY), PVM(TINY)
    list(whole.run(Scene(TICKS)))
    with pytest.raises(expected) as found:
        list(model.run(Failing(Scene(TICKS), failure)))
    assert "at tick 5" in " ".join([str(found.value), *getattr(found.value, "__notes__", [])])
    model.save(tmp_path / "pvm")
    list(model.run(Scene(TICKS)))
    assert bytes_of(model) == bytes_of(whole)


def test_what_the_callers_own_code_raises_leaves_the_model_whole(tmp_path):
    trained, model = engine(), PVM(TINY)
    for failure in (ValueError("no"), MemoryError(), KeyboardInterrupt()):
        for ticks in (trained.run(Feed(TICKS)), model.run(Scene(TICKS))):
            next(ticks)
            with pytest.raises(type(failure)):
                ticks.throw(failure)
    assert trained.tick == model.tick == 3
    trained.save(tmp_path / "engine")
    model.save(tmp_path / "pvm")


def test_what_fails_in_a_step_marks_the_model(tmp_path):
    model = PVM(TINY)
    walk(model, Scene(3))
    model.readouts.step = lambda *arguments: (_ for _ in ()).throw(MemoryError())
    with pytest.raises(MemoryError):
        walk(model, Scene(4))
    with pytest.raises(ValueError, match="tick 3 failed midway: MemoryError"):
        model.save(tmp_path)
