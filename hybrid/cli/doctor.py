"""What this machine offers the engine, what is missing, and the command that mends it."""

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..machine import memory

NEEDED = ("numpy", "scipy", "numba", "annoy", "threadpoolctl", "tqdm", "matplotlib", "pillow")
MODULES = {"pillow": "PIL"}  # where it is not the package's name
OPTIONAL = {"av": "video", "tensorboardX": "tensorboard"}  # and the extra that brings it
OPTIONAL |= {"torch": "bench", "gensim": "bench", "fasttext-wheel": "bench"}
FOR = {"video": "to read and write video", "tensorboard": "for --tensorboard", "bench": "to benchmark against it"}
LAYERS = {"tbb": "tbbpool", "omp": "omppool", "workqueue": "workqueue"}  # Numba's, and the module of each
THREADSAFE = {"tbb", "omp"}
NO_GPU = "none is needed: --device cpu"
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
DRIVERS = {12: "525", 13: "580"}  # the oldest driver of a major version of CUDA
ASK_SMI = "nvidia-smi says more; reboot after an update of the driver, start a container with its GPUs (--gpus all)"
OLD_CARD = "install an older CUDA toolkit and name its nvcc in HYBRID_NVCC (12: from sm_50; 13: from sm_75)"


def report(megabytes: int = 512) -> dict[str, Any]:
    """Look at everything, and measure the memory bandwidth on arrays of `megabytes`; JSON-able.

    usable     True when all that is needed is there: the engine runs on the CPU
    findings   one a thing looked at: name, ok, needed, found, remedy (None where nothing is to be mended)
    bandwidth  bytes a second; empty when not usable
    """
    findings = [*_packages(), _threads(), _kernel_cache(), _compiler(), *_gpu()]
    usable = all(finding["ok"] for finding in findings if finding["needed"])
    return {
        "usable": usable,
        "machine": {"cores": os.cpu_count(), "processor": processor(), "memory": memory()},
        "system": {"os": platform.platform(), "python": platform.python_version()},
        "findings": findings,
        "bandwidth": _bandwidth(megabytes) if usable else {},
    }


def text(report: dict[str, Any]) -> str:
    """The report as a person reads it; what needs mending is marked !! and comes with its remedy."""
    machine, system = report["machine"], report["system"]
    room = f", {machine['memory'] / 2**30:.1f} GiB" if machine["memory"] else ""
    lines = [
        f"{machine['processor']}, {machine['cores']} cores{room}",
        f"{system['os']}, Python {system['python']}",
        "",
    ]
    for finding in report["findings"]:
        mark = "ok" if finding["ok"] else "!!" if finding["needed"] else "--"
        lines.append(f"  {mark}  {finding['name']:<16} {finding['found']}")
        if finding["remedy"]:
            lines.append(f"{'':23}{finding['remedy']}")
    lines.append("")
    lines += [f"  {name:<28} {value / 1e9:6.1f} GB/s" for name, value in report["bandwidth"].items()]
    gpu = any(finding["name"] == "gpu" and finding["ok"] for finding in report["findings"])
    ready = f"Ready: the engine runs on the CPU{' and on the GPU' * gpu}."
    lines.append(ready if report["usable"] else "Not usable: mend the lines marked !!")
    return "\n".join(lines)


def _finding(name: str, ok: bool, found: str, remedy: str | None = None, needed: bool = True) -> dict[str, Any]:
    return {"name": name, "ok": ok, "needed": needed, "found": found, "remedy": None if ok else remedy}


def _packages() -> Iterator[dict[str, Any]]:
    for name in NEEDED:
        found, ok = _version(name)
        if ok:
            try:
                importlib.import_module(MODULES.get(name, name))
            except Exception as error:  # whatever a broken build raises
                found, ok = f"{found}, but it cannot be imported: {error}", False
        yield _finding(
            name, ok, found, f"pip install --force-reinstall {name}" if "," in found else f"pip install {name}"
        )
    for name, extra in OPTIONAL.items():
        found, ok = _version(name)
        yield _finding(name, ok, found, f"{FOR[extra]}: pip install 'hybrid-engine[{extra}]'", needed=False)


def _version(package: str) -> tuple[str, bool]:
    try:
        return importlib.metadata.version(package), True
    except importlib.metadata.PackageNotFoundError:
        return "not installed", False


def _threads() -> dict[str, Any]:
    """Numba's thread layers; dense and sparse queues need one that two threads may enter at once."""
    from cpu import threads

    try:
        layers = [layer for layer, module in LAYERS.items() if _importable(f"numba.np.ufunc.{module}")]
        chosen = threads.layer()
    except Exception as error:
        return _finding("threads", False, f"no parallel kernel runs: {error}", "pip install tbb, or install libgomp1")
    share = threads.share()
    limit = f", a cgroup allows {share:.3g}" if share < float("inf") else ""
    found = f"{threads.available()}{limit}; {chosen}, of {', '.join(layers)}"
    if chosen == "omp":
        found += "; slower beside other processes than tbb (pip install tbb)"
    return _finding("threads", chosen in THREADSAFE, found, "pip install tbb, or install libgomp1 (Debian, Ubuntu)")


