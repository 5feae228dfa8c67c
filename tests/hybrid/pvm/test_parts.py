"""One checkpoint of many ranks, and the parts of it that each of others reads."""

import pytest

from hybrid.pvm.model import PVM
from tests.support.rank_pvm import made
from tests.support.ranks import succeed
from tests.support.small_pvm import Scene, bytes_of, walk


@pytest.mark.parametrize("case", ["readouts", "two streams, by cost"])
def test_a_checkpoint_goes_on_on_other_numbers_of_ranks(tmp_path, case):
    alone = made(case, "cpu", None)
    for ranks, until in ((4, 5), (3, 6), (7, 9), (1, 10), (2, 12)):
        succeed("tests.support.rank_pvm", "goes_on", tmp_path / "saved", "cpu", case, until, ranks=ranks)
        walk(alone, Scene(until, alone.streams))
        assert bytes_of(PVM.load(tmp_path / "saved")[0]) == bytes_of(alone)


def test_copies_in_memory_go_on_on_the_same_ranks_and_on_one(tmp_path):
    """With each kind of array."""
    cases = ["readouts", "classic, one step", "by range, context to the output"]
    succeed("tests.support.rank_pvm", "remembers", tmp_path, "cpu", *cases, ranks=2)


def test_a_full_disk_is_told_to_all_ranks_and_nothing_is_lost(tmp_path):
    succeed("tests.support.rank_pvm", "full", tmp_path, "cpu", ranks=3)
