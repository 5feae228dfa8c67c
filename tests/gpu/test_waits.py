"""Every wait between two queues is needed: with one of them left out, the simulated driver gives itself away.

Here are tested hybrid/engine/route.py, hybrid/schedule/schedule.py and hybrid/readout/base.py.
"""

import pytest

from gpu.device import DeviceError
from hybrid.engine.route import Route
from hybrid.schedule.schedule import Plan, Stage
from tests import cudasim
from tests.support.placed_engine import Ragged, placed
from tests.support.ruled_engine import Weighed, ruled
from tests.support.small_engine import Feed, engine, parameters

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
ROWS_WAITS = [("gather", "ids in"), *WAITS[2:6]]  # with the rows on the device
RULED_WAITS = [  # with rows and readout on the device, values beside the ids and weights beside the targets
    ("gather", "bag_at in"),
    ("readout", "target in"),
    ("losses out", "readout"),
    ("loss", "losses out"),
]


def rows_on_the_host():
    return engine("tree", device="cuda:0", micro_batches=3), Feed(6)


def rows_on_the_device():
    return placed(micro_batches=3), Feed(6)


def bags_on_the_device():
    return placed(bags=True, micro_batches=3), Ragged(6)


def all_on_the_device():
    return ruled(micro_batches=3), Weighed(6)


@pytest.fixture
def planned(simulated, monkeypatch):
    """Run a few ticks on the device with every stage of the plan changed by a function; the losses and the parameters."""
    plan = Route.plan

    def run(change, seed, make=rows_on_the_host):
        monkeypatch.setattr(
            Route, "plan", lambda *given: Plan(*([change(stage) for stage in part] for part in plan(*given)))
        )
        cudasim.seed(seed)
        trained, feed = make()
        losses = [tick.loss for tick in trained.run(feed)]
        return losses, [array.tobytes() for array in parameters(trained).values()]

    yield run
    cudasim.clear()  # a copy without its wait is a problem that the driver sees, too
    cudasim.heal()  # and an id that has not come yet leads a kernel astray


def without(name, wait):
    """The stage waits for all but one; those that it waits for twice over are left out with it."""
    past = {wait}
    if name in ("forward", "readout", "backward", "scatter"):
        past |= {"gather", "forward", "readout", "backward"}

    def change(stage: Stage) -> Stage:
        return stage._replace(after=tuple(w for w in stage.after if w not in past)) if stage.name == name else stage

    return change


def shows(planned, change, *make) -> bool:
    """Whether, in one of a few orders of completion, numbers are wrong, not finite, or the driver sees a problem."""
    expected = planned(lambda stage: stage, 0, *make)
    for seed in range(8):
        try:
            found = planned(change, seed, *make)
        except (FloatingPointError, DeviceError):
            return True
        if found != expected or cudasim.problems():
            return True
    return False


@pytest.mark.parametrize(("name", "wait"), WAITS)
def test_a_wait_left_out_shows(planned, name, wait):
    assert shows(planned, without(name, wait))


@pytest.mark.parametrize(
    ("make", "name", "wait"),
    [
        *((rows_on_the_device, *pair) for pair in ROWS_WAITS),
        *((all_on_the_device, *pair) for pair in RULED_WAITS),
        (bags_on_the_device, "gather", "bag_at in"),  # after the ids on one queue, so it waits for those too
    ],
)
def test_a_wait_left_out_shows_with_parts_on_the_device(planned, make, name, wait):
    assert shows(planned, without(name, wait), make)


def test_an_update_launched_on_another_queue_than_the_gradient_shows(planned):
    def astray(stage: Stage) -> Stage:
        return stage._replace(queue="copy in", after=()) if stage.name == "update" else stage

    assert shows(planned, astray)
