"""Collections of MLPs on the device, against the oracle that the CPU is held to as well."""

import numpy as np
import pytest

from bench.oracles import units as oracle
from bench.oracles.units import ACTIVATIONS, RAGGED, close
from gpu import units
from gpu.plan import Plan
from hybrid import Units
from hybrid.units import unit_layout
from tests.support.units import MANY, WARPS, Case, check_forward_and_backward, check_step

EQUAL = [7, 7, 7], [5, 5, 5], [6, 6, 6]  # one batch of equal GEMMs
ALONE = [7], [5], [6]
WIDE = [300] * 32, [290] * 32, [3] * 32


@pytest.mark.parametrize(
    ("batch", "sizes", "activation"),
    [
        *((5, WARPS, activation) for activation in ACTIVATIONS),
        *((batch, MANY, "tanh") for batch in (1, 16, 40)),
        *((batch, sizes, "logistic") for batch, sizes in ((17, WARPS), (5, EQUAL), (5, ALONE))),
    ],
)
def test_forward_and_backward(gpu, batch, sizes, activation):
    check_forward_and_backward(Case(batch, sizes=sizes).on(gpu), activation, 64)


@pytest.mark.parametrize("batch", [1, 5])
def test_sums_of_columns_of_which_there_are_more_than_warps_take_turns(gpu, batch):
    check_forward_and_backward(Case(batch, sizes=WIDE).on(gpu), "tanh", 300)


@pytest.mark.parametrize("sizes", [MANY, WARPS])
def test_backward_without_x_grad(gpu, sizes):
    found = []
    for x_grad in (True, False):
        case = Case(5, sizes=sizes).on(gpu)
        case.forward("tanh")
        case.backward("tanh", x_grad)
        found.append(case.get("weight_grad").tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("batch", "sizes", "momentum", "activation"),
    [
        *((batch, WARPS, momentum, "tanh") for batch in (1, 3, 16, 17) for momentum in (0, 0.9)),
        *((1, RAGGED, 0.9, activation) for activation in ACTIVATIONS),
        (33, MANY, 0, "logistic"),
    ],
)
def test_step(gpu, batch, sizes, momentum, activation):
    check_step(Case(batch, momentum, sizes).on(gpu), activation)


@pytest.mark.parametrize(
    ("room", "kinds"), [(1000, set()), (5000, {"part", "whole"}), (7500, {"part", "whole"}), (30000, {"whole"})]
)
@pytest.mark.parametrize("batch", [1, 2])
def test_units_that_do_not_fit_are_held_in_part(gpu, monkeypatch, batch, room, kinds):
    """Shared memory so small that all, the tail, or nothing of a unit's weights is held, or not even its signals.

    Two examples of a unit whose weights do not fit take GEMMs.
    """
    monkeypatch.setattr(gpu.device, "shared_block", room)
    case = Case(batch, 0.9, ([70, 3, 130], [21, 4, 5], [30, 3, 40])).on(gpu)
    assert {bin.kind for bin in case.plan.bins(batch) or []} == (kinds if batch == 1 or kinds == {"whole"} else set())
    check_step(case, "logistic")


def test_the_cut_is_between_two_rows_and_as_far_ahead_as_fits():
    """A unit of 10 inputs, 4 hidden, 3 outputs: first 40, first bias 4, second 12, second bias 3: 59 numbers."""

    class Sizes:
        sizes = (np.array([10] * 6), np.array([4] * 6), np.array([3] * 6))

    room = np.array([0, 3, 7, 18, 19 + 10, 59])
    # nothing but the last bias fits; one row of the second; ... ; two rows of the first; all
    assert Plan._cut(Sizes, np.arange(6), room).tolist() == [56, 56, 52, 44, 30, 0]


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("momentum", [0, 2])
def test_step_is_exact_on_small_integers(gpu, batch, momentum):
    """Sums of products of small whole numbers are exact in float32, and relu keeps them: no tolerance is needed."""
    rng = np.random.default_rng(0)
    case = Case(batch, momentum, WARPS)
    for name in ("weights", "velocity", "x", "target"):
        array = case.host[name]
        if array is not None:
            array[:] = rng.integers(-1, 2, array.shape) * (rng.random(array.shape) < 0.2)
    case.rate = 1.0
    host = case.on(gpu).host
    hidden, y = oracle.forward(case.layout, host["weights"], host["x"], "relu")
    given = hidden, y, host["x"], host["target"], 1.0, momentum, "relu"
    _, weights, _ = oracle.step(case.layout, host["weights"], host["velocity"], *given)
    case.step("relu")
    np.testing.assert_array_equal(case.get("y"), y)
    np.testing.assert_array_equal(case.get("weights"), weights)


