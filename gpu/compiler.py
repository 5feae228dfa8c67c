"""What compiles the kernels: nvcc, or NVRTC where there is no nvcc, or one without a host compiler."""

import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from gpu import nvrtc
from gpu.queues import libcuda

WANTED = (
    "pip install 'hybrid-engine[gpu]' brings NVRTC, which compiles them; or install the CUDA toolkit, or name its nvcc in "
    "HYBRID_NVCC"
)
OLDER = (  # for a driver that is older than the compiler
    "name an older nvcc in HYBRID_NVCC, or, for a driver of CUDA 12: "
    "pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12"
)


class Nvcc:
    """The program nvcc; OSError, with the remedy, where it cannot be used.

    version  of CUDA, as (13, 0)
    told     what is compiled by it depends on
    """

    def __init__(self, path: str):
        self.path = path
        if not os.access(path, os.X_OK):
            raise OSError(f"{path} is no program")
        self.told = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        release = re.search(r"release (\d+)\.(\d+)", self.told)
        if not release:
            raise OSError(f"{path} does not say its version")
        self.version = int(release[1]), int(release[2])
        self.name = "nvcc {}.{}".format(*self.version)
        asked = subprocess.run([path, "--dryrun", "-cubin", "none.cu"], capture_output=True, text=True)
        if asked.returncode:
            raise OSError(f"{path} finds no C++ compiler: {asked.stderr.strip()}; install one: apt install g++")

    @functools.cached_property
    def architectures(self) -> list[int]:
        """The capabilities that it compiles for on all devices that have them; empty where it does not say."""
        said = subprocess.run([self.path, "--list-gpu-code"], capture_output=True, text=True)
        return [int(number) for number in re.findall(r"\bsm_(\d+)\b", said.stdout)]

    def compile(self, source: Path, arch: str, options: tuple[str, ...], target: Path) -> None:
        """Write machine code of "sm_90", or PTX of "compute_90"; CompileError where it does not compile."""
        kind = "-ptx" if arch.startswith("compute") else "-cubin"
        files = ("-I", str(source.parent), "-o", str(target), str(source))
        done = subprocess.run([self.path, kind, f"-arch={arch}", *options, *files], capture_output=True, text=True)
        if done.returncode:
            raise nvrtc.CompileError(f"{source.name} does not compile for {arch}:\n{done.stderr or done.stdout}")


Compiler = Nvcc | nvrtc.Nvrtc


def compiler() -> Compiler:
    """The nvcc that HYBRID_NVCC names; else of all that can be used the first that the driver is no older than, or the first.

    Raises OSError, with the remedy, where there is none.
    """
    if named := os.environ.get("HYBRID_NVCC"):
        try:
            return _nvcc(named)
        except OSError as error:
            raise OSError(f"HYBRID_NVCC: {error}") from None
    usable, failures = None, []
    for one in _found():
        if isinstance(one, OSError):
            failures.append(str(one))
        elif one.version[0] <= driver_version() // 1000:
            return one
        else:
            usable = usable or one
    if not usable:
        raise OSError(
            f"nothing compiles the kernels: {', '.join(failures) or 'no nvcc and no NVRTC is found'}; {WANTED}"
        )
    return usable


def _found() -> Iterator[Compiler | OSError]:
    if path := nvcc():
        try:
            yield _nvcc(path)
        except OSError as error:
            yield error
    yield from nvrtc.found()


@functools.cache
def _nvcc(path: str) -> Nvcc:
    return Nvcc(path)


def nvcc() -> str | None:
    """The path of nvcc: on the PATH, in CUDA_HOME, or from the wheel nvidia-cuda-nvcc, in this order; None without one."""
    toolkit = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda", "bin", "nvcc")
    wheels = [Path(folder, "nvidia", "cu13", "bin", "nvcc") for folder in sys.path]
    return shutil.which("nvcc") or next((str(p) for p in (toolkit, *wheels) if os.access(p, os.X_OK)), None)


def driver_version() -> int:
    """The version of CUDA that the driver supports, as 13000; no limit where there is no driver."""
    version = ctypes.c_int()
    try:
        libcuda().cuDriverGetVersion(ctypes.byref(version))
    except OSError:
        return sys.maxsize
    return version.value
