"""The whole way of a batch: gradients against differences, exact stops, the same bits however the cores are spent.

Also, with tests/hybrid/test_failing_feeds.py, of hybrid/schedule/runner.py.
"""

import itertools
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hybrid.engine import Engine
from tests.support.small_engine import BATCH, CLASSES, Feed, assert_same_bits, engine, parameters


@pytest.mark.parametrize(("kind", "bags"), [("tree", True), ("full", False)])
def test_one_step_moves_rows_and_trunk_along_the_slope_of_the_loss(kind, bags):
    """The change of a parameter is -rate * d loss / d parameter, measured by moving the parameter both ways.

    The readout is trained a little first (its zeros give no gradient), then one tick is compared at a small rate.
    """
    feed = Feed(bags=bags)
    trained = engine(kind, bags=bags, schedule="constant", micro_batches=1)
    for _ in trained.run(Feed(40, bags=bags)):
        pass
    trained.trunk.parameters()["velocity"][:] = 0
    trained.embedding.rate, trained.trunk.optimiser.rate, trained.readout.rate = 1e-3, 1e-3, 0.0
    batch = feed[3]

    def loss():
        hidden = trained.hidden(batch.ids, batch.bag_at)
        return -trained.readout.log_prob(hidden, batch.target).astype(float).sum()

    before = parameters(trained)
    slopes = {}
    for name, scale in (("embedding.table", 1.0), ("trunk.weights", 1 / BATCH)):
        array = trained.parameters()[name].reshape(-1)
        for at in np.random.default_rng(0).choice(array.size, 12, replace=False):
            old, step = array[at], 1e-2
            values = []
            for sign in (1, -1):
                array[at] = old + sign * step
                values.append(loss())
            array[at] = old
            slopes[name, at] = scale * (values[0] - values[1]) / (2 * step)
    trained.tick = 3
    next(trained.run(feed))
    after = trained.parameters()
    for (name, at), slope in slopes.items():
        moved = (after[name].reshape(-1)[at] - before[name].reshape(-1)[at]) / -1e-3
        # float32: a difference of two losses near 50 nats over 2e-2, and a move of 1e-3 times the slope
        assert moved == pytest.approx(slope, rel=0.05, abs=0.02), (name, at)


@pytest.mark.parametrize(
    ("kind", "stop", "options"),
    [
        ("tree", 7, {"schedule": "cosine", "warmup": 3}),
        ("full", 1, {}),
        ("sampled", 7, {"schedule": "step"}),
    ],
)
def test_a_run_stopped_saved_and_loaded_ends_with_the_same_bits(tmp_path, kind, stop, options):
    whole, first = (engine(kind, micro_batches=2, **options) for _ in range(2))
    losses = [tick.loss for tick in whole.run(Feed(20))]
    list(itertools.islice(first.run(Feed(20)), stop))
    first.save(tmp_path / "checkpoint", {"note": "kept"})
    second, facts = Engine.load(tmp_path / "checkpoint", threads=1)
    assert facts == {"note": "kept"} and second.tick == stop
    assert [tick.loss for tick in second.run(Feed(20))] == losses[stop:]
    assert_same_bits(parameters(second), parameters(whole))


def test_evaluate_is_the_mean_loss_an_untrained_model_knows_nothing_and_one_that_diverged_is_an_error():
    fresh = engine("full")
    feed = Feed(5)
    mean = np.mean([-fresh.readout.log_prob(fresh.hidden(b.ids), b.target).mean() for b in (feed[t] for t in range(5))])
    assert fresh.evaluate(feed) == pytest.approx(mean, rel=1e-6)
    assert mean == pytest.approx(math.log(CLASSES), rel=1e-5)
    fresh.readout.weights[3] = np.nan
    with pytest.raises(FloatingPointError, match="evaluation: found a mean loss of nan, expected a finite one"):
        fresh.evaluate(feed)


@pytest.mark.parametrize("overlap", [False, True])
def test_a_diverging_run_stops_and_names_the_tick(overlap):
    trained = engine("full", rate=1e30, overlap=overlap)
    with pytest.raises(FloatingPointError, match=r"tick \d+: .*rates"):
        list(trained.run(Feed(50)))
    trained.settle()  # nothing that failed is waited for again


def test_an_engine_that_failed_half_way_neither_saves_nor_runs_on(tmp_path):
    trained = engine("full")

    def fail(*arguments):
        raise OSError("the disk of the rows is gone")

    list(itertools.islice(trained.run(Feed(10)), 2))
    trained.save(tmp_path / "checkpoint")
    trained.embedding.backward = fail
    with pytest.raises(OSError, match="the disk of the rows is gone") as found:
        list(trained.run(Feed(10)))
    assert found.value.__notes__ == ["in stage scatter of tick 2, micro-batch 0"]
    calls = lambda: trained.save(tmp_path / "checkpoint"), lambda: next(trained.run(Feed(10)))
    for call in (*calls, lambda: pickle.dumps(trained)):
        with pytest.raises(ValueError, match=r"engine: tick 2 failed midway: .*load the last checkpoint"):
            call()
    resumed, _ = Engine.load(tmp_path / "checkpoint")
    whole = engine("full")
    for run in (resumed, whole):
        list(run.run(Feed(10)))
    assert_same_bits(parameters(resumed), parameters(whole))


def test_two_threads_cannot_run_one_engine_and_the_first_is_undisturbed():
    trained, whole, raised = engine(overlap=False), engine(overlap=False), []

    backward = trained.embedding.backward

    def watched(*arguments):
        calls = (
            lambda: next(trained.run(Feed(10))),
            lambda: trained.best([1, 2, 3], 2),
            lambda: trained.evaluate(Feed(2)),
            lambda: pickle.dumps(trained),
        )
        with ThreadPoolExecutor(1) as another:
            raised.extend(another.submit(call).exception() for call in calls if trained.tick == 3)
        backward(*arguments)

    trained.embedding.backward = watched
    list(trained.run(Feed(10)))
    list(whole.run(Feed(10)))
    assert_same_bits(parameters(trained), parameters(whole))
    assert [type(failure) for failure in raised] == [RuntimeError] * 4
    assert all(str(failure).startswith("engine: found a call while another thread's") for failure in raised)


def test_a_run_that_is_left_ends_where_the_next_begins_and_one_that_fails_at_its_end_tears_the_model(monkeypatch):
    trained = engine()
    first = trained.run(Feed())
    next(first)
    next(trained.run(Feed()))
    assert (trained.tick, trained.torn) == (2, None)
    with pytest.raises(RuntimeError, match="engine: found a run that ended when another run"):
        next(first)

    def failed():
        raise OSError("no room")

    monkeypatch.setattr(trained, "_leave", failed)
    with pytest.raises(OSError, match="no room"):
        list(trained.run(Feed(3)))
    assert trained.torn == "tick 3 failed midway: no room"
