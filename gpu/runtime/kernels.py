"""Compiles the .cu file of a launcher once per architecture, caches the result on disk, launches kernels."""

import hashlib
import os
import struct
import tempfile
from pathlib import Path
from typing import Any

from gpu import device
from gpu.runtime.array import Array
from gpu.runtime.compiler import compiler
from gpu.runtime.private import private

HERE = Path(__file__).parents[1]
OPTIONS = ("-std=c++17", "-lineinfo")

Size = int | tuple[int, ...]  # size of a grid or block: one to three numbers


def launch(launcher: str, name: str, kinds: str, grid: Size, block: Size, *values: Any, shared: int = 0) -> None:
    """Launches the kernel `name` of the .cu file of `launcher` on the current queue.

    kinds   one letter per argument: P a pointer (a device array, None for a null pointer), i int32, q int64, f float32
    grid    number of blocks; 0: no launch
    block   threads per block; both are one to three numbers
    shared  bytes of dynamic shared memory per block
    """
    blocks = _three(grid)
    if 0 in blocks:
        return  # nothing to do
    queue = device.current()
    function = _function(queue.device, launcher, name, kinds)
    if shared > function.allowed:
        _allow(function, shared)
    packed = function.pack(*[value.pointer if isinstance(value, Array) else value or 0 for value in values])
    # The end of PyCUDA's prepared_async_call, which calls the driver a second time for the shape of the block
    function.kernel._launch_kernel(blocks, _three(block), packed, shared, queue.stream)


def _three(size: Size) -> tuple[int, int, int]:
    first, second, third = (size, 1, 1) if isinstance(size, int) else (*size, 1, 1)[:3]
    return first, second, third


class _Function:
    """A kernel, the packer of its C arguments, and its current limit of dynamic shared memory per block."""

    allowed = 0

    def __init__(self, kernel: Any, kinds: str):
        self.kernel, self.pack = kernel, struct.Struct(kinds).pack


def _function(where: device.Device, launcher: str, name: str, kinds: str) -> _Function:
    key = f"{launcher}:{name}"
    if key not in where.modules:
        where.modules[key] = _Function(_module(where, launcher).get_function(name), kinds)
    return where.modules[key]


def _module(where: device.Device, launcher: str) -> Any:
    import pycuda.driver as driver

    if launcher not in where.modules:
        path = cubin(Path(launcher).with_suffix(".cu"), target(where.capability))
        where.modules[launcher] = driver.module_from_file(str(path))
    return where.modules[launcher]


def _allow(function: _Function, shared: int) -> None:
    """Allows so many bytes per block, and maximises shared memory against the L1 cache.

    Launchers assume that as many blocks as fit share a multiprocessor; the driver's own choice may allow fewer.
    """
    import pycuda.driver as driver

    attribute = driver.function_attribute
    function.kernel.set_attribute(attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
    function.kernel.set_attribute(attribute.PREFERRED_SHARED_MEMORY_CARVEOUT, 100)  # percent
    function.allowed = shared


def target(capability: tuple[int, int]) -> str:
    """Returns the compile target of a device: its own "sm_90"; for one newer than the compiler its newest, "compute_120".

    The latter is PTX, which the driver translates for any newer device. Raises OSError for a device that the compiler no longer
    supports, or without a compiler.
    """
    number, made_by = 10 * capability[0] + capability[1], compiler()
    known = made_by.architectures
    if not known or number in known:
        return f"sm_{number}"
    if number < min(known):
        raise OSError(
            f"{made_by.name}, {made_by.path}, compiles for sm_{min(known)} and newer, the device is sm_{number}; name an older "
            "nvcc in HYBRID_NVCC"
        )
    return f"compute_{max(one for one in known if one < number)}"


def cubin(source: Path, arch: str) -> Path:
    """Returns the file with the compiled kernels of `source`, which is compiled unless it is cached.

    arch  from `target`: machine code of "sm_90", PTX of "compute_90"

    The name has a hash of all sources and options, so the file is never stale. Concurrent processes write the same bytes, and
    each renames its file atomically. Raises OSError if a compiler or the cache is missing, and, with the output of the
    compiler, if the source does not compile.
    """
    made_by, folder = compiler(), cache()
    kind = "ptx" if arch.startswith("compute") else "cubin"
    path = folder / f"{source.stem}-{arch}-{_content(source, arch, made_by.identity)}.{kind}"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=folder) as made:
            part = Path(made, path.name)
            made_by.compile(source, arch, OPTIONS, part)
            os.replace(part, path)
    return path


def _content(source: Path, arch: str, compiler: str) -> str:
    digest = hashlib.sha256(repr((OPTIONS, arch, compiler)).encode())
    for file in (source, *sorted(source.parent.rglob("*.cuh"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:20]


def cache() -> Path:
    """Returns the folder of compiled kernels; OSError if it cannot be created, or others could write to it."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return private(Path(root, "hybrid-engine", "cubins"), "XDG_CACHE_HOME")
