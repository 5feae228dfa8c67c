"""Ranks that are killed are gone on without: from a copy in memory, with the bytes of a run that began there.

(hybrid/ranks/everyone.py too)
"""

import hashlib
import re
import sys

import numpy as np
import pytest

from hybrid.ranks.buddies import Buddies
from hybrid.ranks.group import Group
from tests.support import rank_elastic
from tests.support.ranks import ended, started

if not sys.platform.startswith("linux"):
    pytest.skip("looks through /proc", allow_module_level=True)

STEP, TICKS = 5, 40


@pytest.fixture
def survive(open_mpi, tmp_path):
    """Starts 4 ranks of the toy, of which some are killed; returns exit code, stdout and stderr."""

    def run(*kills, least=2):
        (tmp_path / "killed").unlink(missing_ok=True)
        words = [str(STEP), str(TICKS), str(tmp_path / "killed"), *kills]
        return ended(started(*words, ranks=4, least=least, patience=20, module="tests.support.rank_elastic"), limit=60)

    return run


def test_a_process_alone_has_its_own_copy_and_asks_nobody():
    alone, arrays = Group(alone=True), [np.arange(3), np.ones((2, 2), np.float32)]
    buddies = Buddies(alone)
    buddies.keep(4, arrays)
    arrays[0][:] = 7
    [part] = buddies.parts(alone)
    assert buddies.tick == 4 and [one.tolist() for one in part] == [[0, 1, 2], [1, 1, 1, 1]]
    assert buddies._kept.data.size == 0


def restarted(out: str) -> str:
    """The sum that ranks come to which begin anew, as many of them, at each tick at which the run went on."""
    begun = [(int(tick), int(ranks)) for tick, ranks in re.findall(r"from (\d+) on (\d)\n", out)]
    known = {0: rank_elastic.beginning()}
    for tick, ranks in begun:
        numbers = known[tick]
        for now in range(tick, TICKS):
            ring = np.concatenate([numbers[-1:], numbers, numbers[:1]])
            numbers = known[now + 1] = rank_elastic.moved(ring, now, ranks)
    return hashlib.sha256(known[TICKS].tobytes()).hexdigest()


def sound(code: int, out: str, err: str, killed: set[int]) -> None:
    """All went on without those that were killed, to the sum of ranks that begin anew."""
    assert code == 0, (out, err)
    assert set(map(int, re.findall(r"rank (\d) on \S+ was killed \(signal 9\)", err))) == killed
    said = " ".join(re.findall(r"(?:rank \d on \S+: )?(.*) lost; \d go on", err))
    lost = set(map(int, re.findall(r"rank (\d) on", said)))
    assert lost <= killed  # one that is killed at its end is missed by nobody
    assert f"sum {restarted(out)}" in out, (out, err)
    assert all(float(seconds) < 2 for seconds in re.findall(r"after (\S+)", out)), out


@pytest.mark.parametrize("place", rank_elastic.PLACES)
def test_ranks_go_on_without_one_that_is_killed(survive, place):
    tick = 14 if place == "kept" else 12
    code, out, err = survive(f"{tick}.{place}.2")
    sound(code, out, err, {2})
    kept = {"kept": "15", "sometime": r"(10|15|20|25|30|35|40)"}.get(
        place, "10"
    )  # ticks are short beside a timer's delay
    assert re.search(rf"from {kept} on 3\n", out)


def test_the_next_rank_speaks_where_rank_0_is_killed(survive):
    code, out, err = survive("7.started.0")
    sound(code, out, err, {0})
    assert "from 5 on 3\n" in out


def test_one_after_another_and_two_at_once(survive):
    code, out, err = survive("7.started.3", "22.after.1")
    sound(code, out, err, {1, 3})
    code, out, err = survive("31.before.0", "31.before.1")
    sound(code, out, err, {0, 1})


def test_a_rank_and_its_buddy(survive):
    code, _, err = survive("31.before.0", "31.before.2")
    assert code == 1
    assert "rank 0 on" in err and "which had a copy of its part: go on from a checkpoint" in err


def test_too_few_are_left(survive):
    code, out, err = survive("7.started.3", "22.after.1", least=3)
    assert code == 128 + 9
    assert "2 of 4 ranks are left, expected 3 or more: all are ended\n" in err and "sum" not in out


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_random_kills(survive, seed):
    """Of one rank or of two that are not each other's buddies, at random ticks and places."""
    draw = np.random.default_rng(seed)
    first, kills = draw.integers(4), []
    killed = {int(number % 4) for number in range(first, first + draw.integers(1, 3))}
    for number in killed:
        tick, place = draw.integers(TICKS), draw.choice(rank_elastic.PLACES)
        kills.append(f"{tick // STEP * STEP + STEP - 1 if place == 'kept' else tick}.{place}.{number}")
    sound(*survive(*kills), killed)


def test_a_process_alone_keeps_a_copy():
    group = Group()
    copies, array = Buddies(group), np.arange(6).reshape(2, 3)
    copies.keep(4, [array, array[:0]])
    array[:] = 0
    ((whole, none),) = copies.parts(group)
    assert (copies.tick, whole.tolist(), none.size) == (4, [0, 1, 2, 3, 4, 5], 0)
