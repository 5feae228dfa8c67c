"""The compiler of the kernels: nvcc, or NVRTC if nvcc or its host compiler is missing."""

import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpu.runtime.queues import libcuda

# NVRTC, NVIDIA's compiler as a library, needs no host compiler. It compiles the kernels if there is no nvcc.
#
# It comes with the toolkit, with PyTorch, and in the wheel nvidia-cuda-nvrtc; the headers that kernels include come in
# nvidia-cuda-runtime. It has no host headers, so the parts that kernels need are defined here.

HEADER = "cuda_pipeline.h"  # comes with all headers that the kernels include
# Folders of a library and of its headers, below a folder of packages: wheels of CUDA 13 and of 12.
WHEELS = (("nvidia/cu13/lib", "nvidia/cu13/include"), ("nvidia/cuda_nvrtc/lib", "nvidia/cuda_runtime/include"))
MATHS = b"""\
#pragma once
#define FLT_MAX 3.402823466e+38F
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
"""
HOST = {b"cfloat": MATHS, b"cmath": MATHS}  # host headers by name; nvcc includes cmath implicitly


class CompileError(OSError):
    """A kernel does not compile; the message has the compiler's output, line by line."""

    SEVERAL_LINES = True


class Nvrtc:
    """One libnvrtc. Raises OSError if it does not open, is no NVRTC, or has no headers.

    version   of CUDA, as (13, 0)
    identity  of the compiler, for cache keys
    """

    def __init__(self, path: str, include: Path):
        if not (include / HEADER).is_file():
            raise OSError(f"{path} has no {HEADER} in {include}; pip install nvidia-cuda-runtime")
        for builtins in Path(path).parent.glob("libnvrtc-builtins.so*"):
            ctypes.CDLL(str(builtins))  # NVRTC opens it by name only
        self.path, self._include = path, include
        try:
            self._library = ctypes.CDLL(path)
            major, minor = ctypes.c_int(), ctypes.c_int()
            self._do("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        except AttributeError as error:
            raise OSError(f"{path} is no NVRTC: {error}") from None
        self.version = major.value, minor.value
        self.name = "NVRTC {}.{}".format(*self.version)
        self.identity = f"{self.name} {os.path.getsize(path)}"  # distinguishes updates of one version

    @functools.cached_property
    def architectures(self) -> list[int]:
        """The capabilities that it compiles for."""
        count = ctypes.c_int()
        self._do("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self._do("nvrtcGetSupportedArchs", found)
        return list(found)

    def compile(self, source: Path, arch: str, options: tuple[str, ...], target: Path) -> None:
        """Writes machine code of "sm_90", or PTX of "compute_90"; CompileError if the source does not compile."""
        program = ctypes.c_void_p()
        names, texts = ((ctypes.c_char_p * len(HOST))(*given) for given in (HOST, HOST.values()))
        text, name = source.read_bytes(), str(source).encode()
        self._do("nvrtcCreateProgram", ctypes.byref(program), text, name, len(HOST), texts, names)
        try:
            folders = (
                f"-I{source.parent}",
                f"-I{source.parent}/include",
                f"-I{self._include}",
                f"-I{self._include / 'cccl'}",
            )
            given = [one.encode() for one in (f"-arch={arch}", *options, "-default-device", "-include=cmath", *folders)]
            if self._library.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given)):
                log = self._get("ProgramLog", program).decode(errors="replace")
                raise CompileError(f"{source.name} does not compile for {arch}:\n{log}")
            target.write_bytes(self._get("PTX" if arch.startswith("compute") else "CUBIN", program))
        finally:
            self._do("nvrtcDestroyProgram", ctypes.byref(program))

    def _get(self, what: str, program: Any) -> bytes:
        size = ctypes.c_size_t()
        self._do(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        place = ctypes.create_string_buffer(size.value)
        self._do(f"nvrtcGet{what}", program, place)
        return place.raw if what == "CUBIN" else place.value

    def _do(self, name: str, *arguments: Any) -> None:
        if status := getattr(self._library, name)(*arguments):
            raise OSError(f"{name} of {self.path} answers with error {status}")


def found() -> Iterator[Nvrtc | OSError]:
    """Yields every NVRTC of a wheel, then of the toolkit; an unusable one as its OSError."""
    toolkit = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")
    places = [(Path(folder, lib), Path(folder, include)) for folder in sys.path for lib, include in WHEELS]
    for lib, include in (*places, (toolkit / "lib64", toolkit / "include")):
        for path in sorted(lib.glob("libnvrtc.so.*"))[:1]:
            try:
                yield _opened(str(path), include)
            except OSError as error:
                yield error


@functools.cache
def _opened(path: str, include: Path) -> Nvrtc:
    return Nvrtc(path, include)


WANTED = (
    "pip install 'hybrid-engine[gpu]' brings NVRTC, which compiles them; or install the CUDA toolkit, or name its nvcc in "
    "HYBRID_NVCC"
)
OLDER = (  # for a driver older than the compiler
    "name an older nvcc in HYBRID_NVCC, or, for a driver of CUDA 12: "
    "pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12"
)


class Nvcc:
    """The program nvcc, with the attributes of Nvrtc; OSError, with the remedy, if it cannot be used."""

    def __init__(self, path: str):
        self.path = path
        if not os.access(path, os.X_OK):
            raise OSError(f"{path} is no program")
        self.identity = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        release = re.search(r"release (\d+)\.(\d+)", self.identity)
        if not release:
            raise OSError(f"{path} does not say its version")
        self.version = int(release[1]), int(release[2])
        self.name = "nvcc {}.{}".format(*self.version)
        asked = subprocess.run([path, "--dryrun", "-cubin", "none.cu"], capture_output=True, text=True)
        if asked.returncode:
            raise OSError(f"{path} finds no C++ compiler: {asked.stderr.strip()}; install one: apt install g++")

    @functools.cached_property
    def architectures(self) -> list[int]:
        """The capabilities for which it generates machine code; empty if nvcc does not list them."""
        listed = subprocess.run([self.path, "--list-gpu-code"], capture_output=True, text=True)
        return [int(number) for number in re.findall(r"\bsm_(\d+)\b", listed.stdout)]

    def compile(self, source: Path, arch: str, options: tuple[str, ...], target: Path) -> None:
        """Writes machine code of "sm_90", or PTX of "compute_90"; CompileError if the source does not compile."""
        kind = "-ptx" if arch.startswith("compute") else "-cubin"
        files = ("-I", str(source.parent), "-o", str(target), str(source))
        done = subprocess.run([self.path, kind, f"-arch={arch}", *options, *files], capture_output=True, text=True)
        if done.returncode:
            raise CompileError(f"{source.name} does not compile for {arch}:\n{done.stderr or done.stdout}")


Compiler = Nvcc | Nvrtc


def compiler() -> Compiler:
    """Returns the nvcc in HYBRID_NVCC; else the first usable compiler no newer than the driver, or the first usable one.

    Raises OSError, with the remedy, if there is none.
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
    yield from found()


@functools.cache
def _nvcc(path: str) -> Nvcc:
    return Nvcc(path)


def nvcc() -> str | None:
    """Returns the path of nvcc: on the PATH, in CUDA_HOME, or from the wheel nvidia-cuda-nvcc, in this order; else None."""
    toolkit = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda", "bin", "nvcc")
    wheels = [Path(folder, "nvidia", "cu13", "bin", "nvcc") for folder in sys.path]
    return shutil.which("nvcc") or next((str(p) for p in (toolkit, *wheels) if os.access(p, os.X_OK)), None)


def driver_version() -> int:
    """Returns the CUDA version that the driver supports, as 13000; sys.maxsize without a driver."""
    version = ctypes.c_int()
    try:
        libcuda().cuDriverGetVersion(ctypes.byref(version))
    except OSError:
        return sys.maxsize
    return version.value
