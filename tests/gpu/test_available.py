"""Why no GPU can be used: each reason in words, with its remedy. Needs no GPU; see test_command_line.py for the whole."""

from types import SimpleNamespace

import pytest

from gpu import available, blas, kernels
from gpu.device import too_old


def raising(error):
    def call():
        raise error

    return call


def test_without_a_driver(monkeypatch):
    monkeypatch.setattr(available, "CUDA", "libcuda_of_nobody.so")
    assert available.unavailable().startswith("there is no NVIDIA driver (libcuda_of_nobody.so")


def test_a_compiler_that_is_not_there_or_newer_than_the_driver(monkeypatch):
    monkeypatch.setattr(kernels, "nvcc_version", raising(OSError("nvcc is not found; install it")))
    assert available._no_compiler(13) == "nvcc is not found; install it"
    monkeypatch.setattr(kernels, "nvcc_version", lambda: (13, 0))
    assert available._no_compiler(13) is None
    assert available._no_compiler(12).startswith("the driver supports CUDA 12, older than nvcc 13.0; update the driver")


def test_without_cublas(monkeypatch):
    monkeypatch.setattr(blas, "library", raising(OSError("cuBLAS is not found; install it")))
    assert available._no_blas() == "cuBLAS is not found; install it"


@pytest.mark.parametrize(("capability", "old"), [((7, 0), True), ((7, 5), False), ((9, 0), False), ((6, 9), True)])
def test_a_device_that_is_too_old(capability, old):
    found = too_old(SimpleNamespace(compute_capability=lambda: capability, name=lambda: "Abacus"))
    expected = f"Abacus has compute capability {capability[0]}.{capability[1]}, the kernels need 7.5"
    assert found == (expected if old else None)
