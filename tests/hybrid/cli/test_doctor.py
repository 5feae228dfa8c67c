"""The doctor names what is missing, with the command that mends it, and never falls ill itself. (hybrid/cli/finding.py too)"""

import importlib
import json
import re
import tomllib
from pathlib import Path

import numba
import pytest

from cpu import threads
from hybrid import processors
from hybrid.cli import doctor


@pytest.fixture(scope="module")
def healthy():
    """A report of this machine."""
    return doctor.report(megabytes=4)


def finding(report, name):
    return next(one for one in report["findings"] if one["name"] == name)


def broken_import(monkeypatch, *broken, error=ImportError):
    """Make the import of some modules raise."""
    real = importlib.import_module

    def importing(name, *more):
        if name in broken:
            raise error(f"{name} is broken")
        return real(name, *more)

    monkeypatch.setattr(importlib, "import_module", importing)


def test_a_machine_that_runs_the_tests_is_usable(healthy):
    assert healthy["usable"]
    assert json.loads(json.dumps(healthy)) == healthy
    assert all(one["ok"] for one in healthy["findings"] if one["needed"])
    assert all(one["remedy"] is None for one in healthy["findings"] if one["ok"])
    assert all(one["remedy"] for one in healthy["findings"] if not one["ok"])
    assert all(value > 1e8 for value in healthy["bandwidth"].values())
    most = numba.get_num_threads()
    several = [f"read-modify-write, {most} threads"] * (most > 1)
    assert [*healthy["bandwidth"]] == ["read-modify-write, 1 thread", *several, "copy, 1 thread"]


def test_the_text_says_everything(healthy):
    said = doctor.text(healthy)
    for one in healthy["findings"]:
        assert one["name"] in said
        assert one["found"] in said
    assert "GB/s" in said
    assert said.splitlines()[-1].startswith("Ready: the engine runs on the CPU")
    assert "!!" not in said


def test_the_packages_are_those_of_pyproject():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]

    def names(requirements):
        return {re.match(r"[\w.-]+", requirement)[0] for requirement in requirements}

    assert {*doctor.NEEDED, "tbb"} == names(project["dependencies"])  # without tbb it is omp
    for package, extra in doctor.OPTIONAL.items():
        assert package in names(project["optional-dependencies"][extra])


def test_a_missing_package_comes_with_its_remedy(monkeypatch):
    monkeypatch.setattr(doctor, "NEEDED", (*doctor.NEEDED, "no-such-package"))
    report = doctor.report(megabytes=4)
    missing = finding(report, "no-such-package")
    assert (missing["found"], missing["remedy"]) == ("not installed", "pip install no-such-package")
    assert not report["usable"]
    assert report["bandwidth"] == {}
    said = doctor.text(report)
    assert "!!  no-such-package" in said
    assert said.endswith("Not usable: mend the lines marked !!")


def test_an_optional_package_that_is_missing_comes_with_what_it_is_for_and_costs_nothing(monkeypatch):
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-package": "video"})
    report = doctor.report(megabytes=4)
    missing = finding(report, "no-such-package")
    assert missing["remedy"] == "to read and write video: pip install 'hybrid-engine[video]'"
    assert report["usable"] and "--  no-such-package" in doctor.text(report)


def test_a_broken_package_is_named_with_its_error(monkeypatch):
    broken_import(monkeypatch, "tqdm", error=OSError)
    found = next(one for one in doctor._packages() if one["name"] == "tqdm")
    assert "cannot be imported: tqdm is broken" in found["found"]
    assert found["remedy"] == "pip install --force-reinstall tqdm"
    assert not found["ok"]


def test_only_workqueue_is_not_enough(monkeypatch):
    broken_import(monkeypatch, "numba.np.ufunc.tbbpool", "numba.np.ufunc.omppool")
    monkeypatch.setattr(threads, "layer", lambda: "workqueue")
    found = doctor._threads()
    assert found["found"] == f"{processors.available()}; workqueue, of workqueue"
    assert not found["ok"]
    assert "pip install tbb" in found["remedy"]


def test_no_thread_layer_at_all(monkeypatch):
    def none():
        raise ValueError("No threading layer could be loaded.")

    monkeypatch.setattr(threads, "layer", none)
    found = doctor._threads()
    assert "No threading layer" in found["found"]
    assert "pip install tbb" in found["remedy"]


def test_an_unwritable_kernel_cache(monkeypatch):
    def full(**_):
        raise PermissionError("may not write")

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", full)
    found = doctor._kernel_cache()
    assert (found["ok"], found["found"]) == (False, "may not write")
    assert "NUMBA_CACHE_DIR" in found["remedy"]


@pytest.mark.parametrize("compiler", ["/no/such/compiler", "false"])
def test_a_compiler_that_does_not_run_is_no_obstacle_to_running(monkeypatch, compiler):
    monkeypatch.setenv("CXX", compiler)
    found = doctor._compiler()
    assert (found["ok"], found["needed"]) == (False, False)
    assert "apt install g++" in found["remedy"]


def test_a_copy_moves_what_it_reads_and_what_it_writes(monkeypatch):
    monkeypatch.setattr(doctor.time, "perf_counter", iter(range(100)).__next__)
    assert doctor._copies(megabytes=1) == [2 * 2**20] * 5
