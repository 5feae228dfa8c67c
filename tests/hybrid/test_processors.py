"""Which processors a process may use, and how they lie: as affinity, cgroups, the user and the system's files say."""

import json
import math
import os
import subprocess
import sys

import pytest

from hybrid import machine

AVAILABLE = "import json; from hybrid.machine import available; print(json.dumps(available()))"


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
    assert found == (expected or math.ceil(min(len(os.sched_getaffinity(0)), machine.quota())))


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
    assert machine.quota(*cgroups(tmp_path, membership, files)) == expected


def test_without_cgroups_there_is_no_limit(tmp_path):
    assert machine.quota(tmp_path / "none", tmp_path / "nothing") == math.inf


def test_less_than_a_processor_is_one_thread(monkeypatch):
    monkeypatch.setattr(machine, "affinity", lambda: [0, 1, 2, 3])
    for quota, expected in ((0.3, 1), (1.2, 2), (7.0, 4)):
        monkeypatch.setattr(machine, "quota", lambda quota=quota: quota)
        assert machine.allowed() == expected
