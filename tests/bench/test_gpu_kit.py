"""The kit has what a GPU machine lacks, small enough to be carried; a missing Python is named with a remedy."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from bench.gpu import kit as gpu_kit


@pytest.fixture
def kit(monkeypatch, tmp_path):
    """A checkout without a kit, where pip writes a wheel of each package; what it was asked, with Annoy's options."""
    asked = []

    def pip(purpose, command, nothing_else, option, folder, *wanted, python):
        asked.append((purpose, wanted, os.environ.get("ANNOY_COMPILER_ARGS")))
        for name in wanted:
            if not name.startswith("-"):
                Path(folder, f"{name}-1.whl").write_bytes(b"wheel")

    def wheel(python):
        (tmp_path / "pycuda-1.whl").write_bytes(b"built")
        return tmp_path / "pycuda-1.whl"

    monkeypatch.setattr(gpu_kit, "BUILD", tmp_path / "build")
    monkeypatch.setattr(gpu_kit, "KIT", tmp_path / "build" / "gpu-kit")
    monkeypatch.setattr(gpu_kit, "CACHE", tmp_path / "build" / "cache")
    monkeypatch.setattr(gpu_kit, "GOLDEN", tmp_path / "build" / "golden" / "recording.npz")
    monkeypatch.setattr(gpu_kit, "RECORDING", tmp_path / "recording.npz")
    monkeypatch.setattr(gpu_kit.install, "pip", pip)
    monkeypatch.setattr(gpu_kit.install, "wheel", wheel)
    return asked


def python(folder: Path, says: str) -> Path:
    """A program that answers for a Python; it makes no environments."""
    path = folder / "python3.12"
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


def test_the_kit_has_the_wheels_that_are_named_and_annoy_is_built_for_other_processors(kit):
    gpu_kit.build(sys.executable)
    wheels = {path.name for path in gpu_kit.KIT.iterdir()}
    assert wheels == {f"{name}-1.whl" for name in (*gpu_kit.BUILT, *gpu_kit.PUBLISHED)}
    assert [*gpu_kit.BUILD.iterdir()] == [gpu_kit.KIT]
    (built,) = [entry for entry in kit if entry[0] == "build Annoy"]
    assert "--no-cache-dir" in built[1] and "-march=x86-64-v3" in built[2]
    assert [options for purpose, _, options in kit if purpose != "build Annoy"] == [None]
    assert "ANNOY_COMPILER_ARGS" not in os.environ


@pytest.fixture
def compiles(monkeypatch):
    """Whether compiling succeeds; it leaves a cubin."""
    real, code = subprocess.run, [0]

    def run(command, **how):
        if "bench.gpu.kit" not in command:
            return real(command, **how)
        assert command[-1] == gpu_kit.TARGET
        Path(how["env"]["XDG_CACHE_HOME"], "units.cubin").write_text("code")
        return subprocess.CompletedProcess(command, code[0])

    monkeypatch.setattr(gpu_kit.subprocess, "run", run)
    return code


def test_kernels_recording_and_commit_are_beside_the_wheels(kit, compiles):
    gpu_kit.build(sys.executable)
    gpu_kit.RECORDING.write_text("frames")
    gpu_kit.prepare()
    with tarfile.open(gpu_kit.CACHE / "cubins.tar.gz") as archive:
        assert "./units.cubin" in archive.getnames()
    assert gpu_kit.GOLDEN.read_text() == "frames"
    assert (gpu_kit.BUILD / "commit").read_text().strip()
    assert {path.name for path in gpu_kit.BUILD.iterdir()} == {"gpu-kit", "cache", "golden", "commit"}


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
    assert gpu_kit.main([]) == 1
    said, path = capsys.readouterr().err, tmp_path / "none"
    assert said.startswith(f"the kit was not built: GPU_PYTHON={path}: no Python with the module venv is found")
    assert "make gpu-kit GPU_PYTHON=/path/to/python" in said


@pytest.mark.slow
def test_a_kit_for_this_python_has_extensions_for_it(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_kit, "BUILD", tmp_path)
    monkeypatch.setattr(gpu_kit, "KIT", tmp_path / "gpu-kit")
    gpu_kit.build(sys.executable)
    interface = "cp{}{}".format(*sys.version_info)
    for name in gpu_kit.BUILT:
        (wheel,) = gpu_kit.KIT.glob(f"{name}-*-{interface}-*.whl")
        assert any(file.endswith(".so") for file in zipfile.ZipFile(wheel).namelist())
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps"]
    subprocess.run([*command, *map(str, gpu_kit.KIT.glob("*.whl"))], check=True)


# Kernels


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The sources that were compiled; each leaves its file once."""
    sources = []

    def cubin(source, target):
        path = tmp_path / f"{source.stem}-{target}.cubin"
        if not path.exists():
            sources.append(source.name)
            path.touch()
        return path

    monkeypatch.setattr(gpu_kit.kernels, "cache", lambda: tmp_path)
    monkeypatch.setattr(gpu_kit.kernels, "cubin", cubin)
    return sources


def test_every_kernel_once(compiled, capsys):
    assert gpu_kit.main(["compile", "sm_90"]) == 0
    assert {"units.cu", "pvm.cu"} <= {*compiled}
    assert f"{len(compiled)} files for sm_90 in " in capsys.readouterr().out
    assert gpu_kit.main(["compile", "sm_90"]) == 0
    assert ", 0 compiled, " in capsys.readouterr().out and len({*compiled}) == len(compiled)


def test_a_kernel_that_does_not_compile_is_said(monkeypatch, compiled, capsys):
    def fails(source, target):
        raise OSError(f"{source.name} does not compile for {target}")

    monkeypatch.setattr(gpu_kit.kernels, "cubin", fails)
    assert gpu_kit.main(["compile", "sm_90"]) == 1
    assert "does not compile for sm_90" in capsys.readouterr().err
