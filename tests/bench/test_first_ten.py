"""The script of the first minutes on a GPU: its order, its caps, and what is left of a step that fails or hangs.

Here a program that prints what it was called with stands for Python.
"""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.bench_command import wait_for_the_end_of

ROOT = Path(__file__).parents[2]
BENCH = ["ceilings", "units", "pvm", "tree", "softmax", "rows", "ragged", "losses", "overlap"]
STEPS = ["facts", "install", "smoke", *BENCH, "tests"]
PYTHON = """#!/bin/bash
echo "runs: $*"
all=$* && what=${all##* }
[ "$2" != tests.smoke ] || what=smoke
[ "$2" != pytest ] || what=tests
[ "$4" != --json ] || echo "{\\"work\\": \\"$what\\"}" >>"$5"
[ "$3" != --json ] || echo "{\\"work\\": \\"$what\\"}" >>"$4"
plan=PLAN_${what//[^a-z]/}
case ${!plan-} in
fails) exit 3 ;;
hangs) sleep 600 & echo $! >"$LEFT"; echo hanging; wait ;;
eats) trap '' TERM; while :; do sleep 1; done ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with the script; a machine with Python."""
    (tmp_path / "bench").mkdir()
    shutil.copy(ROOT / "bench" / "first_ten.sh", tmp_path / "bench")
    python = tmp_path / "machine" / "python3"
    python.parent.mkdir()
    python.write_text(PYTHON)
    python.chmod(0o755)
    return tmp_path


def command(checkout, *steps, **variables):
    """The command and its environment, as subprocess takes them."""
    path = f"{checkout / 'machine'}:/usr/bin:/bin"
    ours = {"CUDA_HOME": "/none", "PATH": path, "LEFT": str(checkout / "left"), "TMPDIR": str(checkout)}
    others = ("PYTHON", "QUICK", "SLOWER", "HYBRID_COMMIT", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in others} | ours | variables
    arguments = ["bash", str(checkout / "bench" / "first_ten.sh"), str(checkout / "out"), "1000", *steps]
    return {"args": arguments, "env": environment, "stdout": subprocess.PIPE, "text": True}


def run(checkout, *steps, **more):
    """The finished process, and the rest of each line of the summary by the step's name."""
    done = subprocess.run(**command(checkout, *steps, **more))
    lines = (checkout / "out" / "summary.txt").read_text().splitlines()
    return done, dict(line.split(maxsplit=1) for line in lines)


def records(checkout):
    return [json.loads(line)["work"] for line in (checkout / "out" / "results.jsonl").read_text().splitlines()]


def test_everything_in_its_order_the_most_valuable_first(checkout):
    done, summary = run(checkout)
    assert done.returncode == 0 and list(summary) == STEPS
    assert all(line.endswith("s, exit code 0") for line in summary.values())
    assert records(checkout) == ["smoke", *BENCH]
    results = checkout / "out" / "results.jsonl"
    ran = [line for line in done.stdout.splitlines() if line.startswith("runs: ")]
    assert f"runs: -m bench gpu --json {results} --anyway --repeat 5 --only units" in ran
    (tests,) = [line for line in ran if "-m pytest" in line]
    assert "--junitxml=" in tests and "tests/gpu/test_units.py" in tests
    files = [word for word in tests.split() if word.startswith("tests/")]
    assert len(files) > 20 and [file for file in files if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize(("plan", "code"), [("fails", 3), ("eats", 137)])
def test_a_step_that_fails_stops_no_other(checkout, plan, code):
    steps = ["smoke", "units", "pvm", "tree"]
    done, summary = run(checkout, *steps, SLOWER="1/16", PLAN_units=plan)
    assert done.returncode == 1 and list(summary) == steps
    assert f"s, exit code {code}" in summary.pop("units")
    assert all(line.endswith("exit code 0") for line in summary.values())
    assert records(checkout) == steps


def test_one_that_is_stopped_ends_its_step_and_says_what_has_run(checkout):
    with subprocess.Popen(**command(checkout, "smoke", "units", PLAN_units="hangs")) as process:
        while "hanging" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert process.returncode == 143
    assert "smoke" in rest and "units" not in rest
    wait_for_the_end_of(int((checkout / "left").read_text()))
