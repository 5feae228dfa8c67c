"""Kernels compile through the real NVRTC, without nvcc, a host compiler or a GPU."""

import importlib.metadata
import itertools
import re
import sys
from pathlib import Path

import pytest

from gpu.runtime import compiler as nvrtc
from gpu.runtime import kernels
from tests.gpu import ptxas

NEWEST = ptxas.ARCHITECTURES[-1]
KERNEL = 'extern "C" __global__ void twice(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }\n'


@pytest.fixture(scope="module")
def compiler():
    """The first NVRTC that works here; where its wheel is installed, one must."""
    found = list(nvrtc.found())
    works = next((one for one in found if isinstance(one, nvrtc.Nvrtc)), None)
    if not (works or [*importlib.metadata.distributions(name="nvidia-cuda-nvrtc")]):
        pytest.skip(f"no NVRTC works here: {found}")
    assert works, found
    return works


def made(compiler, source, arch, path):
    """What NVRTC makes of a file, as the package compiles it."""
    compiler.compile(source, arch, kernels.OPTIONS, path)
    return path.read_bytes()


def entries(cubin):
    """The names of a cubin's kernels."""
    return set(re.findall(rb"\.text\.(\w+)", cubin))


@pytest.fixture
def source(tmp_path):
    """A file with one kernel, `twice`."""
    path = tmp_path / "twice.cu"
    path.write_text(KERNEL)
    return path


@pytest.mark.parametrize(
    ("source", "arch"),
    [
        pytest.param(*pair, id=f"{pair[0].stem}-{pair[1]}", marks=[] if pair[1] == NEWEST else pytest.mark.slow)
        for pair in itertools.product(ptxas.SOURCES, ptxas.ARCHITECTURES)
    ],
)
def test_every_kernel_file_compiles(compiler, source, arch, tmp_path):
    if int(arch.removeprefix("sm_")) not in compiler.architectures:
        pytest.skip(f"{compiler.name} does not know {arch}")
    cubin = made(compiler, source, arch, tmp_path / "cubin")
    assert cubin.startswith(b"\x7fELF") and entries(cubin)


def test_kernels_compile_beside_a_driver(compiler, gpu, source, tmp_path):
    """NVRTC asks the driver of its process; one that cannot be asked ended the process."""
    assert entries(made(compiler, source, NEWEST, tmp_path / "cubin")) == {b"twice"}


def test_ptx_for_what_is_newer_than_the_compiler(compiler, source, tmp_path):
    text = made(compiler, source, f"compute_{max(compiler.architectures)}", tmp_path / "ptx").decode()
    assert f".target sm_{max(compiler.architectures)}" in text and ".entry twice(" in text and "\0" not in text


def test_an_error_names_the_kernels_own_line(compiler, source, tmp_path):
    source.write_text(KERNEL + "\n__global__ void wrong() { this_is_not_declared = 1; }\n")
    said = r"twice\.cu does not compile for sm_90:\n.*twice\.cu\(3\): .*this_is_not_declared"
    with pytest.raises(OSError, match=said):
        made(compiler, source, "sm_90", tmp_path / "cubin")
    assert not (tmp_path / "cubin").exists()


def test_what_kernels_take_of_host_headers_is_the_same_number(compiler, source, tmp_path):
    source.write_text(
        "#include <cfloat>\n#include <cmath>\n"
        "static_assert(FLT_MAX == 0x1.fffffep127f && INFINITY > FLT_MAX && sizeof(INFINITY) == 4);\n" + KERNEL
    )
    assert entries(made(compiler, source, "sm_90", tmp_path / "cubin")) == {b"twice"}


@pytest.fixture
def wheels(compiler, monkeypatch, tmp_path):
    """A folder of packages in which a wheel's NVRTC is the real one; there is no toolkit."""
    lib = tmp_path / "nvidia" / "cu13" / "lib"
    lib.mkdir(parents=True)
    for file in Path(compiler.path).parent.glob("libnvrtc*"):
        (lib / file.name).symlink_to(file)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def test_the_headers_are_named_where_they_are_missing(compiler, wheels):
    (missing,) = nvrtc.found()
    assert isinstance(missing, OSError)
    said = r"libnvrtc\.so\.\d+ has no cuda_pipeline\.h in .*cu13/include; pip install nvidia-cuda-run"
    assert re.search(said, str(missing))
    (wheels / "nvidia" / "cu13" / "include").mkdir()
    (wheels / "nvidia" / "cu13" / "include" / "cuda_pipeline.h").touch()
    (works,) = nvrtc.found()
    assert works.version == compiler.version and works.identity == compiler.identity
