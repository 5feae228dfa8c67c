"""Every wait between two queues is needed: with one of them left out, the simulated driver gives itself away."""

import numpy as np
import pytest

from hybrid.plan import Route
from hybrid.schedule import Plan, Stage
from tests import cudasim
from tests.hybrid.test_engine import Feed, engine, parameters

WAITS = [
    ("x in", "gather"),
    ("forward", "x in"),
    ("hidden out", "forward"),
    ("readout", "hidden out"),
    ("grad in", "readout"),
    ("backward", "grad in"),
    ("x_grad out", "backward"),
    ("scatter", "x_grad out"),
]


@pytest.fixture
def planned(gpu, monkeypatch):
    """Run a few ticks on the device with every stage of the plan changed by a function; the losses and the parameters."""
    if not gpu.simulated:
        pytest.skip("a real device may be lucky")
    plan = Route.plan

    def run(change, seed):
        monkeypatch.setattr(
            Route, "plan", lambda *given: Plan(*([change(stage) for stage in part] for part in plan(*given)))
        )
        cudasim.seed(seed)
        trained = engine("tree", device="cuda:0", micro_batches=2, delay=1)
        losses = [tick.loss for tick in trained.run(Feed(6))]
        return losses, [array.tobytes() for array in parameters(trained).values()]

    yield run
    cudasim.clear()  # a copy without its wait is a problem that the driver sees, too


def without(name, wait):
    """The stage waits for all but one; those that it waits for twice over are left out with it."""
    past = {wait} | (
        {"gather", "forward", "readout", "backward"} if name in ("forward", "readout", "backward", "scatter") else set()
    )
    return lambda stage: (
        stage._replace(after=tuple(w for w in stage.after if w not in past)) if stage.name == name else stage
    )


def shows(planned, change, expected) -> bool:
    """Whether, in one of a few orders of completion, numbers are wrong, not finite, or the driver sees a problem."""
    for seed in range(8):
        try:
            found = planned(change, seed)
        except FloatingPointError:
            return True
        if found != expected or cudasim.problems():
            return True
    return False


@pytest.mark.parametrize(("name", "wait"), WAITS)
def test_a_wait_left_out_shows(planned, name, wait):
    expected = planned(lambda stage: stage, 0)
    assert shows(planned, without(name, wait), expected)


def test_an_update_launched_on_another_queue_than_the_gradient_shows(planned):
    expected = planned(lambda stage: stage, 0)

    def astray(stage: Stage) -> Stage:
        return stage._replace(queue="copy in", after=()) if stage.name == "update" else stage

    assert shows(planned, astray, expected)


def test_with_all_its_waits_the_plan_is_right_in_every_order(planned):
    expected = planned(lambda stage: stage, 0)
    for seed in range(8):
        assert planned(lambda stage: stage, seed) == expected
    assert cudasim.problems() == [] and np.isfinite(expected[0]).all()
