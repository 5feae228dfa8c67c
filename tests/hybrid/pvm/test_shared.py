"""Units that ranks share: the numbers of one process, bit for bit. What a rank does is in tests/support/rank_pvm.py.

With them hybrid/pvm/halo.py and hybrid/pvm/joined.py, through which all that ranks tell each other in a tick goes.
"""

import pytest

from tests.support.rank_pvm import CASES
from tests.support.ranks import succeed

MODULE = "tests.support.rank_pvm"


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_results_and_checkpoints_are_those_of_one_process(tmp_path, ranks):
    succeed(MODULE, "equal", tmp_path, "cpu", *CASES, ranks=ranks)


def test_divergence_is_the_same_on_all_ranks(tmp_path):
    succeed(MODULE, "diverges", tmp_path, "cpu", ranks=3)