def _importable(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def _kernel_cache() -> dict[str, Any]:
    """Where compiled kernels are kept: without it, every start compiles them anew."""
    remedy = "set NUMBA_CACHE_DIR to a folder that can be written"
    try:
        from cpu import bandwidth

        folder = bandwidth._read_modify_write.stats.cache_path
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except Exception as error:  # Numba's own, where it finds no folder at all
        return _finding("kernel cache", False, str(error), remedy)
    return _finding("kernel cache", True, folder)


def _compiler() -> dict[str, Any]:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    remedy = "to install annoy: apt install g++, dnf install gcc-c++, or xcode-select --install"
    if not compiler:
        return _finding("C++ compiler", False, "none found", remedy, needed=False)
    try:
        said = subprocess.run([*compiler.split(), "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        return _finding("C++ compiler", False, str(error), remedy, needed=False)
    return _finding("C++ compiler", True, said.splitlines()[0], needed=False)


class Card(NamedTuple):
    """What the driver says of a CUDA device; capability 9.0 is 90, as in sm_90."""

    name: str
    capability: int
    memory: int


def _gpu() -> list[dict[str, Any]]:
    """All that a GPU needs, none of which the engine needs: driver, devices, nvcc, PyCUDA, cuBLAS; then the conclusion."""
    compiles, nvcc = _nvcc()
    supports, driver = _driver(compiles)
    devices = list(_devices(compiles)) if supports else []
    findings = [driver, *devices, nvcc, _pycuda(bool(supports)), _cublas()]
    amiss = ", ".join(one["name"] for one in findings if not one["ok"] and one not in devices[1:])
    return [*findings, _conclusion(amiss)]


def _conclusion(amiss: str) -> dict[str, Any]:
    """Whether a GPU is used, or the first reason why not; `amiss` names what was found to need mending."""
    from .. import backend

    try:
        reason = backend.why_no_gpu() or (f"mend {amiss}" if amiss else None)
    except Exception as error:  # whatever a PyCUDA that does not fit this driver raises
        reason = f"PyCUDA fails: {error}"
    found = f"not used: {reason}" if reason else "can be used: --device cuda:0"
    return _finding("gpu", reason is None, found, NO_GPU, needed=False)


def _nvcc() -> tuple[tuple[int, int] | None, dict[str, Any]]:
    """The version of CUDA that kernels are compiled for, None where nothing compiles them; and the finding."""
    from gpu import kernels

    try:
        path, version = kernels.nvcc(), kernels.nvcc_version()
    except OSError as error:
        return None, _failure("nvcc", error, "install the CUDA toolkit, or name its nvcc in HYBRID_NVCC")
    return version, _finding("nvcc", True, f"{version[0]}.{version[1]}, {path}", needed=False)


def _driver(compiles: tuple[int, int] | None) -> tuple[int, dict[str, Any]]:
    """The version of CUDA that the driver supports, as 13000, 0 where no driver runs; and the finding."""
    try:
        cuda = _cuda()
    except OSError as error:
        remedy = f"install it, where there is a GPU; {NO_GPU}"
        return 0, _finding("NVIDIA driver", False, f"none ({error})", remedy, needed=False)
    try:
        version = _ask(cuda.cuDriverGetVersion, ctypes.c_int())
        count = _count(cuda)
    except OSError as error:
        return 0, _finding("NVIDIA driver", False, str(error), ASK_SMI, needed=False)
    found = f"CUDA {version // 1000}.{version % 1000 // 10}, {count} device{'s' * (count != 1)}"
    if compiles and compiles[0] > version // 1000:
        found += f"; older than nvcc {compiles[0]}.{compiles[1]}"
        oldest = DRIVERS.get(compiles[0], "its toolkit's")
        remedy = f"update the driver (CUDA {compiles[0]}: {oldest} or newer), or name an older nvcc in HYBRID_NVCC"
        return version, _finding("NVIDIA driver", False, found, remedy, needed=False)
    return version, _finding("NVIDIA driver", count > 0, found, ASK_SMI, needed=False)


def _count(cuda: Any) -> int:
    """How many devices the driver sees, once it runs."""
    status = cuda.cuInit(0)
    if status == NO_DEVICE:
        return 0
    if status:
        raise OSError(f"cuInit answers with error {status}")
    count: int = _ask(cuda.cuDeviceGetCount, ctypes.c_int())
    return count


def _cuda() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _ask(function: Any, place: Any, *arguments: Any) -> Any:
    """What a function of the driver writes to its first argument; OSError where it answers with an error."""
    status = function(ctypes.byref(place), *arguments)
    if status:
        raise OSError(f"{function.__name__} answers with error {status}")
    return place.value


def _devices(compiles: tuple[int, int] | None) -> Iterator[dict[str, Any]]:
    """Name, capability and memory of every device, and whether nvcc compiles for it."""
    known = _architectures() if compiles else []
    for number, card in enumerate(_cards()):
        found = f"{card.name}, sm_{card.capability}, {card.memory / 2**30:.1f} GiB"
        if not compiles or not known or card.capability in known:
            yield _finding(f"cuda:{number}", True, found, needed=False)
            continue
        old = card.capability < min(known)
        found += f"; too {'old' if old else 'new'} for nvcc {compiles[0]}.{compiles[1]}"
        remedy = OLD_CARD if old else "update the CUDA toolkit, or name a newer nvcc in HYBRID_NVCC"
        yield _finding(f"cuda:{number}", False, found, remedy, needed=False)


def _cards() -> list[Card]:
    """The devices, as far as the driver tells of them."""
    cuda, cards = _cuda(), []
    try:
        for number in range(_count(cuda)):
            device = _ask(cuda.cuDeviceGet, ctypes.c_int(), number)
            name = ctypes.create_string_buffer(256)
            cuda.cuDeviceGetName(name, len(name), device)
            major, minor = (_ask(cuda.cuDeviceGetAttribute, ctypes.c_int(), which, device) for which in CAPABILITY)
            memory = _ask(cuda.cuDeviceTotalMem_v2, ctypes.c_size_t(), device)
            cards.append(Card(name.value.decode(errors="replace"), 10 * major + minor, memory))
    except OSError:
        pass  # the driver is there and its devices are not: the conclusion says so
    return cards


def _architectures() -> list[int]:
    """The capabilities that nvcc compiles for; empty where it does not say."""
    from gpu import kernels

    try:
        said = subprocess.run([kernels.nvcc(), "--list-gpu-code"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [int(number) for number in re.findall(r"sm_(\d+)", said)]


def _pycuda(driver: bool) -> dict[str, Any]:
    """PyCUDA's version, and whether it can be imported, which takes the driver that it was built for."""
    found, ok = _version("pycuda")
    remedy = _pycuda_recipe("")
    if ok:
        try:
            importlib.import_module("pycuda.driver")
        except Exception as error:  # whatever a broken build raises
            found, ok = f"{found}, but it cannot be imported: {error}", False
            remedy = (
                _pycuda_recipe("--force-reinstall --no-cache-dir ")
                if driver
                else "it needs the NVIDIA driver, see above"
            )
    return _finding("PyCUDA", ok, found, remedy, needed=False)


def _pycuda_recipe(options: str) -> str:
    """PyCUDA is compiled where it is installed, against the toolkit whose own bin folder comes first on the PATH."""
    named = (os.environ.get("CUDA_HOME"), "/usr/local/cuda")
    toolkit = next((root for root in named if root and os.path.isfile(f"{root}/include/cuda.h")), None)
    first = "" if toolkit else "install the CUDA toolkit and a C++ compiler, then: "
    return f"{first}PATH={toolkit or '/usr/local/cuda'}/bin:$PATH pip install {options}'hybrid-engine[gpu]'"


def _cublas() -> dict[str, Any]:
    from gpu import blas

    try:
        library = blas.library()
    except OSError as error:
        return _failure("cuBLAS", error, "name libcublas.so in HYBRID_CUBLAS, or leave that unset")
    try:
        version = ".".join(str(_ask_property(library, which)) for which in range(3)) + ", "
    except (AttributeError, OSError):
        version = ""
    return _finding("cuBLAS", True, f"{version}{library._name}", needed=False)


def _ask_property(library: Any, which: int) -> int:
    place = ctypes.c_int()
    if status := library.cublasGetProperty(which, ctypes.byref(place)):
        raise OSError(f"cublasGetProperty answers with error {status}")
    return place.value


def _failure(name: str, error: Exception, remedy: str) -> dict[str, Any]:
    """What raised says "cause; remedy", or the cause alone."""
    cause, _, said = str(error).partition("; ")
    return _finding(name, False, cause, said or remedy, needed=False)


def _bandwidth(megabytes: int) -> dict[str, float]:
    """Median bytes a second of array += 1 on one thread and on all, and of NumPy's copy."""
    import numba

    from cpu import bandwidth

    most = numba.get_num_threads()
    figures = {}
    try:
        for count in sorted({1, most}):
            numba.set_num_threads(count)
            name = f"read-modify-write, {count} thread{'s' * (count > 1)}"
            figures[name] = statistics.median(bandwidth.read_modify_write(megabytes))
    finally:
        numba.set_num_threads(most)
    return figures | {"copy, 1 thread": statistics.median(_copies(megabytes))}


def _copies(megabytes: int) -> list[float]:
    source, target = np.zeros((2, megabytes * 2**18), np.float32) + np.float32(1)
    samples = []
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(target, source)
        samples.append(2 * source.nbytes / (time.perf_counter() - start))
    return samples


def processor() -> str:
    """The processor's name."""
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
