"""Ranks on one machine take a part of its cores each: real ranks on this machine, and files of others."""

import json
import os
import sys

import pytest

from hybrid import processors
from hybrid.engine.cores import Cores
from hybrid.models import MODELS
from hybrid.ranks import world as ranks
from hybrid.ranks.world import World
from hybrid.train import runs
from tests.support.ranks import ended, started

OURS = len(processors.affinity())
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks through /proc")


@pytest.fixture
def unsaid(monkeypatch):
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def found(ranks):
    """What each rank takes: sharing, turn, cores before, OMP_NUM_THREADS, threads, cores when pinned, the first, the last."""
    code, out, err = ended(started(ranks=ranks, module="tests.support.rank_cores"), limit=90)  # each imports Numba
    assert code == 0, err
    return json.loads(out)


@linux
def test_a_rank_takes_its_part_of_the_threads_and_of_the_cores(unsaid, ranks=2):
    every = found(ranks)
    for turn, (sharing, own_turn, before, said, threads, kept, _, _) in enumerate(every):
        assert (sharing, own_turn, before) == (ranks, turn, OURS)  # free to run anywhere, unless it is pinned
        assert said == (max(1, processors.allowed() // ranks) if ranks > 1 else 0)
        assert threads == max(1, processors.allowed() // ranks)
        assert kept == max(1, (turn + 1) * OURS // ranks - turn * OURS // ranks)
    assert len({first for *_, first, _ in every}) == min(ranks, OURS)


@linux
def test_ranks_that_their_launcher_gave_cores_of_their_own_do_not_share_them_again(unsaid):
    unsaid.setenv("HYDRA_BINDING", "core")  # MPICH's mpiexec --bind-to core
    every = found(2)
    if every[0][2] == OURS > 1:
        pytest.skip("this mpiexec binds no ranks")
    assert [rank[:6] for rank in every] == [[1, 0, 1, 0, 1, 1]] * 2 or OURS == 1


@linux
def test_what_the_user_says_is_said_to_each_rank(unsaid):
    unsaid.setenv("OMP_NUM_THREADS", "64")
    assert [rank[3:5] for rank in found(2)] == [[64, processors.allowed()]] * 2


@pytest.mark.parametrize(
    "cores, quota, sharing, expected", [(64, 1e9, 4, "16"), (64, 6.0, 4, "1"), (8, 1e9, 3, "2"), (2, 1e9, 4, "1")]
)
def test_a_part_of_the_threads_is_of_the_cores_and_of_the_quota(unsaid, cores, quota, sharing, expected):
    unsaid.setattr(processors, "affinity", lambda: list(range(cores)))
    unsaid.setattr(processors, "quota", lambda: quota)
    ranks.take_threads(World(1, sharing, "north", 1, sharing, 1))
    assert os.environ.pop("OMP_NUM_THREADS") == expected
    ranks.take_threads(World(0, 1, "north"))
    assert "OMP_NUM_THREADS" not in os.environ


class Device:
    """A device of the CPU that tells the cores which its queues are given."""

    threads = True

    def __init__(self):
        self.given = {}

    def queue(self, name, threads, cores):
        self.given[name] = cores

    def inline(self, name, threads):
        return None


@pytest.mark.parametrize(
    "nodes, sharing, turn, threads, dense, sparse, feed",
    [
        ([range(8), range(8, 16)], 1, 0, 16, range(7), range(8, 16), [7]),  # nobody has cores of two nodes
        ([range(8), range(8, 16)], 2, 1, 8, range(8, 11), range(12, 16), [11]),  # the second rank has the second node
        ([range(8), range(8, 16)], 4, 1, 4, [4], [6, 7], [5]),
        ([range(3), range(3, 6), range(6, 9)], 1, 0, 9, [0, 1, 2, 3], [5, 6, 7, 8], [4]),  # no node has enough
        ([range(4)], 2, 0, 4, [0], None, [1]),  # more threads than cores: all keep to the rank's, some to some of them
    ],
)
def test_queues_keep_to_cores_of_one_node_of_their_rank(
    monkeypatch, nodes, sharing, turn, threads, dense, sparse, feed
):
    kept = []
    ranks._own.cache_clear()
    monkeypatch.setattr(ranks, "by_node", lambda: [list(node) for node in nodes])
    monkeypatch.setattr(ranks, "keep_to", kept.append)
    monkeypatch.setattr(ranks, "world", lambda: World(turn, sharing, "north", turn, sharing, turn))
    device = Device()
    Cores(device, device, threads, True, pin=True)
    ranks._own.cache_clear()
    expected = {"dense": dense, "sparse": sparse, "feed": feed}
    assert device.given == {name: cores and list(cores) for name, cores in expected.items()}
    every = [core for node in nodes for core in node]
    begin, end = turn * len(every) // sharing, (turn + 1) * len(every) // sharing
    assert kept == [every[begin:end]]


@pytest.mark.parametrize("kind", MODELS.names())
def test_a_run_of_every_model_keeps_to_its_cores_when_asked(monkeypatch, kind):
    def pinned():
        raise RuntimeError("pinned")

    monkeypatch.setattr(runs, "take_cores", pinned)
    with pytest.raises(RuntimeError, match="pinned"):
        runs.start({"kind": kind, "pin": True, "out": "nowhere"})
