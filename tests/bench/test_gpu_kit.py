"""The kit has what the engine and its GPU tests need, without what the machine has; a missing Python is named with a remedy."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bench import gpu_kit

NEEDED = [
    "numpy-2.3.0-cp312-cp312-linux_x86_64.whl",
    "llvmlite-0.45-cp312-cp312-linux_x86_64.whl",
    "tqdm-4.7-py3-none-any.whl",
]


@pytest.fixture
def kit(monkeypatch, tmp_path):
    """A checkout without a kit, where pip writes what it is asked for; what it was asked, with Annoy's options."""
    asked = []

    def pip(purpose, command, option, folder, *wanted, python):
        asked.append((purpose, wanted, python, os.environ.get("ANNOY_COMPILER_ARGS")))
        for name in NEEDED:
            Path(folder, name).write_bytes(b"wheel")

    def wheel(python):
        (tmp_path / "pycuda-1-cp312-cp312-linux_x86_64.whl").write_bytes(b"built")
        return tmp_path / "pycuda-1-cp312-cp312-linux_x86_64.whl"

    monkeypatch.setattr(gpu_kit, "KIT", tmp_path / "build" / "gpu-kit")
    monkeypatch.setattr(gpu_kit.install, "pip", pip)
    monkeypatch.setattr(gpu_kit.install, "wheel", wheel)
    return asked


def python(folder: Path, says: str) -> Path:
    """A program that answers for a Python; it makes no environments."""
    path = folder / "python3.12"
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


def test_what_the_machine_has_is_left_out(kit):
    gpu_kit.build(sys.executable)
    wheels = {path.name for path in gpu_kit.KIT.iterdir()}
    assert wheels == {"pycuda-1-cp312-cp312-linux_x86_64.whl", "tqdm-4.7-py3-none-any.whl", "requirements.txt"}
    assert list(gpu_kit.KIT.parent.iterdir()) == [gpu_kit.KIT]  # nothing else is left


def test_annoy_is_built_for_other_processors_than_this_one(kit):
    gpu_kit.build(sys.executable)
    (built,) = [entry for entry in kit if entry[0] == "build Annoy"]
    assert "--no-cache-dir" in built[1] and "-march=x86-64-v3" in built[3]
    assert [options for purpose, _, _, options in kit if purpose != "build Annoy"] == [None, None]


def test_requirements_are_the_projects_own(kit):
    gpu_kit.build(sys.executable)
    wanted = (gpu_kit.KIT / "requirements.txt").read_text().splitlines()
    names = [gpu_kit.name(one) for one in wanted]
    assert {"numpy", "numba", "annoy", "tbb", "pycuda", "pytest", "pytest-xdist", "hypothesis"} <= {*names}
    assert not {"torch", "mypy", "nvidia-cuda-nvcc"} & {*names}


def test_a_kit_that_is_too_large_replaces_none(kit, monkeypatch):
    gpu_kit.build(sys.executable)
    monkeypatch.setattr(gpu_kit, "MOST", 9)
    with pytest.raises(gpu_kit.KitError, match="the wheels are 10 bytes, expected 9 at most"):
        gpu_kit.build(sys.executable)
    assert len(list(gpu_kit.KIT.glob("*.whl"))) == 2


@pytest.mark.parametrize(
    ("file", "name"),
    [("numpy-2.3.0-cp312.whl", "numpy"), ("pytest-xdist>=3.6", "pytest-xdist"), ("tbb>=2021.6; x == 'y'", "tbb")],
)
def test_names_of_requirements_and_of_wheels(file, name):
    assert gpu_kit.name(file) == name


def test_the_python_named_is_taken_whatever_its_version():
    assert gpu_kit.find_python(sys.executable) == sys.executable


@pytest.mark.parametrize(("says", "suits"), [("echo 3 12", True), ("echo 3 11", False), ("exit 1", False)])
def test_unless_named_it_is_python_3_12(tmp_path, monkeypatch, says, suits):
    path = python(tmp_path, says)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    if suits:
        assert gpu_kit.find_python(None) == str(path)
        return
    with pytest.raises(gpu_kit.KitError, match=rf"no Python 3\.12 .*looked at: {path}") as failed:
        gpu_kit.find_python(None)
    assert "apt install python3.12 python3.12-venv" in str(failed.value)


def test_without_a_python_the_command_says_what_to_do(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("GPU_PYTHON", str(tmp_path / "none"))
    assert gpu_kit.main() == 1
    said = capsys.readouterr().err
    assert said.startswith(
        f"the kit was not built: GPU_PYTHON={tmp_path / 'none'}: no Python with the module venv is found"
    )
    assert "make gpu-kit GPU_PYTHON=/path/to/python" in said


@pytest.mark.slow
def test_a_kit_for_this_python_has_extensions_for_it(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_kit, "ROOT", tmp_path)
    monkeypatch.setattr(gpu_kit, "KIT", tmp_path / "build" / "gpu-kit")
    (tmp_path / "pyproject.toml").write_text((Path(__file__).parents[2] / "pyproject.toml").read_text())
    monkeypatch.setenv("GPU_PYTHON", sys.executable)
    assert gpu_kit.main() == 0
    interface = "cp{}{}".format(*sys.version_info)
    for name in ("pycuda", "annoy"):
        (wheel,) = gpu_kit.KIT.glob(f"{name}-*-{interface}-*.whl")
        assert any(file.endswith(".so") for file in zipfile.ZipFile(wheel).namelist())
    check = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--find-links", str(gpu_kit.KIT)]
    subprocess.run([*check, "-r", str(gpu_kit.KIT / "requirements.txt")], check=True)
