"""A benchmark by its command, in a process of its own: threads are not chosen yet there, and a simulated driver starts once."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[2]


def measured(name, folder, *options):
    """What `python -m bench NAME` prints, and its records; it fails where the simulated driver sees a problem."""
    path = folder / f"{name}.jsonl"
    command = [sys.executable, "-m", "bench", name, "--json", str(path), "--threads", "1", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, [SimpleNamespace(**json.loads(line)) for line in path.read_text().splitlines()]
