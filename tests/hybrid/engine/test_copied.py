"""An engine goes back to what was copied of it, and on with the numbers that it would have had."""

import pytest

from hybrid.engine import Engine
from hybrid.engine.copied import copied
from tests.support.small_engine import MODELS, Feed, assert_same_bits, engine, parameters


@pytest.mark.parametrize("model", MODELS)
def test_an_engine_goes_on_from_its_copy(model):
    options = MODELS[model]
    feed, trained = Feed(bags=options.get("bags", False)), engine(**options)
    for _ in trained.run(feed):
        if trained.tick == 5:
            copies = copied(trained, {"of": model})
    again, facts = Engine.load(copies, threads=2)
    assert (again.tick, facts) == (5, {"of": model})
    for _ in again.run(feed):
        pass
    assert_same_bits(parameters(again), parameters(trained))


def test_an_engine_that_failed_half_way_is_not_copied():
    trained = engine()
    trained.torn = "tick 3 failed half-way"
    with pytest.raises(ValueError, match="load the last checkpoint"):
        copied(trained, {})
