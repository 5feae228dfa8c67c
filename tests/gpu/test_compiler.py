"""Which compiler is taken: nvcc, NVRTC where nvcc cannot be used, the first that the driver is no older than."""

import sys
from types import SimpleNamespace

import pytest

from gpu.runtime import compiler, kernels

RTC = SimpleNamespace(name="NVRTC 13.0", version=(13, 0))
OLD_RTC = SimpleNamespace(name="NVRTC 12.9", version=(12, 9))


def script(path, text):
    """A program of our own."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine without a toolkit, a wheel or a driver; a test puts something there."""
    monkeypatch.delenv("HYBRID_NVCC", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(compiler, "found", list)
    monkeypatch.setattr(compiler, "driver_version", lambda: sys.maxsize)
    return monkeypatch


def nvcc_at(path, release, more=""):
    version = f'[ "$1" = --version ] && echo "Cuda compilation tools, release {release}, V{release}.1"'
    return script(path, f"{more}\n{version}\nexit 0")


def test_nvcc_is_found_where_it_is_named(machine, tmp_path):
    machine.setenv("HYBRID_NVCC", str(tmp_path / "none"))
    with pytest.raises(OSError, match=r"HYBRID_NVCC: .*none is no program"):
        compiler.compiler()
    machine.setenv("HYBRID_NVCC", str(script(tmp_path / "mute", "echo")))
    with pytest.raises(OSError, match=r"HYBRID_NVCC: .*mute does not say its version"):
        compiler.compiler()
    machine.delenv("HYBRID_NVCC")
    path = nvcc_at(tmp_path / "nvcc", "12.4")
    found = compiler.compiler()
    assert (found.path, found.version, found.name) == (str(path), (12, 4), "nvcc 12.4")


def test_the_path_comes_before_the_toolkit_and_that_before_the_wheel(machine, tmp_path):
    for folder in ("site/nvidia/cu13/bin", "toolkit/bin"):
        (tmp_path / folder).mkdir(parents=True)
    machine.setattr(sys, "path", [str(tmp_path / "site")])
    wheel = nvcc_at(tmp_path / "site/nvidia/cu13/bin/nvcc", "13.0")
    assert compiler.nvcc() == str(wheel)
    toolkit = nvcc_at(tmp_path / "toolkit/bin/nvcc", "12.9")
    assert compiler.nvcc() == str(toolkit)
    first = nvcc_at(tmp_path / "nvcc", "12.8")
    assert compiler.nvcc() == str(first)


def test_without_any_compiler_the_remedy_is_named(machine):
    assert compiler.nvcc() is None
    said = r"no nvcc and no NVRTC is found; pip install 'hybrid-engine\[gpu\]' brings NVRTC"
    with pytest.raises(OSError, match=said):
        compiler.compiler()
    machine.setattr(compiler, "found", lambda: [OSError("libnvrtc.so.13 has no header")])
    with pytest.raises(OSError, match=r"nothing compiles the kernels: libnvrtc\.so\.13 has no header; pip install"):
        compiler.compiler()


def test_nvcc_without_a_host_compiler_gives_way_to_nvrtc(machine, tmp_path):
    """As the real one says it: asked what it would do, it looks for gcc first."""
    lacks = '[ "$1" = --dryrun ] && echo gcc: No such file or directory >&2 && exit 1'
    nvcc_at(tmp_path / "nvcc", "13.0", lacks)
    said = r"nvcc finds no C\+\+ compiler: gcc: No such file .* install one: apt install g\+\+"
    with pytest.raises(OSError, match=said):
        compiler.compiler()
    machine.setattr(compiler, "found", lambda: [RTC])
    assert compiler.compiler() is RTC


@pytest.mark.parametrize(
    ("driver", "expected"),
    [(13010, "nvcc 13.0"), (12080, "NVRTC 12.9"), (11080, "nvcc 13.0"), (sys.maxsize, "nvcc 13.0")],
)
def test_the_first_that_the_driver_is_no_older_than_is_taken(machine, tmp_path, driver, expected):
    nvcc_at(tmp_path / "nvcc", "13.0")
    machine.setattr(compiler, "found", lambda: [RTC, OLD_RTC])
    machine.setattr(compiler, "driver_version", lambda: driver)
    assert compiler.compiler().name == expected


def test_the_architectures_are_those_that_nvcc_lists(machine, tmp_path):
    listing = '[ "$1" = --list-gpu-code ] && echo sm_75 && echo sm_90a && echo sm_120'
    lists = nvcc_at(tmp_path / "lists", "13.0", listing)
    assert compiler.Nvcc(str(lists)).architectures == [75, 120]
    assert compiler.Nvcc(str(nvcc_at(tmp_path / "mute", "13.0"))).architectures == []


def test_another_compiler_has_files_of_its_own_in_the_cache(machine, tmp_path):
    """The cubin of one is not taken for the other's, though source and options are the same."""
    machine.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "one.cu"
    source.touch()
    paths = set()
    for told in ("nvcc 13.0", "nvcc 13.1", "NVRTC 13.1"):
        made_by = SimpleNamespace(identity=told, compile=lambda source, arch, options, target: target.touch())
        machine.setattr(kernels, "compiler", lambda made_by=made_by: made_by)
        paths.add(kernels.cubin(source, "sm_90"))
    assert len(paths) == 3
