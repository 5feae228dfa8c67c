"""The script of the first minutes on a GPU: its order, its limits, what it says of a step that fails, hangs or lacks something.

Here programs that say what they were called with stand for Python, pip and the tools.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ["compile", "tests", "ceilings", "units", "tree", "pvm", "softmax", "rows"]
TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck", "ncu-units", "ncu-tree", "ncu-pvm", "ncu-softmax"]
LAST = ["rivals", "overlap", "ragged", "hogwild", "sweep"]
PYTHON = """#!/bin/sh
here=$(dirname "$0")
case "$*" in
*"-m venv"*)
    for last; do :; done
    mkdir -p "$last/bin" "$last/lib/python3.12/site-packages" && cp "$0" "$last/bin/python" ;;
*find_spec*) [ -z "$LACKS" ] ;;
*sys.path*) echo /the/machine ;;
*"--only $BREAKS") exit 3 ;;
*"--only $HANGS") echo hanging; sleep 60 ;;
*"pip install"*) echo "installs: $*"; [ -z "$REFUSES" ] || [ "${*#*--requirement}" = "$*" ] ;;
*) echo "runs: $*" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with the script and a kit, and a machine without tools."""
    (tmp_path / "bench").mkdir()
    shutil.copy(ROOT / "bench" / "first_contact.sh", tmp_path / "bench")
    kit = tmp_path / "build" / "gpu-kit"
    kit.mkdir(parents=True)
    for name in ("pip-26-py3-none-any.whl", "cut_cross_entropy-1-py3-none-any.whl", "requirements.txt"):
        (kit / name).touch()
    program(tmp_path / "machine" / "python3", PYTHON)
    return tmp_path


def program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def called(checkout, *steps, **variables):
    """The command and its environment, as subprocess takes them."""
    path = f"{checkout / 'machine'}:/usr/bin:/bin"
    variables = {"BREAKS": "-", "HANGS": "-", "CUDA_HOME": "/none", "PATH": path} | variables
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "QUICK", "SLOWER")}
    command = ["bash", str(checkout / "bench" / "first_contact.sh"), str(checkout / "out"), *steps]
    return {"args": command, "env": environment | variables, "stdout": subprocess.PIPE, "text": True}


def contact(checkout, *steps, **variables):
    """The finished process, and each line of the summary by the step's name."""
    done = subprocess.run(**called(checkout, *steps, **variables))
    lines = (checkout / "out" / "summary.txt").read_text().splitlines()
    return done, {line.split()[1]: line for line in lines}


def test_everything_in_its_order_the_most_valuable_first(checkout):
    for tool in ("compute-sanitizer", "ncu"):
        program(checkout / "machine" / tool, '#!/bin/sh\necho "runs: $(basename $0) $*"\n')
    done, summary = contact(checkout)
    assert list(summary) == ["install", "device", *BENCH, *TOOLS, *LAST]
    assert done.returncode == 0 and {line.split()[0] for line in summary.values()} == {"ran"}
    ran = [line for line in done.stdout.splitlines() if line.startswith("runs: ")]
    results = checkout / "out" / "results.jsonl"
    assert f"runs: -m bench gpu --json {results} --anyway --repeat 5 --only units" in ran
    assert [line.split("--only ")[1] for line in ran if "--only" in line] == [*BENCH, *LAST]
    assert any("compute-sanitizer --tool racecheck" in line and "bench.gpu_once --quick" in line for line in ran)
    assert any("ncu --clock-control none" in line and line.endswith("bench.gpu_once pvm") for line in ran)


def test_its_environment_sees_the_machines_packages_and_takes_the_rest_from_the_kit_alone(checkout):
    done, _ = contact(checkout, "install")
    paths = checkout / "build" / "first-contact" / "lib" / "python3.12" / "site-packages" / "machine.pth"
    assert paths.read_text() == "/the/machine\n"
    kit = checkout / "build" / "gpu-kit"
    asked = [line for line in done.stdout.splitlines() if line.startswith("installs: ")]
    assert all(f"{kit}/pip-26-py3-none-any.whl/pip install --no-index" in line for line in asked)
    assert f"--find-links {kit} --requirement {kit}/requirements.txt" in asked[-1]


def test_a_kit_that_does_not_suffice_is_installed_nevertheless_and_said(checkout):
    done, summary = contact(checkout, "install", REFUSES="yes")
    assert done.returncode == 1 and summary["install"].startswith("FAILED   install")
    last = [line for line in done.stdout.splitlines() if line.startswith("installs: ")][-1]
    assert "--no-deps" in last and last.endswith("pip-26-py3-none-any.whl")
    assert "what neither this Python nor the kit has" in done.stdout


def test_a_step_that_fails_stops_no_other(checkout):
    done, summary = contact(checkout, BREAKS="units")
    assert done.returncode == 1
    assert summary["units"].startswith("FAILED   units") and summary["units"].endswith("exit code 3")
    assert summary["tree"].startswith("ran      tree")


def test_a_step_that_hangs_is_stopped_at_its_limit(checkout):
    done, summary = contact(checkout, "install", "rows", "sweep", HANGS="rows", SLOWER="1/30")
    assert done.returncode == 1 and summary["rows"].endswith("stopped at its limit of 2 s")
    assert summary["sweep"].startswith("ran")


def test_one_that_is_stopped_says_what_has_run(checkout):
    with subprocess.Popen(**called(checkout, HANGS="units")) as process:
        began = time.monotonic()
        while "hanging" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert process.returncode == 143 and time.monotonic() - began < 30
    assert "ran      ceilings" in rest and "units" not in rest


def test_what_a_machine_lacks_is_named(checkout):
    done, summary = contact(checkout, LACKS="torch")
    assert done.returncode == 0
    assert [line.split()[2] for line in summary.values() if line.startswith("missing")] == [
        *["compute-sanitizer"] * 4,
        *["ncu"] * 4,
        "module:torch",
    ]


def test_steps_that_are_named_run_alone_in_small_sizes_where_asked_for(checkout):
    contact(checkout, "install")
    done, summary = contact(checkout, "rows", "tree", QUICK="1")
    assert list(summary) == ["install", "tree", "rows"]  # the file goes on where an earlier call ended
    assert "--repeat 1 --quick --only tree" in done.stdout


def test_all_that_is_printed_is_kept(checkout):
    done, _ = contact(checkout, "install", "units")
    assert (checkout / "out" / "log.txt").read_text() == done.stdout
    assert done.stdout.splitlines()[-2].startswith("ran      install")


def test_without_a_folder_it_says_how_it_is_called(checkout):
    done = subprocess.run(["bash", str(checkout / "bench" / "first_contact.sh")], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("usage: bash bench/first_contact.sh OUT")
