"""Compiling once, the cache, what is compiled for a device, and what a kernel that does not compile says."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpu.runtime import kernels
from tests import cudasim

KERNEL = 'extern "C" __global__ void twice(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }\n'


@pytest.fixture
def compiler(monkeypatch, tmp_path):
    """The stand-in for nvcc, and a cache and a source of the test's own."""
    monkeypatch.setenv("HYBRID_NVCC", str(cudasim.NVCC))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "twice.cu"
    source.write_text(KERNEL)
    return source


def test_a_kernel_is_compiled_once_for_each_content_and_device(compiler):
    first = kernels.cubin(compiler, "sm_90")
    made = first.stat().st_mtime_ns
    assert kernels.cubin(compiler, "sm_90") == first and first.stat().st_mtime_ns == made
    assert kernels.cubin(compiler, "sm_80") != first
    (compiler.parent / "shared.cuh").write_text("// included by someone, perhaps\n")
    assert kernels.cubin(compiler, "sm_90") != first


def test_a_device_newer_than_nvcc_gets_the_newest_ptx(compiler, monkeypatch, tmp_path):
    old = tmp_path / "nvcc"
    says = '[ "$1" = --list-gpu-code ] && echo "sm_75 sm_80 sm_90 sm_90a" && exit'
    old.write_text(f'#!/bin/sh\n{says}\nexec {cudasim.NVCC} "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("HYBRID_NVCC", str(old))
    assert [kernels.target(device) for device in ((8, 0), (8, 6), (12, 0))] == ["sm_80", "compute_80", "compute_90"]
    assert kernels.cubin(compiler, kernels.target((12, 0))).suffix == ".ptx"
    with pytest.raises(OSError, match=r"nvcc 13.0, .* for sm_75 and newer, the device is sm_70; name an older nvcc"):
        kernels.target((7, 0))


def test_ptx_runs_on_a_device_newer_than_nvcc(gpu, simulated, compiler, monkeypatch):
    monkeypatch.setitem(vars(kernels.compiler()), "architectures", [75, 80])
    x = gpu.put(np.ones(4, np.float32))
    gpu.run(lambda: kernels.launch(str(compiler.with_suffix(".py")), "twice", "Pi", 1, 32, x, 4))
    np.testing.assert_array_equal(gpu.get(x), 2)


def test_an_error_names_the_kernels_own_line(compiler):
    compiler.write_text(KERNEL + "\n\n__global__ void wrong() { this_is_not_declared = 1; }\n")
    said = r"twice\.cu does not compile for sm_90:\n(.*\n)*.*twice\.cu[:(]4[:)].*this_is_not"
    with pytest.raises(OSError, match=said) as found:
        kernels.cubin(compiler, "sm_90")
    assert "cudasim" not in str(found.value).split("this_is_not")[0].split("twice.cu", 2)[2]
    assert os.listdir(kernels.cache()) == []


def test_processes_that_race_end_with_one_file(compiler):
    script = f"import pathlib; from gpu.runtime import kernels; print(kernels.cubin(pathlib.Path({str(compiler)!r}), 'sm_90'))"
    root = Path(kernels.__file__).parents[2]
    command = [sys.executable, "-c", script]
    racers = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert len({racer.communicate()[0] for racer in racers}) == 1
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    assert len(os.listdir(kernels.cache())) == 1


ALL_KINDS = """
extern "C" __global__ void all(double *out, int i, float *none, float f, int j, long long q)
{
    const int at = blockIdx.x + 2 * (blockIdx.y + 3 * blockIdx.z);
    if (threadIdx.x == 0) out[at] = none ? -1 : i + 10.0 * f + 100.0 * j + 1000.0 * q + at / 64.0;
}
"""


def test_a_launch_packs_its_arguments_as_c_lays_them_out_in_one_call_of_the_driver(gpu, tmp_path):
    source = tmp_path / "all.cu"
    source.write_text(ALL_KINDS)
    out = gpu.empty(2 * 3 * 4, np.float64)
    values = (out, np.int32(3), None, np.float32(0.5), 7, 1 << 40)
    given = (str(source.with_suffix(".py")), "all", "PiPfiq", (2, 3, 4), 32, *values)
    gpu.run(kernels.launch, *given)
    expected = 3 + 10 * 0.5 + 100 * 7 + 1000 * (1 << 40) + np.arange(24) / 64
    assert np.array_equal(gpu.get(out), expected)
    if gpu.simulated:
        assert gpu.run(cudasim.calls, kernels.launch, *given) == {"launch": 1}
