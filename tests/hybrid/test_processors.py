"""Which processors a process may use, and how they lie: as affinity, cgroups, the user and the system's files say."""

import json
import math
import os
import subprocess
import sys

import pytest

from hybrid import processors

AVAILABLE = "import json; from hybrid.processors import available; print(json.dumps(available()))"


def started(code: str, cores=None, **said: str):
    """What a fresh process, told so by its environment and on these cores, prints as JSON."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")} | said
    restrict = f"import os; os.sched_setaffinity(0, {cores})\n" if cores else ""
    done = subprocess.run([sys.executable, "-c", restrict + code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("said, expected", [({}, None), ({"NUMBA_NUM_THREADS": "1"}, 1), ({"OMP_NUM_THREADS": "1"}, 1)])
def test_as_many_threads_as_the_environment_allows(said, expected):
    found = started(AVAILABLE, **said)
    assert found == (expected or math.ceil(min(len(os.sched_getaffinity(0)), processors.quota())))


def test_as_many_threads_as_the_affinity_allows():
    one = {min(os.sched_getaffinity(0))}
    assert started(AVAILABLE, cores=one) == 1


def cgroups(folder, membership: str, files: dict[str, str]):
    """A file system of control groups, and what a process finds in its own cgroup file."""
    for name, text in files.items():
        path = folder / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "membership").write_text(membership)
    return folder / "cgroup", folder / "membership"


@pytest.mark.parametrize(
    "membership, files, expected",
    [
        ("0::/\n", {"cpu.max": "max 100000\n"}, math.inf),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2),  # the parent's holds too
        ("0::/a/b\n", {"a/b/cpu.max": "50000 100000\n", "a/cpu.max": "200000 100000\n"}, 0.5),
        ("0::/not/there\n", {"cpu.max": "300000 100000\n"}, 3),  # in a container the path is the host's
        ("1:cpu:/a\n0::/a\n", {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"}, 2.5),
        ("2:memory:/a\n1:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"}, 2.5),
    ],
)  # fmt: skip
def test_the_quota_of_processors_is_the_cgroups(tmp_path, membership, files, expected):
    assert processors.quota(*cgroups(tmp_path, membership, files)) == expected


def machine(folder, nodes: list[str], cores: int, siblings: int = 0):
    """A machine's files: the cores of each node, as the system lists them; hardware threads `siblings` apart share a core."""
    for number, listed in enumerate(nodes):
        (folder / "node" / f"node{number}").mkdir(parents=True)
        (folder / "node" / f"node{number}" / "cpulist").write_text(f"{listed}\n")
    (folder / "node" / "online").mkdir(parents=True)  # is no node
    for core in range(cores if siblings else 0):
        topology = folder / "cpu" / f"cpu{core}" / "topology"
        topology.mkdir(parents=True)
        first = core % siblings
        (topology / "thread_siblings_list").write_text(f"{first},{first + siblings}\n")
    return folder


@pytest.mark.parametrize(
    "nodes, siblings, ours, expected",
    [
        (["0-3", "4-7"], 0, range(8), [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (["0-1,4-5", "2-3,6-7"], 4, range(8), [[0, 4, 1, 5], [2, 6, 3, 7]]),  # hardware threads of a core side by side
        (["0-3", "4-7"], 0, [1, 6, 7], [[1], [6, 7]]),  # those of the affinity alone
        (["0-3", "", "4-7"], 0, [4, 5], [[4, 5]]),  # a node of memory without cores, one that is another's
        (["", "", "0", *[""] * 7, "1"], 0, range(2), [[0], [1]]),  # node 10 comes after node 2
    ],
)  # fmt: skip
def test_cores_by_the_nodes_of_a_machine(tmp_path, monkeypatch, nodes, siblings, ours, expected):
    monkeypatch.setattr(processors, "affinity", lambda: list(ours))
    assert processors.by_node(machine(tmp_path, nodes, 8, siblings)) == expected


@pytest.mark.parametrize(
    "parts, expected",
    [
        (1, [[[0, 1, 2, 3], [4, 5, 6, 7]]]),
        (2, [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]),
        (3, [[[0, 1]], [[2, 3], [4]], [[5, 6, 7]]]),
        (4, [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]]),
    ],
)
def test_parts_of_the_cores_have_none_in_common(parts, expected):
    assert [processors.part([[0, 1, 2, 3], [4, 5, 6, 7]], place, parts) for place in range(parts)] == expected
