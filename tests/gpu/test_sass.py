"""Kernels that wait for memory ask for several numbers before they wait for the first."""

import pytest

from gpu.runtime import kernels
from tests.gpu import ptxas, sass

ARCHITECTURES = pytest.mark.parametrize(
    "architecture", [pytest.param(ptxas.ARCHITECTURES[0], marks=pytest.mark.slow), "sm_90"]
)


@pytest.fixture(scope="module")
def tools():
    """The real nvcc and nvdisasm, or the reason why one is missing."""
    try:
        return ptxas.real_nvcc(), sass.disassembler()
    except OSError as error:
        pytest.skip(str(error))


@ARCHITECTURES
@pytest.mark.parametrize(
    ("file", "least"),
    [
        ("units.cu", {"add": 2, "times_slope": 2}),
        # of 16 bytes each; of a row that is met often 32 numbers of gradients, and the places after them
        ("rows.cu", {"gather": 8, "gather_mean": 8, "scatter": 32, "scatter_squared": 32}),
        ("sort.cu", {"rank": 4, "pass": 8}),
        ("batch_rows.cu", {"move": 8, "sum_columns": 8}),
        ("optimiser.cu", {"adam": 4}),
        # weights of four rows, velocities, and both inputs; without velocities a delta, too
        (
            "pvm.cu",
            {"tick_one": 12 + 6 + 1, "tick_one_momentum": 8 + 8 + 4, "tick_many": 8 + 8, "tick_many_momentum": 8 + 16},
        ),
        # four examples, each with its entry and its share of the hidden vector
        ("tree_softmax.cu", {"learn_4": 20, "learn_8": 36, "learn_4_ruled": 20}),
    ],
)
def test_loads_are_under_way_together(tools, file, least, architecture):
    found = sass.code(kernels.HERE / file, architecture, *tools)
    counted = {name: sass.loads_in_flight(found[name]) for name in least}
    assert all(counted[name] >= least[name] for name in least), counted


@pytest.mark.parametrize(
    ("file", "kernel", "store", "weights", "products", "most"),
    [
        ("units.cu", "step_whole", "STS", 10, 1, 4.0),  # five chunks of columns learn
        ("units.cu", "step_whole", "STS", 8, 2, 6.2),  # two are pulled back through and learn
        ("pvm.cu", "tick_one", "STG", 20, 2, 7.3),  # five are multiplied and learn; the sums of four rows besides
        ("pvm.cu", "tick_one", "STG", 8, 2, 12.3),  # two that stay in shared memory, likewise
    ],
)
def test_a_weight_takes_few_instructions(tools, file, kernel, store, weights, products, most):
    """In the innermost loop that moves so many weights a lane."""
    loops = sass.loops(sass.code(kernels.HERE / file, "sm_90", *tools)[kernel])
    own = [one["all"] for one in loops if (one[store], one["FFMA"]) == (weights, products * weights)]
    assert own and min(own) <= most * weights, loops


@ARCHITECTURES
@pytest.mark.parametrize("kernel", ["tick_one", "tick_one_momentum"])
def test_errors_are_pulled_back_through_eight_rows_at_a_time(tools, kernel, architecture):
    """Eight weights and as many deltas, in a phase of the tick that is not that of its dense layers."""
    lines = sass.code(kernels.HERE / "pvm.cu", architecture, *tools)[kernel]
    phases = [sass.loads_in_flight(phase.splitlines()) for phase in "\n".join(lines).split("BAR.SYNC")]
    assert len([loads for loads in phases if loads >= 16]) >= 2, phases
