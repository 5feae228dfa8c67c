"""Benchmarks by their commands, in processes of their own: threads are not chosen yet there, a simulated driver starts once."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[2]
BLOCKED = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in "numba llvmlite tbb torch scipy annoy matplotlib threadpoolctl pytest hypothesis".split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def bare(folder):
    """An environment of processes in which NumPy and PyCUDA are alone: no other package is found. Modules in the folder are."""
    (folder / "sitecustomize.py").write_text(BLOCKED)
    return importing(folder)


def importing(folder):
    """An environment of processes that find modules in the folder too."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def wait_for_the_end_of(process: int) -> None:
    """Return once it has ended; AssertionError where it does not in half a minute."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":  # nobody has asked for its exit code
            return
        time.sleep(0.01)
    raise AssertionError(f"process {process} is still there")


def measured(name, folder, *options):
    """What `python -m bench NAME` prints, and its records; it fails where the simulated driver sees a problem."""
    path = folder / f"{name}.jsonl"
    command = [sys.executable, "-m", "bench", name, "--json", str(path), "--threads", "1", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, [SimpleNamespace(**json.loads(line)) for line in path.read_text().splitlines()]
