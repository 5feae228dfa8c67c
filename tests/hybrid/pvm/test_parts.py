"""One checkpoint of many ranks, and the parts of it that each of others reads."""

from hybrid.pvm.model import PVM
from tests.support.rank_pvm import made
from tests.support.ranks import succeed
from tests.support.small_pvm import Scene, bytes_of, walk


def test_a_checkpoint_goes_on_on_other_numbers_of_ranks(tmp_path):
    case = "readouts"
    alone = made(case, "cpu", None)
    for ranks, until in ((4, 5), (1, 7), (3, 12)):
        succeed("tests.support.rank_pvm", "goes_on", tmp_path / "saved", "cpu", case, until, ranks=ranks)
        walk(alone, Scene(until, alone.streams))
        assert bytes_of(PVM.load(tmp_path / "saved")[0]) == bytes_of(alone)


def test_a_full_disk_is_told_to_all_ranks_and_nothing_is_lost(tmp_path):
    succeed("tests.support.rank_pvm", "full", tmp_path, "cpu", ranks=2)
