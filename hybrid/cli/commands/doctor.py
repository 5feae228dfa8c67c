"""The command `hybrid doctor`: capabilities of this machine, missing parts, and commands that install them."""

import argparse
import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from ... import backend
from ...machine import available, memory, processor, quota
from ..arguments import Parser

NEEDED = ("numpy", "scipy", "numba", "threadpoolctl", "tqdm", "matplotlib", "pillow", "pooch")
MODULES = {"pillow": "PIL"}  # where it differs from the package's name
# Optional package -> its purpose and the extra that installs it
OPTIONAL = {
    "annoy": ('for the index "annoy", beside exact search', "annoy"),
    "av": ("to read and write video", "video"),
    "tensorboardX": ("for --tensorboard", "tensorboard"),
    "hnswlib": ('for the index "hnsw"', "hnswlib"),
    "voyager": ('for the index "voyager"', "voyager"),
    "faiss-cpu": ('for the index "faiss"', "faiss"),
    "optuna": ("for hybrid sweep", "sweep"),
    "mpi4py": ("for hybrid launch", "mpi"),
    "torch": ("for PyTorch trunks and losses", "torch"),
    "scikit-learn": ("for hybrid.sklearn", "sklearn"),
    "pyarrow": ("to read and write Parquet files", "tables"),
    **dict.fromkeys(("gensim", "fasttext-wheel"), ("to benchmark against it", "bench")),
}
LAYERS = {"tbb": "tbbpool", "omp": "omppool", "workqueue": "workqueue"}  # Numba's thread layers and their modules
THREADSAFE = {"tbb", "omp"}
NO_GPU = "none is needed: --device cpu"
PYCUDA = "pip install 'hybrid-engine[gpu]' && python -m gpu.install, which needs a C++ compiler, and no CUDA toolkit"
Finding = dict[str, Any]


def add(command: Parser) -> None:
    """Adds the options to the command's parser."""
    command.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Prints the report; exit code 0 if the engine is usable."""
    found = report()
    print(json.dumps(found, indent=1) if given.json else text(found))
    return 0 if found["usable"] else 1


def report(megabytes: int = 512) -> dict[str, Any]:
    """Returns the results of all checks, JSON-able. Starts no ranks.

    usable     True if all required parts are present: the engine runs on the CPU
    findings   one per check: name, ok, needed, found, remedy (None if not needed)
    bandwidth  of memory, bytes/s, for += 1 on arrays of `megabytes` on all threads; empty if not usable
    """
    findings = [*_packages(), _threads(), _kernel_cache(), *_mpi(), *gpu()]
    usable, speed = all(one["ok"] for one in findings if one["needed"]), {}
    if usable:
        from cpu.runtime.memory import read_modify_write

        speed = {"read-modify-write": statistics.median(read_modify_write(megabytes))}
    return {
        "usable": usable,
        "machine": {"cores": os.cpu_count(), "processor": processor(), "memory": memory()},
        "system": {"os": platform.platform(), "python": platform.python_version()},
        "findings": findings,
        "bandwidth": speed,
    }


def text(report: dict[str, Any]) -> str:
    """Returns the report as text; problems are marked !! and followed by a remedy."""
    host, system = report["machine"], report["system"]
    room = f", {host['memory'] / 2**30:.1f} GiB"
    lines = [f"{host['processor']}, {host['cores']} cores{room}", f"{system['os']}, Python {system['python']}", ""]
    for one in report["findings"]:
        mark = "ok" if one["ok"] else "!!" if one["needed"] else "--"
        lines.append(f"  {mark}  {one['name']:<16} {one['found']}")
        lines += [f"{'':23}{one['remedy']}"] * bool(one["remedy"])
    lines.append("")
    lines += [f"  {name:<28} {value / 1e9:6.1f} GB/s" for name, value in report["bandwidth"].items()]
    on_gpu = any(one["name"] == "gpu" and one["ok"] for one in report["findings"])
    ready = f"Ready: the engine runs on the CPU{' and on the GPU' * on_gpu}."
    return "\n".join([*lines, ready if report["usable"] else "Not usable: fix the lines marked !!"])


def finding(name: str, ok: bool, found: str, remedy: str | None = None, needed: bool = False) -> Finding:
    """Returns the result of a check; the remedy, a command or a sentence, is kept only for a failure."""
    return {"name": name, "ok": ok, "needed": needed, "found": found, "remedy": None if ok else remedy}


def failure(name: str, error: Exception, remedy: str) -> Finding:
    """Returns a failed check from an error that reads "cause; remedy", or just "cause"."""
    cause, _, own = str(error).partition("; ")
    return finding(name, False, cause, own or remedy)


def version(package: str, module: str = "") -> tuple[str, bool]:
    """Returns the version of an installed package; True if it is installed and `module` can be imported."""
    found = "not installed"
    try:
        found = importlib.metadata.version(package)
        importlib.import_module(module) if module else None
    except importlib.metadata.PackageNotFoundError:
        return found, False
    except Exception as error:  # a broken build may raise anything
        return f"{found}, but it cannot be imported: {error}", False
    return found, True


def _packages() -> Iterator[Finding]:
    for name in NEEDED:
        found, ok = version(name, MODULES.get(name, name))
        again = "--force-reinstall " * ("," in found)
        yield finding(name, ok, found, f"pip install {again}{name}", needed=True)
    for name, (purpose, extra) in OPTIONAL.items():
        found, ok = version(name)
        yield finding(name, ok, found, f"{purpose}: pip install 'hybrid-engine[{extra}]'")


def _threads() -> Finding:
    """Checks Numba's thread layers; dense and sparse queues need a thread-safe one."""
    from cpu.runtime import threads

    remedy = "pip install tbb, or install libgomp1 (Debian, Ubuntu)"
    layers = []
    for layer, module in LAYERS.items():
        with contextlib.suppress(ImportError):
            importlib.import_module(f"numba.np.ufunc.{module}")
            layers.append(layer)
    try:
        chosen = threads.layer()
    except Exception as error:
        return finding("threads", False, f"no parallel kernel runs: {error}", remedy, needed=True)
    share = quota()
    limit = f", a cgroup allows {share:.3g}" if share < float("inf") else ""
    slower = "; slower beside other processes than tbb (pip install tbb)" if chosen == "omp" else ""
    found = f"{available()}{limit}; {chosen}, of {', '.join(layers)}{slower}"
    return finding("threads", chosen in THREADSAFE, found, remedy, needed=True)


