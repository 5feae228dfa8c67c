"""The stand-in for nvcc behaves as a compiler must."""

import subprocess
from pathlib import Path

from tests import cudasim


def nvcc(*arguments) -> subprocess.CompletedProcess:
    """Run the stand-in."""
    return subprocess.run([cudasim.NVCC, *map(str, arguments)], capture_output=True, text=True)


def test_version():
    """One line names the release, as the real one's does."""
    assert "release 13.0" in nvcc("--version").stdout and "cudasim" in nvcc("--version").stdout


def test_errors_name_file_and_line(tmp_path: Path):
    """Of the file as it was written, headers included."""
    (tmp_path / "part.cuh").write_text("template <class T> __device__ T half(T x) { return x / 2; }\n")
    source = tmp_path / "bad.cu"
    source.write_text(
        '#include "part.cuh"\nextern "C" __global__ void __launch_bounds__(\n32) f(float* y) {\n'
        "    extern __shared__ float\n        s[];\n"
        "    s[0] = half(y[0]);\n    y[0] = s[0] + missing;\n}\n"
    )
    done = nvcc("-cubin", "-arch=sm_90", "-o", tmp_path / "bad.cubin", source)
    assert done.returncode != 0 and "bad.cu:7:" in done.stderr and "missing" in done.stderr
    assert not (tmp_path / "bad.cubin").exists()


def test_options_of_the_real_one(tmp_path: Path):
    """Those that steer the real compiler are accepted, the preprocessor's are passed on."""
    source = tmp_path / "good.cu"
    source.write_text(
        "#if __CUDA_ARCH__ != 800 || N != 3\n#error\n#endif\n"
        '#define KERNEL(name) extern "C" __global__ void __launch_bounds__(N * (2, 32)) name\n'
        "KERNEL(f)(float* y) { y[0] = __CUDASIM__; }\n"
    )
    options = "-O3 --use_fast_math -lineinfo -std=c++17 -Xptxas -v --maxrregcount=64 -D N=3".split()
    done = nvcc("-cubin", "-arch", "sm_80", *options, "-I", tmp_path, "-o", tmp_path / "good.cubin", source)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "good.cubin").read_bytes()[:4] == b"\x7fELF"
