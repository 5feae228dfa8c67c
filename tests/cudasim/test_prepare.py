"""PyCUDA is installed only where it is missing, built only where no wheel is kept, and a failure says what to do."""

import importlib.metadata
import platform
import subprocess
import sys
import sysconfig
import types
from pathlib import Path

import pytest

from tests.cudasim import prepare


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A Linux machine with the headers and without PyCUDA, and what pip is asked to do there."""
    (tmp_path / "cu13" / "include").mkdir(parents=True)
    headers = types.SimpleNamespace(
        version="13.0.96",
        files=[types.SimpleNamespace(name="cuda.h")],
        locate_file=lambda file: tmp_path / "cu13" / "include" / file.name,
    )
    asked = []

    def pip(purpose, *arguments, python=sys.executable):
        asked.append(arguments)
        if arguments[0] == "wheel":
            configured = Path(arguments[-1], "siteconf.py").read_text()
            assert f"CUDA_ROOT = '{tmp_path / 'cu13'}'" in configured
            folder = Path(arguments[arguments.index("--wheel-dir") + 1])
            folder.mkdir()
            (folder / "pycuda-1-any.whl").write_bytes(b"wheel")

    def download(work, python):
        (work / "source").mkdir()
        return work / "source"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: headers)
    monkeypatch.setattr(prepare, "installed", lambda: False)
    monkeypatch.setattr(prepare, "interface", lambda python: f"interface-of-{Path(python).name}")
    monkeypatch.setattr(prepare, "pip", pip)
    monkeypatch.setattr(prepare, "download", download)
    return asked


def with_version(monkeypatch, version):
    def found(name):
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", found)


@pytest.mark.parametrize(
    ("version", "enough"), [("2025.1", True), ("2026.1.2", True), ("2024.1.2", False), ("2025.0", False), (None, False)]
)
def test_a_pycuda_that_is_there_is_taken(monkeypatch, version, enough):
    with_version(monkeypatch, version)
    assert prepare.installed() is enough


def test_nothing_is_done_or_said_where_pycuda_is_there(monkeypatch, machine, capsys):
    monkeypatch.setattr(prepare, "installed", lambda: True)
    assert prepare.main() == 0
    assert machine == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("system", "processor"), [("darwin", "arm64"), ("linux", "aarch64"), ("win32", "AMD64")])
def test_elsewhere_the_gpu_tests_are_skipped(monkeypatch, machine, capsys, system, processor):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: processor)
    assert prepare.main() == 0
    assert machine == []
    assert "skipped" in capsys.readouterr().out


def test_a_wheel_is_built_once_and_kept_whole(machine, capsys):
    assert prepare.main() == 0
    assert "building PyCUDA" in capsys.readouterr().out
    kept = prepare.wheel()
    assert kept.read_bytes() == b"wheel"
    assert list(kept.parent.iterdir()) == [kept]
    assert [command for command, *_ in machine] == ["wheel", "install"]
    assert prepare.main() == 0
    assert machine[2:] == [("install", str(kept), "numpy")]
    assert capsys.readouterr() == ("", "")


def test_a_wheel_fits_one_python_cuda_and_c_library(machine, monkeypatch):
    first, other = prepare.folder("python"), prepare.folder("python3.99")
    assert "cuda13.0" in first.name and prepare.VERSION in first.name
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "1.0"))
    assert len({first, other, prepare.folder("python")}) == 3


def test_extensions_are_named_after_the_interface_of_their_python():
    assert prepare.interface(sys.executable) == sysconfig.get_config_var("SOABI")


def test_another_python_builds_with_its_own_pip(machine, monkeypatch):
    pythons = []
    asked = prepare.pip
    monkeypatch.setattr(prepare, "pip", lambda *given, python: (pythons.append(python), asked(*given)))
    kept = prepare.wheel("/other/python3.99")
    assert kept.parent == prepare.folder("/other/python3.99") and pythons == ["/other/python3.99"]


def test_missing_headers_come_with_their_remedy(machine, monkeypatch, capsys):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert prepare.main() == 1
    assert "nvidia-cuda-runtime, which carries cuda.h, is missing; pip install" in capsys.readouterr().err


@pytest.mark.parametrize("compiler", ["/no/such/compiler", "false"])
def test_a_compiler_that_builds_nothing_is_named_with_a_remedy(monkeypatch, tmp_path, compiler):
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(prepare.PreparationError, match=f"{compiler} builds no shared library; apt install g"):
        prepare.stub(tmp_path)


def test_the_stub_bears_the_drivers_name(tmp_path):
    content = (prepare.stub(tmp_path) / "libcuda.so").read_bytes()
    assert b"libcuda.so.1\0" in content and b"cuInit\0" in content


def test_what_pip_says_is_shown(monkeypatch):
    done = types.SimpleNamespace(returncode=1, stdout="ERROR: No matching distribution")
    monkeypatch.setattr(subprocess, "run", lambda *command, **how: done)
    with pytest.raises(
        prepare.PreparationError, match=r"could not build it\n +ERROR: No matching(.*\n)+.*PIP_INDEX_URL"
    ):
        prepare.pip("build it", "wheel")
