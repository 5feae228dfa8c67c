"""Why no GPU can be used: each reason in words, with its remedy. Needs no GPU; see test_command_line.py for the whole."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from gpu.device import too_old
from gpu.runtime import available, compiler, kernels


def raising(error):
    def call():
        raise error

    return call


def test_without_a_driver(monkeypatch):
    monkeypatch.setattr(available, "CUDA", "libcuda_of_nobody.so")
    assert available.unavailable().startswith("there is no NVIDIA driver (libcuda_of_nobody.so")


class Old:
    """A driver of CUDA 12.2."""

    @staticmethod
    def cuDriverGetVersion(place):
        place._obj.value = 12020


def importing(monkeypatch, error):
    """`import pycuda.driver` raises the error, on a machine with an old driver."""
    monkeypatch.setattr(available.ctypes, "CDLL", lambda name: Old)
    monkeypatch.setitem(sys.modules, "pycuda", ModuleType("pycuda"))
    monkeypatch.delitem(sys.modules, "pycuda.driver", raising=False)
    finder = SimpleNamespace(find_spec=lambda name, *rest: raising(error)() if name == "pycuda.driver" else None)
    sys.modules["pycuda"].__path__ = []
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])


def test_without_pycuda(monkeypatch):
    importing(monkeypatch, ModuleNotFoundError("No module named 'pycuda'"))
    remedy = "install it: pip install 'hybrid-engine[gpu]', then python -m gpu.install"
    assert available.unavailable() == f"PyCUDA cannot be imported (No module named 'pycuda'); {remedy}"


def test_a_pycuda_built_for_a_newer_driver(monkeypatch):
    """What is found, what is needed, and no advice to install what is there."""
    importing(monkeypatch, ImportError("/site/pycuda/_driver.so: undefined symbol: cuCtxCreate_v4"))
    found = available.unavailable()
    assert found.startswith("PyCUDA was built for a newer CUDA than the driver's 12.2, which lacks cuCtxCreate_v4; ")
    assert "needs one of CUDA 12.8 or newer), or build PyCUDA with a toolkit of CUDA 12.2 or older: CUDA_HOME=" in found


def compiling(monkeypatch, version, architectures=()):
    """A compiler of some version of CUDA."""
    made_by = SimpleNamespace(name="nvcc {}.{}".format(*version), path="/bin/nvcc", version=version)
    made_by.architectures = list(architectures)
    for module in (compiler, kernels):
        monkeypatch.setattr(module, "compiler", lambda: made_by)


def test_a_device_that_the_compiler_does_not_know(monkeypatch):
    """A newer one runs PTX, where the driver is no older than the compiler, whose PTX it is; an older one runs nothing."""
    compiling(monkeypatch, (13, 1), [75, 90, 120])
    assert available._no_code((9, 0), 13000) is None
    assert available._no_code((13, 0), 13010) is None
    found = available._no_code((13, 0), 13000)
    assert found.startswith("the device, sm_130, is newer than nvcc 13.1, whose compute_120 the driver, of CUDA 13.0, ")
    compiling(monkeypatch, (13, 10), [75, 90, 120])
    assert "the driver, of CUDA 13.9, does not" in available._no_code((13, 0), 13090)
    compiling(monkeypatch, (13, 1), [75, 90, 120])
    assert "the driver, of CUDA 12.9, does not" in available._no_code((13, 0), 12090)
    assert "compiles for sm_75 and newer, the device is sm_70; name an older" in available._no_code((7, 0), 13010)


@pytest.mark.parametrize(("capability", "old"), [((7, 0), True), ((7, 5), False), ((9, 0), False), ((6, 9), True)])
def test_a_device_that_is_too_old(capability, old):
    found = too_old(SimpleNamespace(compute_capability=lambda: capability, name=lambda: "Abacus"))
    expected = f"Abacus has compute capability {capability[0]}.{capability[1]}, the kernels need 7.5"
    assert found == (expected if old else None)


def test_where_everything_is_there_nothing_is_missing(gpu):
    assert available.unavailable() is None and available.devices() >= 1


@pytest.mark.parametrize("part", ["_no_compiler", "_no_code", "_no_blas"])
def test_what_is_missing_is_the_reason(gpu, monkeypatch, part):
    monkeypatch.setattr(available, part, lambda *what: f"{part} of these")
    assert available.unavailable() == f"{part} of these"