def _kernel_cache() -> Finding:
    """Checks the folder of compiled kernels; without it, every start recompiles them."""
    try:
        from cpu.runtime.memory import _read_modify_write

        folder = _read_modify_write.stats.cache_path
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except Exception as error:  # Numba raises its own error if it finds no folder
        remedy = "set NUMBA_CACHE_DIR to a folder that can be written"
        return finding("kernel cache", False, str(error), remedy, needed=True)
    return finding("kernel cache", True, folder, needed=True)


def _mpi() -> list[Finding]:
    """Checks mpi4py's MPI and mpiexec; [] without mpi4py, which is reported separately."""
    if importlib.util.find_spec("mpi4py") is None:
        return []
    wanted = "pip install 'hybrid-engine[mpi]'"
    ask = "from mpi4py import MPI; print(MPI.Get_library_version())"
    try:  # in a subprocess, since a broken MPI aborts it
        done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, timeout=60)
        ok, found = True, done.stdout.splitlines()[0].strip("\0 ")  # Open MPI ends its line so
    except (OSError, subprocess.SubprocessError) as error:
        ok, found = False, (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
    beside = os.path.dirname(sys.executable)  # location in wheels
    program = shutil.which("mpiexec", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    library = finding("MPI", ok, found, f"{wanted}, or an mpi4py of the MPI that is there")
    return [library, finding("mpiexec", program is not None, program or "none found", wanted)]


def gpu() -> list[Finding]:
    """Checks the requirements of a GPU, all optional: compiler, PyCUDA, cuBLAS, devices; then the conclusion."""
    from gpu.runtime import blas, compiler

    try:
        made_by = compiler.compiler()
        compiles = finding("kernel compiler", True, f"{made_by.name}, {made_by.path}")
    except OSError as error:
        compiles = failure("kernel compiler", error, compiler.WANTED)
    found, ok = version("pycuda", "pycuda.driver")  # imports the driver it was built for
    pycuda = finding("PyCUDA", ok, found, "install the NVIDIA driver" if "libcuda" in found else PYCUDA)
    try:
        cublas = finding("cuBLAS", True, next(blas.libraries())._name)
    except OSError as error:
        cublas = failure("cuBLAS", error, "name libcublas.so in HYBRID_CUBLAS, or leave that unset")
    try:
        reason, devices = backend.why_no_gpu(), _devices() if ok else []
    except Exception as error:  # a PyCUDA that does not fit this driver may raise anything
        reason, devices = f"PyCUDA fails: {error}", []
    cause, _, remedy = (reason or "").partition("; ")
    found = f"not used: {cause}" if reason else "can be used: --device cuda:0"
    return [compiles, pycuda, cublas, *devices, finding("gpu", not reason, found, remedy or NO_GPU)]


def _devices() -> list[Finding]:
    """Lists the driver's version, and name, capability and memory of every device; [] if the driver does not start."""
    import pycuda.driver as driver

    from gpu.device import too_old

    try:
        driver.init()
    except driver.Error:
        return []
    number, devices = driver.get_driver_version(), []
    for at in range(driver.Device.count()):
        device = driver.Device(at)
        (major, minor), old = device.compute_capability(), too_old(device)
        found = f"{device.name()}, sm_{major}{minor}, {device.total_memory() / 2**30:.1f} GiB"
        devices.append(finding(f"cuda:{at}", not old, old or found, NO_GPU))
    return [finding("NVIDIA driver", True, f"CUDA {number // 1000}.{number % 1000 // 10}"), *devices]
