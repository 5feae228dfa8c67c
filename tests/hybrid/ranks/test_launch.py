"""Ranks are started, told apart, and ended whatever happens to one of them. (hybrid/ranks/process.py too)"""

import platform
import re
import signal
import sys

import pytest

from hybrid.ranks import launch
from tests.support.ranks import ended, gone, started

if not sys.platform.startswith("linux"):
    pytest.skip("looks through /proc", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("mpi")
ONE = f"rank 1 on {platform.node()}"


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_run_and_rank_0_speaks_for_all(ranks):
    code, out, err = ended(started("nothing", ranks=ranks))
    assert code == 0
    assert out.splitlines() == [f"0 of {ranks}, here 0, mpi True", "met"]
    assert re.fullmatch(r"(rank \d on \S+: )?a note of all\n", err)


@pytest.mark.parametrize("ranks", [2, 4])
def test_an_exception_in_one_rank_ends_all(ranks):
    code, out, err = ended(started("raise", ranks=ranks))
    assert code == 1 and "met" not in out
    assert err.count(f"{ONE}: RuntimeError: boom") == 1 == err.count("boom\n")
    assert "Abort" not in err


def test_a_mistake_of_the_users_is_one_line():
    code, _, err = ended(started("mistake", ranks=2))
    assert code == 2
    assert [line for line in err.splitlines() if "note" not in line] == [f"{ONE}: hybrid: error: no such file"]


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_killed_rank_is_named(ranks):
    code, out, err = ended(started("kill", ranks=ranks))
    assert code == 128 + signal.SIGKILL
    assert [line for line in err.splitlines() if "note" not in line] == [f"{ONE} was killed (signal 9)"]
    assert "BAD TERMINATION" not in out and "met" not in out


def test_nothing_is_left_when_a_ranks_keeper_is_killed():
    assert ended(started("kill keeper", ranks=2))[0] != 0


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_rank_that_does_not_come_is_named_with_its_line(ranks):
    code, _, err = ended(started("hang", ranks=ranks, patience=2))
    assert code == 1
    assert re.search(rf"^{ONE} has not come: it is at \S+rank_toy.py:\d+, in main; waited 2 s", err, re.MULTILINE)
    assert err.count("has not come") == 1


def test_a_rank_that_had_no_message_in_an_exchange_has_come():
    code, _, err = ended(started("hang after messages of others", ranks=3, patience=2))
    assert code == 1
    assert re.search(rf"^{ONE} has not come: ", err, re.MULTILINE) and err.count("has not come") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_ranks(number):
    running = started("wait", ranks=2)
    while running.stdout.readline() != "ready\n":
        assert running.poll() is None
    running.send_signal(number)
    code, _, err = ended(running)
    assert code == 128 + number
    assert "killed" not in err


def test_nothing_is_left_when_the_launcher_is_killed():
    running = started("wait", ranks=2)
    while running.stdout.readline() != "ready\n":
        assert running.poll() is None
    running.kill()
    running.wait()
    assert gone(running) == []
    running.communicate()


def test_without_mpi_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(launch, "mpiexec", lambda: None)
    with pytest.raises(ValueError, match=r"pip install 'hybrid-engine\[mpi\]'"):
        launch.launch(["module"], 2)


def test_a_file_of_hosts_that_is_not_there():
    with pytest.raises(FileNotFoundError):
        launch.launch(["module"], 2, hosts="no such file")


def test_what_several_ranks_say_is_said_once_and_what_one_says_twice_is_said_twice(capsys):
    """As a chained traceback does, whose lines come again; who gives no name may be any rank."""
    told = ["rank 0: a", "rank 0: a", "rank 1 on h: a", "rank 1 on h: b", "rank 2 on h: b", "rank 2 on h: b", "c", "c"]
    assert launch._say((f"{line}\n" for line in told), passed=[], limit=None) == 0
    assert capsys.readouterr().err.splitlines() == ["a", "a", "rank 1 on h: b", "rank 2 on h: b", "c"]
