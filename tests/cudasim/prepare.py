"""Installs PyCUDA where there is neither a GPU nor a CUDA toolkit: python -m tests.cudasim.prepare, run by `make test`.

PyCUDA is published as source only, and its own build looks for a toolkit, cuRAND and the driver. Here the headers come
from NVIDIA's wheels (the extra `test` brings them), cuRAND is left out, and a stub stands for the driver's library, which
is opened by name when PyCUDA is imported: the real one, or the simulated one. Built once a machine and kept as a wheel, for
this Python or for another (bench/gpu_kit.py).
"""

import importlib.metadata
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

VERSION = "2026.1"
OLDEST = (2025, 1)  # that knows CUDA 13
HEADERS = "nvidia-cuda-runtime"  # the wheel with cuda.h; the others install into the same folder
CONFIGURATION = """\
CUDA_ROOT = {root!r}
CUDA_ENABLE_CURAND = False
CUDADRV_LIB_DIR = [{stub!r}]
CUDADRV_LIBNAME = ["cuda"]
CXXFLAGS = ["-O2", "-g0", "-w"]
__import__("parallel")
"""
# setuptools compiles an extension's sources one after another; on all cores PyCUDA takes a minute instead of two.
PARALLEL = """\
import concurrent.futures
import contextlib
import os

with contextlib.suppress(ImportError, AttributeError):
    from distutils.ccompiler import CCompiler

    one_by_one = CCompiler.compile

    def together(compiler, sources, *arguments, **options):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return sum(pool.map(lambda source: one_by_one(compiler, [source], *arguments, **options), sources), [])

    CCompiler.compile = together
"""
# One symbol that PyCUDA refers to: a linker that drops libraries without use must keep this one.
STUB = 'extern "C" int cuInit(unsigned) { return 0; }\n'


class PreparationError(Exception):
    """What went wrong, and the remedy."""


def main() -> int:
    """Make PyCUDA importable in this environment; 0 done or not needed here, 1 failed."""
    if installed():
        return 0
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        print("PyCUDA is not installed: the GPU tests are skipped here, the simulated driver needs Linux on x86_64")
        return 0
    try:
        pip("install it", "install", str(wheel()), "numpy")  # which PyCUDA does not declare
    except (PreparationError, OSError) as error:
        print(
            f"PyCUDA {VERSION}, which the GPU tests need, was not installed: {error}\n"
            "  a PyCUDA of your own is taken as it is: .venv/bin/pip install pycuda, then make again",
            file=sys.stderr,
        )
        return 1
    return 0


def installed() -> bool:
    """Whether a PyCUDA is there, without its import, which needs a driver."""
    try:
        version = importlib.metadata.version("pycuda")
    except importlib.metadata.PackageNotFoundError:
        return False
    return tuple(map(int, re.findall(r"\d+", version)[:2])) >= OLDEST


def cuda() -> tuple[Path, str]:
    """Where NVIDIA's wheels lie, and the version of CUDA they carry, as "13.0"."""
    try:
        found = importlib.metadata.distribution(HEADERS)
    except importlib.metadata.PackageNotFoundError:
        raise PreparationError(
            f"{HEADERS}, which carries cuda.h, is missing; pip install --editable '.[test]'"
        ) from None
    header = next((file for file in found.files or () if file.name == "cuda.h"), None)
    if header is None:
        raise PreparationError(
            f"{HEADERS} {found.version} carries no cuda.h; reinstall it: pip install --force-reinstall"
        )
    return Path(str(found.locate_file(header))).parents[1], ".".join(found.version.split(".")[:2])


def wheel(python: str = sys.executable) -> Path:
    """PyCUDA for this Python, or for another one that has pip: of an earlier build, or built now."""
    kept = folder(python)
    return next(kept.glob("*.whl"), None) or build(kept, python)


def folder(python: str) -> Path:
    """Where wheels that fit a Python, CUDA and this machine's C library are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    key = (f"pycuda-{VERSION}", f"cuda{cuda()[1]}", interface(python), *platform.libc_ver())
    return Path(root, "hybrid-engine", "wheels", "-".join(filter(None, key)))


def interface(python: str) -> str:
    """What the extensions of a Python are named after, as "cpython-312-x86_64-linux-gnu"."""
    ask = "import sysconfig; print(sysconfig.get_config_var('SOABI') or '')"
    return subprocess.run([python, "-c", ask], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def build(kept: Path, python: str) -> Path:
    """Download PyCUDA's source, build it, and keep the wheel; builds that race replace each other's whole file."""
    print(f"building PyCUDA {VERSION} (a minute or two, once on this machine)", flush=True)
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        source = download(work, python)
        (source / "siteconf.py").write_text(CONFIGURATION.format(root=str(cuda()[0]), stub=str(stub(work))))
        (source / "parallel.py").write_text(PARALLEL)
        pip("build it", "wheel", "--no-deps", "--wheel-dir", str(work / "wheel"), str(source), python=python)
        return keep(next((work / "wheel").glob("*.whl")), kept)


def download(work: Path, python: str) -> Path:
    """The folder of PyCUDA's unpacked source."""
    wanted = ("--no-deps", "--no-binary", "pycuda", f"pycuda=={VERSION}")
    pip("download its source", "download", "--dest", str(work), *wanted, python=python)
    with tarfile.open(next(work.glob("*.tar.gz"))) as archive:
        archive.extractall(work, filter="data")
    return next(path for path in work.glob("pycuda-*") if path.is_dir())


def stub(work: Path) -> Path:
    """The folder of a library for the linker that bears the name of the driver's."""
    compiler = os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++"
    options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(work / "libcuda.so"), "-x", "c++", "-"]
    remedy = f"{compiler} builds no shared library; apt install g++, dnf install gcc-c++, or name one: make CXX=clang++"
    try:
        done = subprocess.run([*shlex.split(compiler), *options], input=STUB, capture_output=True, text=True)
    except OSError as error:
        raise PreparationError(f"{remedy} ({error})") from None
    if done.returncode:
        raise PreparationError(f"{remedy}\n{done.stderr}")
    return work


def keep(made: Path, folder: Path) -> Path:
    """Copy a wheel into the cache in one step, so that nobody finds half of one."""
    kept = folder / made.name
    folder.mkdir(parents=True, exist_ok=True)
    part = kept.with_suffix(f".part{os.getpid()}")
    shutil.copyfile(made, part)
    os.replace(part, kept)
    return kept


def pip(purpose: str, *arguments: str, python: str = sys.executable) -> None:
    """Run a Python's pip; where it fails, its last words say why."""
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        said = "\n".join("    " + line for line in done.stdout.splitlines()[-40:])
        raise PreparationError(
            f"pip could not {purpose}\n{said}\n"
            "  pip needs a package index (PIP_INDEX_URL names another) and the build a C++ compiler with Python's headers"
        )


if __name__ == "__main__":
    sys.exit(main())
