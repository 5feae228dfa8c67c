"""Memory and processors as the system tells them."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid import machine
from hybrid.cli import main
from hybrid.train import runs

ROOT = Path(__file__).parents[2]

LIMITS = [("-v", 300_000, 2097152, ""), ("-d", 300_000, 1048576, "")]
LIMITS += [("-v", 4_000_000, 5242880, "--trunk attention"), ("-d", 1_300_000, 1572864, "--trunk attention")]


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit is Linux's")
@pytest.mark.parametrize(("option", "kibibytes", "least", "more"), LIMITS)
def test_a_limit_of_memory_below_what_libraries_need_is_refused_by_name(tmp_path, option, kibibytes, least, more):
    """By themselves they hang, end the process or fail to load, as the limit falls."""
    (tmp_path / "text").write_text("some words of a text\n" * 20)
    command = f"{sys.executable} -m hybrid train language --text text --quiet --out run {more}"
    limited = ["bash", "-c", f"ulimit {option} {kibibytes}; exec {command}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(limited, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    expected = f"found {kibibytes} KiB, expected at least {least}; ulimit {option} unlimited lifts it\n"
    assert (done.returncode, done.stderr) == (2, f"hybrid: error: out of memory: ulimit {option}: {expected}")


def test_threads_that_cannot_be_started_are_one_line(monkeypatch, capsys):
    def start(options, ranks):
        raise RuntimeError("can't start new thread")  # as Python says it

    monkeypatch.setattr(runs, "start", start)
    command = ["train", "language", "--text", "text.txt"]
    assert main(command) == 2
    assert "the system starts no more threads; lower --threads, or raise ulimit -u or -v\n" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="can't start"):
        main(["--debug", *command])


AVAILABLE = "import json; from hybrid.machine import available; print(json.dumps(available()))"


def started(code: str, cores=None, **said: str):
    """What a fresh process, told so by its environment and on these cores, prints as JSON."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")} | said
    restrict = f"import os; os.sched_setaffinity(0, {cores})\n" if cores else ""
    done = subprocess.run([sys.executable, "-c", restrict + code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("said, expected", [({}, None), ({"NUMBA_NUM_THREADS": "1"}, 1), ({"OMP_NUM_THREADS": "1"}, 1)])
def test_as_many_threads_as_the_environment_and_the_affinity_allow(said, expected):
    found = started(AVAILABLE, **said)
    assert found == (expected or math.ceil(min(len(os.sched_getaffinity(0)), machine.quota())))
    assert started(AVAILABLE, cores={min(os.sched_getaffinity(0))}) == 1


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
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "membership").write_text(membership)
    assert machine.quota(tmp_path / "cgroup", tmp_path / "membership") == expected


def test_less_than_a_processor_is_one_thread(monkeypatch):
    monkeypatch.setattr(machine, "affinity", lambda: [0, 1, 2, 3])
    for quota, expected in ((0.3, 1), (1.2, 2), (7.0, 4)):
        monkeypatch.setattr(machine, "quota", lambda quota=quota: quota)
        assert machine.allowed() == expected
