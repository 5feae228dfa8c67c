"""PyCUDA is built only where no wheel is kept, from the headers that are there, and a failure says what to do."""

import importlib.metadata
import platform
import subprocess
import sys
import types
from pathlib import Path

import pytest

from gpu import install


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with the wheel of the headers, and what pip is asked to do there."""
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
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: headers)
    monkeypatch.setattr(install, "interface", lambda python: f"interface-of-{Path(python).name}")
    monkeypatch.setattr(install, "pip", pip)
    monkeypatch.setattr(install, "download", download)
    return asked


def test_a_wheel_is_built_once_and_kept_whole(machine, capsys):
    assert install.main() == 0
    said = capsys.readouterr().out
    assert "building PyCUDA" in said and said.endswith("`hybrid doctor` says whether a GPU can be used\n")
    kept = install.wheel()
    assert kept.read_bytes() == b"wheel"
    assert list(kept.parent.iterdir()) == [kept]
    installs = [("install", str(kept), "numpy"), ("install", "--force-reinstall", "--no-deps", str(kept))]
    assert machine[0][0] == "wheel" and machine[1:] == installs
    assert install.main() == 0
    assert machine[3:] == installs
    assert "building" not in capsys.readouterr().out


def test_a_wheel_fits_one_python_cuda_and_c_library(machine, monkeypatch):
    first, other = install.folder("python"), install.folder("python3.99")
    assert "cuda13.0" in first.name and install.VERSION in first.name
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "1.0"))
    assert len({first, other, install.folder("python")}) == 3


def test_missing_headers_come_with_their_remedy(machine, monkeypatch, capsys):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert install.main() == 1
    assert "nvidia-cuda-runtime, which carries cuda.h, is missing; pip install" in capsys.readouterr().err


def test_the_headers_of_a_toolkit_that_is_named_are_taken(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(install.PreparationError, match=r"CUDA_HOME=.* has no include/cuda\.h; name a CUDA toolkit"):
        install.cuda()
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda.h").write_text("#define CUDA_VERSION 12090\n")
    assert install.cuda() == (tmp_path, "12.9")
    assert "cuda12.9" in install.folder("python").name


@pytest.mark.parametrize("compiler", ["/no/such/compiler", "false"])
def test_a_compiler_that_builds_nothing_is_named_with_a_remedy(monkeypatch, tmp_path, compiler):
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(install.PreparationError, match=f"{compiler} builds no shared library; apt install g"):
        install.stub(tmp_path)


def test_the_stub_bears_the_drivers_name(tmp_path):
    content = (install.stub(tmp_path) / "libcuda.so").read_bytes()
    assert b"libcuda.so.1\0" in content and b"cuInit\0" in content


def test_what_pip_says_is_shown(monkeypatch):
    def failing(command, text=False, **how):
        said = "ERROR: No matching distribution"
        return types.SimpleNamespace(returncode=1, stdout=said if text else said.encode())

    monkeypatch.setattr(subprocess, "run", failing)
    said = r"could not build it\n +ERROR: No matching(.*\n)+.*PIP_INDEX_URL"
    with pytest.raises(install.PreparationError, match=said):
        install.pip("build it", "wheel")
