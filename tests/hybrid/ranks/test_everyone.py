"""What ends all ranks does so where some may be lost, too; tests/hybrid/ranks/test_buddies.py loses some."""

import platform
import re
import signal
import sys

import pytest

from hybrid.ranks.everyone import Member, RankLost
from hybrid.storage import checkpoint
from tests.support.ranks import ended, started

if not sys.platform.startswith("linux"):
    pytest.skip("looks through /proc", allow_module_level=True)

ONE = f"rank 1 on {platform.node()}"


@pytest.mark.parametrize(
    ("what", "exit_code", "said"), [("raise", 1, "RuntimeError: boom"), ("mistake", 2, "no such file")]
)
def test_a_rank_that_fails_ends_all(open_mpi, what, exit_code, said):
    code, out, err = ended(started(what, ranks=4, least=2))
    assert code == exit_code and "met" not in out
    assert said in err and "MPI_ABORT" not in err


def test_a_rank_that_does_not_come_ends_all(open_mpi):
    code, _, err = ended(started("hang", ranks=4, least=2, patience=2))
    assert code == 1
    assert re.search(rf"^{ONE} has not come: it is at \S+rank_toy.py:\d+, in main; waited 2 s", err, re.MULTILINE)


def test_a_rank_that_does_not_come_to_those_that_noticed_a_loss_ends_all(open_mpi):
    code, _, err = ended(started("lost, and one hangs", ranks=4, least=2, patience=2))
    assert code == 1
    assert "ranks are lost, and not all others have come; waited 2 s" in err


def test_a_signal_ends_all_ranks(open_mpi):
    running = started("wait", ranks=2, least=1)
    while running.stdout.readline() != "ready\n":
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    assert ended(running)[0] == 128 + signal.SIGINT


def test_a_killed_rank_is_missed_by_nobody_who_has_ended(open_mpi):
    code, out, err = ended(started("kill at the end", ranks=4, least=2))
    assert (code, "met" in out) == (0, True)
    assert f"{ONE} was killed (signal 9)" in err


@pytest.mark.parametrize("number", [0, 1])
def test_a_model_goes_on_from_its_checkpoint_with_the_numbers_of_one_process(open_mpi, tmp_path, number):
    words = [str(tmp_path / "model"), str(number), "5"]
    running = started(*words, ranks=3, least=2, module="tests.support.rank_lost_pvm")
    code, out, err = ended(running, limit=240.0)  # kernels may be compiled
    assert (code, out) == (0, "from 0 on 3\nfrom 3 on 2\n"), err
    assert f"rank {number} on {platform.node()} was killed (signal 9)" in err
    found, alone = (checkpoint.load(tmp_path / name) for name in ("model", "alone 0"))
    assert found[1] == alone[1] and found[0].keys() == alone[0].keys()
    assert all(found[0][name].tobytes() == array.tobytes() for name, array in alone[0].items())


def test_who_goes_on_knows_who_is_lost():
    loss = RankLost([Member(1, "north"), Member(3, "south")], 2)
    assert str(loss) == "rank 1 on north, rank 3 on south lost; 2 go on"
    assert [member.number for member in loss.lost] == [1, 3]


def test_mpich_cannot_go_on(monkeypatch):
    from hybrid.ranks import launch
    from hybrid.ranks.mpi import MPICH

    monkeypatch.setattr(launch, "starter", lambda program: MPICH)
    with pytest.raises(ValueError, match=r"found MPICH.*hybrid-engine\[elastic\]"):
        launch.launch(["module"], 2, least=1)
