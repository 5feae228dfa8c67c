"""`python -m bench NAME`: what is timed is alone on a quiet machine; what only shows that it runs, or counts, is not asked."""

import contextlib
import re
import sys
from types import SimpleNamespace

import pytest

from bench import __main__
from bench.__main__ import OWN, REFUSED, main
from bench.harness import quiet


@pytest.fixture
def benchmark(monkeypatch, tmp_path):
    """One that is listed and notes its runs; the machine is busy, and its lock is in this test's folder."""
    made = SimpleNamespace(runs=[], run=lambda given: made.runs.append(given))

    def busy():
        raise quiet.Busy("the machine is busy: as this test wants it")

    monkeypatch.setitem(sys.modules, "bench.fake", made)
    monkeypatch.setattr(__main__, "benchmarks", lambda: {"fake": ("bench.fake", "of this test")})
    monkeypatch.setattr(quiet, "PATH", tmp_path / "lock")
    monkeypatch.setattr(quiet, "check_quiet", busy)
    monkeypatch.setattr(quiet, "laps", quiet.Laps())
    return made


@pytest.mark.parametrize(
    ("options", "counts", "taken", "code", "said"),
    [
        ("", False, False, REFUSED, "not measured: the machine is busy"),
        ("--anyway", False, False, 0, ""),
        ("--anyway", False, True, REFUSED, "measures on this machine"),
        ("--quick --repeat 1", False, True, 0, ""),
        ("", True, True, 0, ""),
    ],
)
def test_what_is_timed_is_alone_on_a_quiet_machine(benchmark, capsys, options, counts, taken, code, said):
    """Or at least alone; a quick look and what counts ask nobody."""
    benchmark.COUNTS = counts
    with quiet.alone(quiet.PATH) if taken else contextlib.nullcontext():
        assert main(["fake", *options.split()]) == code
    assert len(benchmark.runs) == (code == 0) and said in capsys.readouterr().err
    begun = options == "--anyway" and not taken and quiet.snapshot() is not None
    assert (quiet.laps._last is not None) == begun


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nothing", "NAME: found 'nothing', expected one of "),
        ("words --threads 0", "--threads: found 0, expected 1 or more"),
        ("words --repeat -1", "--repeat: found -1, expected 1 or more"),
        ("words --repeat 4", "--repeat: found 4, expected 5 or more"),
        ("words stray", "words takes no files: stray"),
        ("words --out=9", "words takes no --out, which is for all, gpu"),
        ("words --json /", "--json /: Is a directory"),
        *((f"{name} --quick --only x", r"--only: found 'x', expected some of \w") for name in OWN["only"][0].split()),
        ("report", "report: found no files, expected the .jsonl files"),
        ("report /no/such.jsonl", "No such file or directory: '/no/such.jsonl'"),
        ("compare", "compare: found no files, expected two .jsonl files, BEFORE and AFTER"),
        ("compare /no/such.jsonl", "compare: found 1 files"),
        ("pages", "pages: found no files, expected the results.jsonl of a report"),
    ],
)
def test_bad_arguments_are_named(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments.split())
    assert stopped.value.code == 2 and re.search(message, capsys.readouterr().err)


def test_a_benchmark_of_pytorch_s_nets_asks_for_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "bench.step.plugs", raising=False)
    with pytest.raises(SystemExit):
        main(["plugs", "--quick"])
    assert "pip install 'hybrid-engine[bench]'" in capsys.readouterr().err
