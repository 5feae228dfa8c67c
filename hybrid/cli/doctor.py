"""What this machine offers the engine, what is missing, and the command that mends it."""

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import processors
from ..machine import memory, processor
from . import doctor_mpi
from .doctor_gpu import gpu
from .finding import finding, version

NEEDED = ("numpy", "scipy", "numba", "annoy", "threadpoolctl", "tqdm", "matplotlib", "pillow", "pooch")
MODULES = {"pillow": "PIL"}  # where it is not the package's name
OPTIONAL = {
    "av": "video",
    "tensorboardX": "tensorboard",
    "hnswlib": "neighbours",
    "optuna": "sweep",
    "mpi4py": "mpi",
}  # and the extra that brings it
OPTIONAL |= {"torch": "bench", "gensim": "bench", "fasttext-wheel": "bench"}
FOR = {
    "video": "to read and write video",
    "neighbours": 'for the index "hnsw"',
    "tensorboard": "for --tensorboard",
    "sweep": "for hybrid sweep",
    "mpi": "for hybrid launch",
    "bench": "to benchmark against it",
}
LAYERS = {"tbb": "tbbpool", "omp": "omppool", "workqueue": "workqueue"}  # Numba's, and the module of each
THREADSAFE = {"tbb", "omp"}


def report(megabytes: int = 512) -> dict[str, Any]:
    """Look at everything, and measure the memory bandwidth on arrays of `megabytes`; JSON-able. Starts no ranks.

    usable     True when all that is needed is there: the engine runs on the CPU
    findings   one a thing looked at: name, ok, needed, found, remedy (None where nothing is to be mended)
    bandwidth  bytes a second; empty when not usable
    """
    findings = [*_packages(), _threads(), _kernel_cache(), _compiler(), *doctor_mpi.mpi(), *gpu()]
    usable = all(one["ok"] for one in findings if one["needed"])
    return {
        "usable": usable,
        "machine": {"cores": os.cpu_count(), "processor": processor(), "memory": memory()},
        "system": {"os": platform.platform(), "python": platform.python_version()},
        "findings": findings,
        "bandwidth": _bandwidth(megabytes) if usable else {},
    }


def text(report: dict[str, Any]) -> str:
    """The report as a person reads it; what needs mending is marked !! and comes with its remedy.

    report  what `report` says; with what `doctor_mpi.between` found as "ranks"
    """
    machine, system = report["machine"], report["system"]
    room = f", {machine['memory'] / 2**30:.1f} GiB" if machine["memory"] else ""
    lines = [
        f"{machine['processor']}, {machine['cores']} cores{room}",
        f"{system['os']}, Python {system['python']}",
        "",
    ]
    for one in report["findings"]:
        mark = "ok" if one["ok"] else "!!" if one["needed"] else "--"
        lines.append(f"  {mark}  {one['name']:<16} {one['found']}")
        if one["remedy"]:
            lines.append(f"{'':23}{one['remedy']}")
    lines.append("")
    lines += [f"  {name:<28} {value / 1e9:6.1f} GB/s" for name, value in report["bandwidth"].items()]
    if any(one["name"] == "mpiexec" and one["ok"] for one in report["findings"]):
        lines += ["", *doctor_mpi.text(report.get("ranks", {}))]
    on_gpu = any(one["name"] == "gpu" and one["ok"] for one in report["findings"])
    ready = f"Ready: the engine runs on the CPU{' and on the GPU' * on_gpu}."
    lines.append(ready if report["usable"] else "Not usable: mend the lines marked !!")
    return "\n".join(lines)


def _packages() -> Iterator[dict[str, Any]]:
    for name in NEEDED:
        found, ok = version(name)
        if ok:
            try:
                importlib.import_module(MODULES.get(name, name))
            except Exception as error:  # whatever a broken build raises
                found, ok = f"{found}, but it cannot be imported: {error}", False
        yield finding(
            name, ok, found, f"pip install --force-reinstall {name}" if "," in found else f"pip install {name}"
        )
    for name, extra in OPTIONAL.items():
        found, ok = version(name)
        yield finding(name, ok, found, f"{FOR[extra]}: pip install 'hybrid-engine[{extra}]'", needed=False)


def _threads() -> dict[str, Any]:
    """Numba's thread layers; dense and sparse queues need one that two threads may enter at once."""
    from cpu import threads

    try:
        layers = [layer for layer, module in LAYERS.items() if _importable(f"numba.np.ufunc.{module}")]
        chosen = threads.layer()
    except Exception as error:
        return finding("threads", False, f"no parallel kernel runs: {error}", "pip install tbb, or install libgomp1")
    share = processors.quota()
    limit = f", a cgroup allows {share:.3g}" if share < float("inf") else ""
    found = f"{processors.available()}{limit}; {chosen}, of {', '.join(layers)}"
    if chosen == "omp":
        found += "; slower beside other processes than tbb (pip install tbb)"
    return finding("threads", chosen in THREADSAFE, found, "pip install tbb, or install libgomp1 (Debian, Ubuntu)")


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
        return finding("kernel cache", False, str(error), remedy)
    return finding("kernel cache", True, folder)


def _compiler() -> dict[str, Any]:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    remedy = "to install annoy: apt install g++, dnf install gcc-c++, or xcode-select --install"
    if not compiler:
        return finding("C++ compiler", False, "none found", remedy, needed=False)
    try:
        said = subprocess.run([*compiler.split(), "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        return finding("C++ compiler", False, str(error), remedy, needed=False)
    return finding("C++ compiler", True, said.splitlines()[0], needed=False)


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