@pytest.mark.parametrize("batch", [1, 3, 17])
def test_two_runs_give_the_same_bytes(gpu, batch):
    def run():
        case = Case(batch, 0.9, WARPS).on(gpu)
        case.forward("logistic")
        case.backward("logistic")
        case.update(0.01, 0.9)
        case.step("logistic")
        return map(case.get, ("weights", "velocity", "loss", "y", "hidden_grad", "x_grad"))

    gpu.check_same_bytes(run)


@pytest.mark.parametrize("batch", [1, 17])
def test_nan_stays_visible(gpu, batch):
    case = Case(batch, sizes=WARPS)
    case.host["x"][0, 0] = np.nan
    case.on(gpu).step("relu")
    loss = case.get("loss")
    assert np.isnan(loss[0]) and np.isfinite(loss[1:]).all()


def test_the_plan_says_which_variants_run(gpu):
    plan = gpu.run(units.plan, unit_layout([150] * 3 + [1500], [49] * 3 + [60], [150] * 3 + [200]))
    assert [(each.kind, each.many) for each in plan.bins(1)] == [("whole", 3), ("part", 1)]


@pytest.mark.parametrize(("batch", "momentum"), [(1, 0.9), (3, 0)])
def test_units_larger_than_shared_memory(gpu, batch, momentum):
    """As large as the largest of a vision model: rows that are not held are read twice."""
    case = Case(batch, momentum, ([1501, 701, 400], [60, 80, 49], [300, 300, 150])).on(gpu)
    bins = case.plan.bins(batch)
    assert ("part", 2) in [(each.kind, each.many) for each in bins] if batch == 1 else bins is None
    check_step(case, "logistic")


def test_no_grid_is_larger_than_a_device_takes(gpu, monkeypatch):
    """A layer of 257 x 257 units, by products of matrices: only the first number of a grid may exceed 65,535."""
    grids = {}
    monkeypatch.setattr(
        units.kernels, "launch", lambda file, name, kinds, grid, *rest, **more: grids.update({name: grid})
    )
    monkeypatch.setattr(units.blas, "gemm", lambda *matrices, **options: None)
    case = Case(17, sizes=([1] * 257**2, [1] * 257**2, [1] * 257**2)).on(gpu)
    case.step("logistic")
    case.backward("logistic")
    assert grids.keys() >= {"finish", "bias", "miss", "times_slope"}
    assert grids["finish"][0] == grids["bias"][0] == 257**2
    for grid in grids.values():
        assert isinstance(grid, int) or max(grid[1:]) <= 65535


@pytest.mark.parametrize("sizes", [MANY, ([150] * 3, [49] * 3, [150] * 3)])
def test_shared_memory_has_the_room_that_the_plan_counts_on(gpu, sizes):
    """Whether a block asks for more than every kernel may have, or less: the driver does not guess."""
    import pycuda.driver as driver

    Case(1, sizes=sizes).on(gpu).step("tanh")
    kernel = gpu.device.modules[f"{units.__file__}:step_whole"].kernel
    assert kernel.get_attribute(driver.function_attribute.PREFERRED_SHARED_MEMORY_CARVEOUT) == 100


@pytest.mark.parametrize("batch", [1, 4])
def test_the_front_door_learns_as_on_the_cpu(gpu, batch, tmp_path):
    made = {device: Units(5, *RAGGED, momentum=0.5, device=device) for device in ("cpu", "cuda:0")}
    x, target = (np.random.default_rng(0).random((batch, size), np.float32) for size in (255, 353))
    rates = np.linspace(0, 0.5, 5)
    for rate in (0.1, rates):
        losses = [one.step(x, target, rate) for one in made.values()]
        close(losses[1], losses[0], np.float32, 150)
    close(made["cuda:0"](x), made["cpu"](x), np.float32, 150)
    for rate in (None, 0.1):  # along any gradient, too
        gradients = [one.backward(x, target - 0.5, rate) for one in made.values()]
        close(gradients[1], gradients[0], np.float32, 150)
    close(made["cuda:0"].weights, made["cpu"].weights, np.float32, 150)
    made["cuda:0"].save(tmp_path / "units.npz")
    again = Units.load(tmp_path / "units.npz", device="cuda:0")
    losses = [one.step(x, target, rates) for one in (again, made["cuda:0"])]
    assert losses[0].tobytes() == losses[1].tobytes()
    assert again.weights.tobytes() == made["cuda:0"].weights.tobytes()
