"""Bars of what the host does for a tick on a GPU: launches and calls of the driver, exact on any machine."""

import pytest

from bench.gpu_calls import Calls, table
from tests.support.bench_command import measured

# Launches, and calls of the driver, at most. Beside its launch a frame has two events, a wait, and two times between events.
TICKS = {
    "PVM small": (1, 6),
    "PVM small, readouts learn": (1, 6),
    "PVM flat210m": (1, 6),
    "language model, tree of 256 classes on the GPU": (16, 75),
    "units.step 150-49-150": (1, 1),
    "units.step ragged": (3, 3),
    "tree step, 256 classes": (3, 3),
    "rows.gather": (1, 1),
}


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """What the command counts, by tick."""
    _, records = measured("gpu_calls", tmp_path_factory.mktemp("calls"), "--quick")
    return {record.tick: record for record in records}


@pytest.mark.slow
@pytest.mark.parametrize(("tick", "bars"), TICKS.items())
def test_a_tick_takes_few_calls_of_the_driver(counts, tick, bars):
    found, (launches, calls) = counts[tick], bars
    assert found.launches <= launches <= found.calls <= calls
    assert found.host > 0


def test_a_table_has_a_line_a_tick():
    assert table([Calls("PVM small", 1, 6.1, 131.4)]).splitlines()[2] == "| PVM small | 1 | 6.1 | 131 |"
