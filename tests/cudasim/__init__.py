"""A CUDA driver for machines without a GPU: real PyCUDA and real kernels on the CPU, adversarially. See README.md."""

import ctypes
import fcntl
import hashlib
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / "build" / "cudasim"
NVCC = HERE / "nvcc"
KINDS = ("alloc", "host_alloc", "free", "copy", "launch", "module", "sync", "other")

_library: ctypes.CDLL | None = None


class Live(NamedTuple):
    """Allocations that have not been freed."""

    device_count: int
    device_bytes: int
    host_count: int
    host_bytes: int


def cuda_include() -> Path:
    """The folder of cuda.h: of a toolkit, or of the wheel nvidia-cuda-runtime."""
    roots = [Path(os.environ[name]) for name in ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    roots += sorted(Path("/usr/local").glob("cuda*"), reverse=True)
    roots += sorted(Path(sysconfig.get_path("purelib"), "nvidia").glob("*"), reverse=True)
    for root in roots:
        if (root / "include" / "cuda.h").is_file():
            return root / "include"
    raise FileNotFoundError("no cuda.h: set CUDA_ROOT, or install the wheel nvidia-cuda-runtime")


def library() -> Path:
    """The simulated libcuda.so.1, built when its sources have changed."""
    include = cuda_include()
    sources = sorted((HERE / "driver").glob("*.cpp"))
    headers = [*sorted((HERE / "driver").glob("*.h")), HERE / "include" / "cudasim_abi.h"]
    return build("libcuda.so.1", sources, headers, ["-Wl,-soname,libcuda.so.1", "-I", str(include)], ["-ldl"])


def build(name: str, sources: list[Path], headers=(), options=(), libraries=()) -> Path:
    """A shared library of this content, compiled where there is none. Several processes may build it at once."""
    sanitizers = os.environ.get("CUDASIM_SANITIZE")
    # Stacks of a device's threads are left in the middle and used again, which looks like a fault: they are not watched
    sanitized = f"-fsanitize={sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all --param=asan-stack=0"
    usual = "-std=c++17 -O2 -g1 -fPIC -shared -Wall -Wextra"
    compiler = [os.environ.get("CXX", "g++"), *usual.split(), *(sanitized.split() if sanitizers else ()), *options]
    state = hashlib.sha256(" ".join(compiler).encode())
    for file in (*sources, *headers):
        state.update(file.name.encode() + file.read_bytes())
    path = CACHE / state.hexdigest()[:16] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                made = Path(folder) / name
                subprocess.run([*compiler, "-o", str(made), *map(str, sources), *libraries], check=True)
                os.replace(made, path)
    return path


def start(**settings: object) -> ctypes.CDLL:
    """Load the simulated driver; call it before PyCUDA is imported. settings: the CUDASIM_ variables, in lower case."""
    global _library
    variables = {f"CUDASIM_{name.upper()}": str(value) for name, value in settings.items()}
    if _library is not None and any(os.environ.get(name) != value for name, value in variables.items()):
        raise RuntimeError(f"the simulated driver runs already, with other settings than {variables}")
    if _library is None:
        preloaded = str(library()) in os.environ.get("LD_PRELOAD", "").split(":")  # by `python -m tests.cudasim`
        if "pycuda._driver" in sys.modules and not preloaded:
            raise RuntimeError("PyCUDA is imported already: start the simulated driver first")
        os.environ.update(variables)  # which reaches the library's getenv
        os.environ["HYBRID_NVCC"] = str(NVCC)
        _library = ctypes.CDLL(str(library()), mode=ctypes.RTLD_GLOBAL)
        _library.cudasim_problems.restype = ctypes.c_size_t
    return _library


def problems() -> list[str]:
    """What went wrong so far, one line each, its kind first: "out_of_bounds: ..."."""
    simulator = start()
    room = simulator.cudasim_problems(None, ctypes.c_size_t(0))
    buffer = ctypes.create_string_buffer(room)
    simulator.cudasim_problems(buffer, ctypes.c_size_t(room))
    return buffer.value.decode().splitlines()


def clear() -> None:
    """Forget the problems so far. A context that they have broken stays broken."""
    start().cudasim_clear()


def heal() -> None:
    """Let contexts work again that a problem has broken; on a real device only a new process can."""
    start().cudasim_heal()


def seed(number: int) -> None:
    """Begin another order of events."""
    start().cudasim_seed(ctypes.c_uint64(number))


def fail(faults: str = "") -> None:
    """Plan failures, as CUDASIM_FAIL does: "alloc:7,launch:2". Counts begin anew; "" takes the failures back."""
    for item in filter(None, faults.split(",")):
        if item.split(":")[0] not in (*KINDS, "lost", "init"):
            raise ValueError(f"no calls of the kind {item!r}: {', '.join(KINDS)}, lost, init")
    start().cudasim_fail(faults.encode())


def live() -> Live:
    """What is allocated now."""
    numbers = (ctypes.c_size_t * 4)()
    start().cudasim_live(numbers)
    return Live(*numbers)


def counts() -> dict[str, int]:
    """Driver calls by kind since the start, or since fail()."""
    numbers = (ctypes.c_uint64 * len(KINDS))()
    start().cudasim_counts(numbers)
    return dict(zip(KINDS, numbers, strict=True))


def calls(work: Callable[..., object], *arguments: object) -> dict[str, int]:
    """Driver calls that some work makes, by kind; kinds of which there are none are left out."""
    before = counts()
    work(*arguments)
    return {kind: count - before[kind] for kind, count in counts().items() if count > before[kind]}
