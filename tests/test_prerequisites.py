"""Before pip says anything: what the installation lacks is named, with the command that brings it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "prerequisites"
COMPILER = SCRIPT.with_name("compiler")
TOOLS = ("head",)


def ask(folder, *arguments, script=SCRIPT, **programs):
    """Run the script where the PATH holds nothing but the given programs, each the body of a shell script."""
    for name, body in programs.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    for tool in TOOLS:
        (folder / tool).symlink_to(f"/usr/bin/{tool}")
    environment = {"PATH": str(folder), "CXX": str(folder / "compiler")}
    return subprocess.run(["/bin/sh", script, *arguments], env=environment, capture_output=True, text=True)


REAL = f'exec {sys.executable} "$@"'
OLD = 'case "$1" in --version) echo Python 3.8.1;; *) exit 1;; esac'
NO_VENV = f'case "$2" in *ensurepip*) exit 1;; *) exec {sys.executable} "$@";; esac'


@pytest.mark.parametrize(
    ("programs", "said"), [({"python3": REAL}, "python3"), ({"python3": OLD, "python3.12": REAL}, "python3.12")]
)
def test_what_suits_is_printed_and_an_old_one_passed_over(tmp_path, programs, said):
    done = ask(tmp_path, **programs)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, said, "")


@pytest.mark.parametrize(
    ("arguments", "programs", "said"),
    [
        ([], {}, ["no Python 3.11 or newer", "apt install python3.11", "make PYTHON="]),
        ([], {"python3": OLD}, ["no Python 3.11 or newer", "found: Python 3.8.1"]),
        (["python9"], {"python3": REAL}, ["PYTHON=python9 is not a Python 3.11 or newer"]),
        ([], {"python3": NO_VENV}, ["python3 has no venv module", "-venv"]),
    ],
    ids=["none", "old", "named", "no venv"],
)
def test_what_is_missing_is_named_with_its_remedy(tmp_path, arguments, programs, said):
    done = ask(tmp_path, *arguments, **programs)
    assert done.returncode == 1
    assert done.stdout == ""
    for words in ("hybrid-engine cannot be installed", *said):
        assert words in done.stderr


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({}, ["no C++ compiler", "apt install g++", "make CXX="]),
        ({"compiler": "exit 1"}, ["does not compile against", "Python.h", "-dev"]),
        ({"compiler": "exit 0"}, []),
    ],
    ids=["no compiler", "no headers", "a compiler"],
)
def test_what_a_build_would_lack_is_a_line(tmp_path, programs, said):
    done = ask(tmp_path, "python3", script=COMPILER, python3=REAL, **programs)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (bool(said), "", bool(said))
    for words in said:
        assert words in done.stdout


def test_this_machine_has_what_the_installation_needs():
    done = subprocess.run(["/bin/sh", SCRIPT, sys.executable], env=os.environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
