"""Memory as the system tells it, and the CPU part on a system that offers less than Linux: no locks, no affinity."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.cli import main
from hybrid.train import runs

ROOT = Path(__file__).parents[2]

# What macOS or Windows lack is taken away before hybrid is imported. A folder cannot be opened as a file there.
LESS = """
import os, signal, sys
for name in ("fcntl", "resource"):
    sys.modules[name] = None
for name in ("sched_getaffinity", "sched_setaffinity", "sysconf", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "getuid"):
    delattr(os, name)
del signal.SIGHUP
real = os.open
def refusing(path, *more, **named):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    return real(path, *more, **named)
os.open = refusing
from hybrid.cli import main
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is Linux's")
@pytest.mark.parametrize("kibibytes", [300_000])
def test_a_limit_of_memory_below_what_libraries_need_is_refused_by_name(kibibytes):
    """By themselves they hang, end the process or fail to load, as the limit falls."""
    limited = ["bash", "-c", f"ulimit -v {kibibytes}; exec {sys.executable} -m hybrid.cli train language --text x"]
    done = subprocess.run(limited, cwd=ROOT, capture_output=True, text=True, timeout=60)
    expected = f"ulimit -v: found {kibibytes} KiB, expected at least 2097152; ulimit -v unlimited lifts it\n"
    assert (done.returncode, done.stderr) == (2, f"hybrid: error: out of memory: {expected}")


def test_threads_that_cannot_be_started_are_one_line(monkeypatch, capsys):
    def start(options):
        raise RuntimeError("can't start new thread")  # as Python says it

    monkeypatch.setattr(runs, "start", start)
    command = ["train", "language", "--text", "text.txt"]
    assert main(command) == 2
    assert capsys.readouterr().err.endswith(
        "the system starts no more threads; lower --threads, or raise ulimit -u or -v\n"
    )
    with pytest.raises(RuntimeError, match="can't start"):
        main(["--debug", *command])


def test_a_run_is_trained_resumed_and_evaluated_on_a_system_that_offers_less(tmp_path):
    config, run = tmp_path / "tiny.json", str(tmp_path / "run")
    config.write_text(json.dumps({"grids": [2, 1], "block": 2, "hidden": [2], "readout": None}))
    commands = [
        ["train", "pvm", "--config", str(config), "--steps", "4", "--device", "cpu", "--out", run],
        ["train", "--resume", run, "--steps", "8"],
        ["eval", run, "--steps", "5", "--device", "cpu"],
        ["doctor"],
    ]
    script = LESS + f"codes = [main(command) for command in {commands!r}]\nprint('CODES', codes)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert "CODES [0, 0, 0, 0]" in done.stdout, done.stdout + done.stderr
    assert "cannot be locked on this system" in done.stderr
