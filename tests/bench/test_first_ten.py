"""The script of the first minutes on a GPU: its order, its caps, and what is left of a step that fails, hangs, dies or lingers.

Here programs that print what they were called with stand for Python and the tools.
"""

import json
import os
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.support.bench_command import wait_for_the_end_of

ROOT = Path(__file__).parents[2]
BENCH = ["ceilings", "units", "pvm", "tree", "softmax", "rows", "ragged", "losses", "overlap"]
STEPS = ["facts", "install", "smoke", *BENCH, "tests"]
TOOLS = [*(f"ncu-{work}" for work in ("units", "pvm", "tree", "softmax")), "memcheck", "racecheck"]
PYTHON = """#!/bin/bash
echo "runs: $*"
all=$* && what=${all##* }
[ "$2" != tests.smoke ] || what=smoke
[ "$2" != pytest ] || what=tests
[ "$what" != smoke ] || echo "commit: $HYBRID_COMMIT, cubins: $(cd "$XDG_CACHE_HOME" && find . -name "*.cubin")"
[ "$4" != --json ] || echo "{\\"work\\": \\"$what\\"}" >>"$5"
[ "$3" != --json ] || echo "{\\"work\\": \\"$what\\"}" >>"$4"
plan=PLAN_${what//[^a-z]/}
case ${!plan-} in
fails) exit 3 ;;
hangs) sleep 600 & echo $! >"$LEFT"; echo hanging; wait ;;
eats) trap '' TERM; while :; do sleep 1; done ;;
dies) kill -KILL $$ ;;
leaves) sleep 600 & echo $! >"$LEFT" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with the script, a kit, cubins and a commit; a machine with Python and the tools."""
    (tmp_path / "bench").mkdir()
    shutil.copy(ROOT / "bench" / "first_ten.sh", tmp_path / "bench")
    (tmp_path / "build" / "gpu-kit").mkdir(parents=True)
    (tmp_path / "build" / "gpu-kit" / "pycuda-1-py3-none-any.whl").touch()
    (tmp_path / "build" / "cache").mkdir()
    with tarfile.open(tmp_path / "build" / "cache" / "cubins.tar.gz", "w:gz") as archive:
        archive.add(ROOT / "bench" / "first_ten.sh", "kernels/units.cubin")
    (tmp_path / "build" / "commit").write_text("abc+\n")
    program(tmp_path / "machine" / "python3", PYTHON)
    for tool in ("ncu", "compute-sanitizer"):
        program(tmp_path / "machine" / tool, f'#!/bin/sh\necho "runs: {tool} $*"\n')
    return tmp_path


def program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def command(checkout, *steps, seconds=1000, **variables):
    """The command and its environment, as subprocess takes them."""
    path = f"{checkout / 'machine'}:/usr/bin:/bin"
    ours = {"CUDA_HOME": "/none", "PATH": path, "LEFT": str(checkout / "left"), "TMPDIR": str(checkout)}
    others = ("PYTHON", "QUICK", "SLOWER", "HYBRID_COMMIT", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in others} | ours | variables
    arguments = ["bash", str(checkout / "bench" / "first_ten.sh"), str(checkout / "out"), str(seconds), *steps]
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


def test_the_kit_is_installed_beside_python_and_commit_and_cubins_are_carried(checkout):
    done, _ = run(checkout, "install", "smoke")
    assert "-m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target " in done.stdout
    assert "build/gpu-kit/pycuda-1-py3-none-any.whl" in done.stdout and "runs: -m bench.gpu.kit compile" in done.stdout
    assert "commit: abc+, cubins: ./kernels/units.cubin" in done.stdout
    assert not list(checkout.glob("tmp.*"))  # what it made for itself is gone


@pytest.mark.parametrize(("plan", "code"), [("fails", 3), ("eats", 137)])
def test_a_step_that_fails_stops_no_other(checkout, plan, code):
    steps = ["smoke", "units", "pvm", "tree"]
    done, summary = run(checkout, *steps, SLOWER="1/16", PLAN_units=plan)
    assert done.returncode == 1 and list(summary) == steps
    assert f"s, exit code {code}" in summary.pop("units")
    assert all(line.endswith("exit code 0") for line in summary.values())
    assert records(checkout) == steps


def test_a_step_for_which_too_little_time_is_left_is_skipped(checkout):
    done, summary = run(checkout, "facts", "units", "rows", seconds=34)
    assert done.returncode == 0 and "exit code 0" in summary["facts"]
    assert summary["units"].startswith("skipped, 3") and "exit code 0" in summary["rows"]


def test_named_steps_run_alone_and_the_tools_only_then(checkout):
    done, summary = run(checkout, *TOOLS, "rows")
    assert list(summary) == ["rows", *TOOLS] and done.returncode == 0
    ncu = (checkout / "out" / "ncu-units.txt").read_text()
    assert "--section=SchedulerStats" in ncu and ncu.endswith("-m bench.gpu.once units\n") and ncu in done.stdout
    assert "compute-sanitizer --tool racecheck --error-exitcode 1 --target-processes all" in done.stdout


def test_one_that_is_stopped_ends_its_step_and_says_what_has_run(checkout):
    with subprocess.Popen(**command(checkout, "smoke", "units", PLAN_units="hangs")) as process:
        while "hanging" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert process.returncode == 143
    assert "smoke" in rest and "units" not in rest
    wait_for_the_end_of(int((checkout / "left").read_text()))
