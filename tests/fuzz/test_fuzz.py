"""A few cases of quick subjects find nothing; readers with planted faults are found out, by a small change."""

import os
import re
import signal
import subprocess
import sys

import pytest

from tests.fuzz import __main__ as fuzz
from tests.support.imports import ROOT

QUICK = "text vocabulary ratings vectors-npz labels-svm pvm-json checkpoint-sealed images run-words".split()


def run(*words, code="import tests.fuzz.__main__ as fuzz, sys; sys.exit(fuzz.main())"):
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("cases", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_what_strangers_send_is_read_or_refused_by_name(tmp_path, cases):
    names = QUICK if cases < 1000 else list(fuzz.SUBJECTS)
    done = run("--within", "--cases", str(cases), "--keep", str(tmp_path), "--only", *names)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


PLANTED = """
import os, signal, sys
import tests.fuzz.__main__ as fuzz

GOOD = "a good file"
fuzz.SECONDS = 0.2

def subject(fault):
    def read(path):
        if path.read_text(errors="replace") != GOOD:
            fault()
    return fuzz.Subject(fuzz.file("text.txt", GOOD), read)

def raises(): raise KeyError("a")
def nameless(): raise ValueError("something is wrong")
def spins():
    while True: pass

fuzz.SUBJECTS |= {name: subject(globals()[name]) for name in ("raises", "nameless", "spins")}
fuzz.SUBJECTS["hoards"] = subject(lambda: bytearray(2 * fuzz.MEMORY))
fuzz.SUBJECTS["crashes"] = subject(lambda: os.kill(os.getpid(), signal.SIGSEGV))
sys.exit(fuzz.main())
"""


def test_planted_faults_are_found_and_their_files_kept(tmp_path):
    names = ["raises", "nameless", "spins", "hoards", "crashes"]
    done = run("--within", "--cases", "20", "--keep", str(tmp_path), "--only", *names, code=PLANTED)
    found = dict(line.split(": ", 1) for line in done.stdout.splitlines() if not line.startswith(" "))
    assert done.returncode == -signal.SIGSEGV, "the last of them"
    assert re.match("undocumented: KeyError", found["raises"]) and "file's name: ValueError" in found["nameless"]
    assert found["spins"].startswith("over 0.2 s") and found["hoards"].startswith("over 1 GiB")
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.txt" for name in names}
    assert os.path.getsize(tmp_path / "raises.txt") < 20
