"""Builds and installs PyCUDA without a CUDA toolkit: python -m gpu.install.

PyCUDA is published as source only, and its own build requires a toolkit, cuRAND and the driver. Here the headers come from
NVIDIA's wheels (the extras `gpu` and `test` install them) or from the toolkit in CUDA_HOME. cuRAND is left out, and a stub
replaces the driver's library, which PyCUDA loads by name on import. Built once per machine and cached as a wheel, for this
Python or another.
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

from gpu.runtime.private import private

VERSION = "2026.1"
HEADERS = "nvidia-cuda-runtime"  # the wheel with cuda.h; the others install into the same folder
CONFIGURATION = """\
CUDA_ROOT = {root!r}
CUDA_ENABLE_CURAND = False
CUDADRV_LIB_DIR = [{stub!r}]
CUDADRV_LIBNAME = ["cuda"]
CXXFLAGS = ["-O2", "-g0", "-w"]
"""
# A symbol that PyCUDA refers to: keeps linkers that drop unused libraries from dropping this one.
STUB = 'extern "C" int cuInit(unsigned) { return 0; }\n'


class PreparationError(Exception):
    """A failed step, with the remedy."""


def main() -> int:
    """Installs PyCUDA into this environment, replacing an existing one; returns 0 if done, 1 if failed."""
    try:
        install()
    except (PreparationError, OSError) as error:
        print(f"PyCUDA {VERSION} was not installed: {error}", file=sys.stderr)
        return 1
    print(f"PyCUDA {VERSION} is installed; `hybrid doctor` says whether a GPU can be used")
    return 0


def install() -> None:
    """Installs PyCUDA and its dependencies; PreparationError, with the remedy, on failure."""
    made = str(wheel())
    pip("install it", "install", made, "numpy")  # a dependency that PyCUDA does not declare
    # Replaces a build of the same version for another CUDA
    pip("install it", "install", "--force-reinstall", "--no-deps", made)


def cuda() -> tuple[Path, str]:
    """Returns the parent folder of CUDA's "include" and the version, as "13.0": of CUDA_HOME's toolkit, or the wheel's."""
    if named := os.environ.get("CUDA_HOME"):
        header = Path(named, "include", "cuda.h")
        version = re.search(r"#define CUDA_VERSION (\d+)", header.read_text()) if header.is_file() else None
        if not version:
            raise PreparationError(f"CUDA_HOME={named} has no include/cuda.h; name a CUDA toolkit, or unset it")
        return Path(named), f"{int(version[1]) // 1000}.{int(version[1]) % 1000 // 10}"
    try:
        found = importlib.metadata.distribution(HEADERS)
    except importlib.metadata.PackageNotFoundError:
        raise PreparationError(
            f"{HEADERS}, which carries cuda.h, is missing; pip install 'hybrid-engine[gpu]', or name a toolkit in CUDA_HOME"
        ) from None
    file = next((one for one in found.files or () if one.name == "cuda.h"), None)
    if file is None:
        raise PreparationError(
            f"{HEADERS} {found.version} carries no cuda.h; reinstall it: pip install --force-reinstall {HEADERS}"
        )
    return Path(str(found.locate_file(file))).parents[1], ".".join(found.version.split(".")[:2])


def wheel(python: str = sys.executable) -> Path:
    """Returns a PyCUDA wheel for this Python, or another one with pip: an earlier build, or a new one."""
    kept = folder(python)
    return next(kept.glob("*.whl"), None) or build(kept, python)


def folder(python: str) -> Path:
    """Returns the folder of wheels for a Python, CUDA and this C library; OSError if others could write there."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    key = (f"pycuda-{VERSION}", f"cuda{cuda()[1]}", interface(python), *platform.libc_ver())
    return private(Path(root, "hybrid-engine", "wheels", "-".join(filter(None, key))), "XDG_CACHE_HOME")


def interface(python: str) -> str:
    """Returns the ABI tag of a Python's extensions, as "cpython-312-x86_64-linux-gnu"."""
    ask = "import sysconfig; print(sysconfig.get_config_var('SOABI') or '')"
    return subprocess.run([python, "-c", ask], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def build(kept: Path, python: str) -> Path:
    """Downloads PyCUDA's source, builds it, and caches the wheel; concurrent builds atomically replace each other's file."""
    print(f"building PyCUDA {VERSION} (a minute or two, once on this machine)", flush=True)
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        source = download(work, python)
        (source / "siteconf.py").write_text(CONFIGURATION.format(root=str(cuda()[0]), stub=str(stub(work))))
        pip("build it", "wheel", "--no-deps", "--wheel-dir", str(work / "wheel"), str(source), python=python)
        return keep(next((work / "wheel").glob("*.whl")), kept)


def download(work: Path, python: str) -> Path:
    """Downloads and unpacks PyCUDA's source; returns its folder."""
    wanted = ("--no-deps", "--no-binary", "pycuda", f"pycuda=={VERSION}")
    pip("download its source", "download", "--dest", str(work), *wanted, python=python)
    with tarfile.open(next(work.glob("*.tar.gz"))) as archive:
        archive.extractall(work, filter="data")
    return next(path for path in work.glob("pycuda-*") if path.is_dir())


def stub(work: Path) -> Path:
    """Builds a stub library with the name of the driver's; returns its folder."""
    compiler = os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++"
    options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(work / "libcuda.so"), "-x", "c++", "-"]
    remedy = f"{compiler} builds no shared library; apt install g++, dnf install gcc-c++, or name one: CXX=clang++"
    try:
        done = subprocess.run([*shlex.split(compiler), *options], input=STUB, capture_output=True, text=True)
    except OSError as error:
        raise PreparationError(f"{remedy} ({error})") from None
    if done.returncode:
        raise PreparationError(f"{remedy}\n{done.stderr}")
    return work


def keep(made: Path, folder: Path) -> Path:
    """Copies a wheel into the cache atomically."""
    kept = folder / made.name
    part = kept.with_suffix(f".part{os.getpid()}")
    shutil.copyfile(made, part)
    os.replace(part, kept)
    return kept


def pip(purpose: str, *arguments: str, python: str = sys.executable) -> None:
    """Runs a Python's pip; on failure the exception has the end of its output."""
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        output = "\n".join("    " + line for line in done.stdout.splitlines()[-40:])
        raise PreparationError(
            f"pip could not {purpose}\n{output}\n"
            "  pip needs a package index (PIP_INDEX_URL names another) and the build a C++ compiler with Python's headers"
        )


if __name__ == "__main__":
    sys.exit(main())
