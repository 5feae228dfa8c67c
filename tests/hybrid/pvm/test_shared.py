"""Units that ranks share: the numbers of one process, bit for bit. What a rank does is in tests/support/rank_pvm.py.

With them hybrid/mpi/pvm.py and hybrid/mpi/pvm.py, through which all that ranks tell each other in a tick goes.
"""

import filecmp

import pytest

from tests.support.rank_pvm import CASES
from tests.support.ranks import succeed

MODULE = "tests.support.rank_pvm"


@pytest.mark.parametrize("ranks", [2, 4])
def test_results_and_checkpoints_are_those_of_one_process(tmp_path, ranks):
    succeed(MODULE, "equal", tmp_path, "cpu", *CASES, ranks=ranks)


def test_divergence_is_the_same_on_all_ranks(tmp_path):
    succeed(MODULE, "diverges", tmp_path, "cpu", ranks=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small", "flat210m"])
def test_presets_learn_the_same_on_any_number_of_ranks(tmp_path, name):
    """At the sizes that people use: parameters, errors and the checkpoint, to the byte."""
    for ranks in (1, 2, 4):
        succeed(MODULE, "preset", tmp_path / str(ranks), "cpu", name, 12, ranks=ranks)
    files = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert [name.split("-")[0] for name in files] == ["checkpoint.json", "errors.npy", "tensors"]
    for ranks in (2, 4):
        same, differ, missing = filecmp.cmpfiles(tmp_path / "1", tmp_path / str(ranks), files, shallow=False)
        assert sorted(same) == files, (differ, missing)
