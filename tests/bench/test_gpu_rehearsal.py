"""The rehearsal runs the script in an environment of its own, on the simulated driver; where it cannot, it says why."""

import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bench import gpu_kit, gpu_rehearsal
from bench.__main__ import main


@pytest.fixture
def rehearsal(monkeypatch, tmp_path):
    """A checkout with a kit; what is run there."""
    ran, code = [], [7]

    def run(command, **how):
        ran.append((command, how))
        return SimpleNamespace(returncode=code[0])

    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "one.whl").touch()
    monkeypatch.setattr(gpu_kit, "KIT", tmp_path / "kit")
    monkeypatch.setattr(gpu_kit, "record", lambda: None)
    monkeypatch.setattr(gpu_rehearsal, "MACHINE", tmp_path / "machine")
    monkeypatch.setattr(gpu_rehearsal, "OUT", tmp_path / "out")
    monkeypatch.setattr(gpu_rehearsal.subprocess, "run", run)
    monkeypatch.setattr(gpu_kit, "find_python", lambda named: "python3.12")
    monkeypatch.setattr(gpu_rehearsal.install, "pip", lambda purpose, *what, python: ran.append((what, python)))
    return SimpleNamespace(ran=ran, folder=tmp_path, code=code)


def test_the_machine_has_numpy_alone_at_first(rehearsal):
    assert gpu_rehearsal.machine("python3.12") == str(rehearsal.folder / "machine" / "bin" / "python")
    (made, _), (installed, python) = rehearsal.ran
    assert made == ["python3.12", "-m", "venv", "--clear", str(rehearsal.folder / "machine")]
    assert installed == ("install", "--quiet", "numpy") and python == str(
        rehearsal.folder / "machine" / "bin" / "python"
    )


def test_the_script_runs_on_the_simulated_driver_in_two_parts_then_the_hosts_part(rehearsal, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/of/another/python")
    monkeypatch.setenv("CUDA_ROOT", "/the/toolkit")
    (rehearsal.folder / "out").mkdir()
    (rehearsal.folder / "out" / "summary.txt").write_text("of before")
    assert main(["gpu", "--rehearse"]) == 1
    python = str(rehearsal.folder / "machine" / "bin" / "python")
    _, _, (first, how), (present, _), (kit, _), (last, _), (host, _) = rehearsal.ran
    script = [
        python,
        "-m",
        "tests.cudasim",
        "bash",
        "bench/first_ten.sh",
        str(rehearsal.folder / "out"),
        gpu_rehearsal.SECONDS,
    ]
    assert first == [*script, *gpu_rehearsal.FIRST] and last == [*script, "overlap", "tests"]
    assert "numba" in present and "--no-index" in kit and kit[-1].endswith("one.whl")
    assert host == [python, "-m", "bench.gpu_rehearsal"]
    assert how["cwd"] == gpu_kit.ROOT and "PYTHONPATH" not in how["env"]
    assert {"PYTHON": python, "CUDASIM": "1", "QUICK": "1", "CUDA_ROOT": "/the/toolkit"}.items() <= how["env"].items()
    assert not (rehearsal.folder / "out").exists()


def test_every_step_of_the_script_is_rehearsed_but_the_tools():
    script = (gpu_kit.ROOT / "bench" / "first_ten.sh").read_text()
    steps = re.findall(r"^(?:SIGNAL=INT )?(?:step|bench) ([a-z]+) \d", script, re.MULTILINE)
    assert [*gpu_rehearsal.FIRST, *gpu_rehearsal.LAST, "memcheck", "racecheck"] == steps


def test_all_that_passes_is_0(rehearsal, monkeypatch):
    monkeypatch.setenv("CUDA_ROOT", "/the/toolkit")
    rehearsal.code[0] = 0
    assert gpu_rehearsal.rehearse(None) == 0


def test_a_folder_of_the_users_is_left_as_it_is(rehearsal, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_ROOT", "/the/toolkit")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").touch()
    gpu_rehearsal.rehearse(str(tmp_path / "mine"))
    assert str(tmp_path / "mine") in rehearsal.ran[2][0] and (tmp_path / "mine" / "notes").exists()


def test_a_kit_is_made_where_there_is_none(rehearsal, monkeypatch):
    (rehearsal.folder / "kit" / "one.whl").unlink()
    built = []
    monkeypatch.setattr(gpu_kit, "build", built.append)
    gpu_rehearsal.rehearse(None)
    assert built == ["python3.12"]


@pytest.mark.parametrize("error", [gpu_kit.KitError("no Python 3.12"), subprocess.CalledProcessError(1, "venv")])
def test_what_hinders_it_is_said(rehearsal, monkeypatch, capsys, error):
    def fails(python):
        raise error

    monkeypatch.setattr(gpu_rehearsal, "machine", fails)
    assert gpu_rehearsal.rehearse(None) == 2
    assert capsys.readouterr().err.startswith(f"nothing was rehearsed: {error}")


def test_headers_are_those_of_the_wheels_where_no_toolkit_is_named(monkeypatch):
    monkeypatch.delenv("CUDA_ROOT", raising=False)
    assert (gpu_rehearsal.Path(gpu_rehearsal.surroundings(sys.executable)["CUDA_ROOT"]) / "include" / "cuda.h").exists()


def test_the_hosts_part_of_each_step(capsys):
    assert gpu_rehearsal.main(quick=True) == 0
    steps = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert list(dict.fromkeys(steps)) == ["ceilings", "units", "pvm", "tree", "softmax", "rows", "ragged", "all"]
