"""Compiles the .cu file beside a launcher with nvcc, once for each architecture, keeps the result on disk, launches kernels."""

import functools
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu import device
from gpu.array import Array

HERE = Path(__file__).parent
OPTIONS = ("-O3", "-std=c++17", "-lineinfo")

Size = int | tuple[int, ...]  # of a grid or a block: one to three numbers


def launch(launcher: str, name: str, kinds: str, grid: Size, block: Size, *values: Any, shared: int = 0) -> None:
    """Launch the kernel `name` of the .cu beside `launcher` on the current queue.

    kinds   one letter an argument: P a pointer (a device array, None for a null pointer), i int32, q int64, f float32
    grid    how many blocks; where it is 0 nothing is launched
    block   threads a block; both are a number, or up to three
    shared  bytes of dynamic shared memory a block
    """
    blocks = _three(grid)
    if 0 in blocks:
        return  # nothing to do
    queue = device.current()
    function = _function(queue.device, launcher, name, kinds)
    if shared > function.allowed:
        _allow(function, shared)
    packed = function.pack(*[value.pointer if isinstance(value, Array) else value or 0 for value in values])
    # What PyCUDA's prepared_async_call ends with, which calls the driver a second time for the shape of the block
    function.kernel._launch_kernel(blocks, _three(block), packed, shared, queue.stream)


def _three(size: Size) -> tuple[int, int, int]:
    first, second, third = (size, 1, 1) if isinstance(size, int) else (*size, 1, 1)[:3]
    return first, second, third


class _Function:
    """A kernel, what packs its arguments as C lays them out, and how much dynamic shared memory a block of it may have."""

    allowed = 0

    def __init__(self, kernel: Any, kinds: str):
        self.kernel, self.pack = kernel, struct.Struct(kinds).pack


def _function(where: device.Device, launcher: str, name: str, kinds: str) -> _Function:
    key = f"{launcher}:{name}"
    if key not in where.modules:
        where.modules[key] = _Function(_module(where, launcher).get_function(name), kinds)
    function: _Function = where.modules[key]
    return function


def _module(where: device.Device, launcher: str) -> Any:
    import pycuda.driver as driver

    if launcher not in where.modules:
        path = cubin(Path(launcher).with_suffix(".cu"), target(where.capability))
        where.modules[launcher] = driver.module_from_file(str(path))
    return where.modules[launcher]


def _allow(function: _Function, shared: int) -> None:
    """Allow so many bytes a block, and give shared memory all that the L1 cache can spare.

    Launchers count on as many blocks a multiprocessor as fit; the driver's own guess may leave room for fewer.
    """
    import pycuda.driver as driver

    attribute = driver.function_attribute
    function.kernel.set_attribute(attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
    function.kernel.set_attribute(attribute.PREFERRED_SHARED_MEMORY_CARVEOUT, 100)  # percent
    function.allowed = shared


def target(capability: tuple[int, int]) -> str:
    """What to compile for a device: its own "sm_90", or for one newer than nvcc "compute_120", the newest that nvcc knows.

    The latter is PTX, which the driver translates for any newer device. Raises OSError for a device that nvcc no longer knows,
    or where there is no nvcc.
    """
    number, known = 10 * capability[0] + capability[1], architectures(nvcc())
    if not known or number in known:
        return f"sm_{number}"
    if number < min(known):
        raise OSError(
            f"{nvcc()} compiles for sm_{min(known)} and newer, the device is sm_{number}; name an older nvcc in HYBRID_NVCC"
        )
    return f"compute_{max(one for one in known if one < number)}"


@functools.cache
def architectures(compiler: str) -> list[int]:
    """The capabilities that nvcc compiles for on all devices that have them; empty where it does not say."""
    said = subprocess.run([compiler, "--list-gpu-code"], capture_output=True, text=True)
    return [int(number) for number in re.findall(r"\bsm_(\d+)\b", said.stdout)]


def cubin(source: Path, arch: str) -> Path:
    """The file with the compiled kernels of `source`, which is compiled where the cache does not have it.

    arch  as `target` says: machine code of "sm_90", PTX of "compute_90"

    The name has a hash of everything that is compiled, so the file is never out of date. Processes that compile at the same
    time write the same bytes, and each renames its file atomically. Raises OSError where nvcc or the cache is missing, and,
    with the output of nvcc, where the source does not compile.
    """
    folder = cache()
    path = folder / f"{source.stem}-{arch}-{_content(source, arch)}.{_kind(arch)}"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=folder) as made:
            part = Path(made, path.name)
            _compile(source, arch, part)
            os.replace(part, path)
    return path


def _kind(arch: str) -> str:
    return "ptx" if arch.startswith("compute") else "cubin"


def _content(source: Path, arch: str) -> str:
    told = hashlib.sha256(repr((OPTIONS, arch, _described(nvcc()))).encode())
    for file in (source, *sorted(source.parent.glob("*.cuh"))):
        told.update(file.read_bytes())
    return told.hexdigest()[:20]


def _compile(source: Path, arch: str, target: Path) -> None:
    files = ("-I", str(source.parent), "-o", str(target), str(source))
    command = [nvcc(), f"-{_kind(arch)}", f"-arch={arch}", *OPTIONS, *files]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{source.name} does not compile for {arch}:\n{done.stderr or done.stdout}")


def cache() -> Path:
    """The folder of compiled kernels; OSError where it cannot be made."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(root, "hybrid-engine", "cubins")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def nvcc() -> str:
    """The path of the compiler: HYBRID_NVCC, on the PATH, in CUDA_HOME, or from the wheel nvidia-cuda-nvcc, in this order.

    Raises OSError, with the remedy, where there is none.
    """
    named = os.environ.get("HYBRID_NVCC")
    if named and not os.access(named, os.X_OK):
        raise OSError(f"HYBRID_NVCC: {named} is no program")
    toolkit = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda", "bin", "nvcc")
    wheels = [Path(folder, "nvidia", "cu13", "bin", "nvcc") for folder in sys.path]
    found = named or shutil.which("nvcc") or next((str(p) for p in (toolkit, *wheels) if os.access(p, os.X_OK)), None)
    if not found:
        raise OSError(
            "nvcc, which compiles the kernels, is not found; install the CUDA toolkit, or name it in HYBRID_NVCC, or: "
            "pip install nvidia-cuda-nvcc==13.0.* nvidia-cuda-crt==13.0.* nvidia-nvvm==13.0.* nvidia-cuda-runtime==13.0.* "
            "nvidia-cuda-cccl==13.0.*"
        )
    return found


def nvcc_version() -> tuple[int, int]:
    """The version of CUDA that nvcc belongs to, as (13, 0); OSError where it does not tell."""
    found = re.search(r"release (\d+)\.(\d+)", _described(nvcc()))
    if not found:
        raise OSError(f"{nvcc()} does not say its version")
    return int(found[1]), int(found[2])


@functools.cache
def _described(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
