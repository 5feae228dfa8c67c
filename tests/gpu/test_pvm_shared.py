"""Units that ranks share, each rank with a simulated device of its own; see tests/support/rank_pvm.py.

The boundary goes over the host, beside what the device works on, in any order of completion: each rank has another.
"""

import pytest

from tests.support.rank_pvm import CASES
from tests.support.ranks import succeed

MODULE = "tests.support.rank_pvm"
SOME = [case for case in CASES if "float64" not in case]


@pytest.mark.parametrize(
    ("ranks", "cases"),
    [(2, SOME[:1]), (3, SOME[1:2] + SOME[6:8]), pytest.param(4, SOME, marks=pytest.mark.slow)],
)
def test_results_and_checkpoints_are_those_of_one_process(tmp_path, ranks, cases):
    succeed(MODULE, "equal", tmp_path, "cuda:0", *cases, ranks=ranks)


def test_a_checkpoint_of_ranks_with_devices_goes_on_on_cpus(tmp_path):
    succeed(MODULE, "goes_on", tmp_path, "cuda:0", "readouts", 5, ranks=2)
    succeed(MODULE, "goes_on", tmp_path, "cpu", "readouts", 8, ranks=3)
