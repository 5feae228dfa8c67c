"""`python -m bench NAME`: what is timed is alone on a quiet machine; what only shows that it runs, or counts, is not asked."""

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


def test_a_busy_machine_is_refused_before_anything_runs(benchmark, capsys):
    assert main(["fake"]) == REFUSED and not benchmark.runs
    assert "not measured: the machine is busy" in capsys.readouterr().err


def test_anyway_measures_on_a_busy_machine_and_keeps_its_laps(benchmark):
    assert main(["fake", "--anyway"]) == 0 and len(benchmark.runs) == 1
    assert quiet.laps._last is not None or quiet.snapshot() is None


def test_anyway_is_not_beside_another_benchmark(benchmark, capsys):
    with quiet.alone(quiet.PATH):
        assert main(["fake", "--anyway"]) == REFUSED
    assert not benchmark.runs and "measures on this machine" in capsys.readouterr().err


def test_a_quick_look_and_what_counts_ask_nobody(benchmark):
    with quiet.alone(quiet.PATH):
        assert main(["fake", "--quick", "--repeat", "1"]) == 0
        benchmark.COUNTS = True
        assert main(["fake"]) == 0
    assert len(benchmark.runs) == 2


def test_fewer_turns_than_five_are_for_a_quick_look(benchmark, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["fake", "--repeat", "4"])
    assert stopped.value.code == 2 and not benchmark.runs
    assert "--repeat: found 4, expected 5 or more" in capsys.readouterr().err


@pytest.mark.parametrize("name", OWN["only"][0].split())
def test_an_unknown_part_is_refused_with_those_that_are_known(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([name, "--quick", "--only", "nothing"])
    assert stopped.value.code == 2
    assert re.search(r"--only: found 'nothing', expected some of \w+", capsys.readouterr().err)


def test_a_benchmark_of_pytorch_s_nets_asks_for_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "bench.step.plugs", raising=False)
    with pytest.raises(SystemExit):
        main(["plugs", "--quick"])
    assert "pip install 'hybrid-engine[bench]'" in capsys.readouterr().err
