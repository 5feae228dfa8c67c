"""A package of everything that a lent GPU machine without a network lacks: `make gpu-kit` runs `python -m bench.gpu.kit`.

Such a machine has Python 3.12, CUDA with nvcc, NumPy, SciPy, Numba, PyTorch and pytest. The result in build/ is
    gpu-kit   wheels: PyCUDA and Annoy, published as source only and built for that Python, and their dependencies
    cache     the kernels, compiled for TARGET, in an archive of a fifth of their size
    golden    a recording of the original Predictive Vision Model, if RECORDING exists
    commit    the commit of this checkout, which is copied without its history
GPU_PYTHON names a Python of another version. bench/first_ten.sh uses all of it there. `python -m bench.gpu.kit compile [sm_90]`
compiles the kernels alone; on the device those that the cache lacks. File names have a hash of source and compiler version, so
under another compiler all are compiled there, on all cores.
"""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from bench.harness.measure import commit
from gpu import install
from gpu.runtime import kernels

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
KIT = BUILD / "gpu-kit"
CACHE = BUILD / "cache"
GOLDEN = BUILD / "golden" / "A_poly4_float32.npz"
RECORDING = ROOT.parent / "shared" / "golden" / GOLDEN.name
VERSION = (3, 12)  # Python version
TARGET = "sm_90"  # an H100 or an H200
MOST = 12_000_000  # maximum bytes of all wheels
BUILT = ("pycuda", "annoy")
PUBLISHED = ("pytools", "mako", "platformdirs", "siphash24", "tbb", "tcmlib", "cut-cross-entropy")
# Annoy defaults to the building processor's instruction set, which the GPU machine may lack.
ANNOY = "-O3,-march=x86-64-v3,-fpermissive,-ffast-math,-fno-associative-math,-DANNOYLIB_MULTITHREADED_BUILD,-std=c++14"


class KitError(Exception):
    """A missing part, with the remedy."""


def main(arguments: list[str] | None = None) -> int:
    """Builds and lists everything, or compiles; returns 0 if done, 1 if failed."""
    if command := sys.argv[1:] if arguments is None else arguments:
        return _compile(*command[1:])
    try:
        build(find_python(os.environ.get("GPU_PYTHON")))
        prepare()
    except (KitError, install.PreparationError, OSError, subprocess.CalledProcessError) as error:
        print(f"the kit was not built: {error}", file=sys.stderr)
        return 1
    for name in ("gpu-kit", "cache", "golden", "commit"):
        files = [path for path in (BUILD / name, *(BUILD / name).rglob("*")) if path.is_file()]
        print(f"  {_bytes(files) / 1e6:5.1f} MB  build/{name}")
    print("carry the checkout with these to the GPU machine, and there: bash bench/first_ten.sh results 545")
    return 0


def find_python(named: str | None) -> str:
    """Returns the path of the named Python, or of a Python 3.12 that can create environments; KitError if there is none."""
    pyenv = sorted(Path.home().glob(".pyenv/versions/{}.{}*/bin/python3".format(*VERSION)))
    found = [path for name in ([named] if named else ["python3.12", *map(str, pyenv)]) if (path := shutil.which(name))]
    for path in found:
        if _suits(path, exactly=not named):
            return path
    wanted = "no Python {}.{}".format(*VERSION) if not named else f"GPU_PYTHON={named}: no Python"
    raise KitError(
        f"{wanted} with the module venv is found (looked at: {', '.join(found) or 'nothing'})\n"
        "  Debian, Ubuntu: apt install python3.12 python3.12-venv python3.12-dev    Fedora: dnf install python3.12-devel\n"
        "  anywhere: uv python install 3.12, or pyenv install 3.12\n"
        "  then, where it is not on the PATH, or where the GPU machine has another version: "
        "make gpu-kit GPU_PYTHON=/path/to/python"
    )


def _suits(python: str, exactly: bool) -> bool:
    ask = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-c", ask], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    found = tuple(map(int, done.stdout.split()))
    return done.returncode == 0 and (found == VERSION if exactly else found >= (3, 11))


def build(python: str) -> None:
    """Creates the folder of wheels for a Python atomically, so that it is never incomplete."""
    print(f"collecting wheels for {python}", flush=True)
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as made:
        environment, part = Path(made, "environment"), Path(made, "part")
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        collect(str(environment / "bin" / "python"), part)
        if (size := _bytes(part.glob("*.whl"))) > MOST:
            raise KitError(
                f"the wheels are {size:,} bytes, expected {MOST:,} at most; PUBLISHED in {__file__} names them"
            )
        shutil.rmtree(KIT, ignore_errors=True)
        os.replace(part, KIT)


def collect(python: str, folder: Path) -> None:
    """Puts the wheels of BUILT and of PUBLISHED into a new folder."""
    folder.mkdir()
    into = ("wheel", "--no-deps", "--wheel-dir", str(folder))
    shutil.copy(install.wheel(python), folder)
    install.pip("collect wheels", *into, *PUBLISHED, python=python)
    os.environ["ANNOY_COMPILER_ARGS"] = ANNOY
    try:  # pip's own cache may have a build for this processor
        install.pip("build Annoy", *into, "--no-cache-dir", "annoy", python=python)
    finally:
        del os.environ["ANNOY_COMPILER_ARGS"]


def prepare() -> None:
    """Adds kernels, recording and commit to the wheels. Missing ones are reported; the device makes or omits them."""
    shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(mode=0o700)
    command = [sys.executable, "-m", "bench.gpu.kit", "compile", TARGET]
    with tempfile.TemporaryDirectory(dir=BUILD) as made:
        if subprocess.run(command, cwd=ROOT, env=os.environ | {"XDG_CACHE_HOME": made}).returncode:
            print("the device will compile the kernels, which takes it half a minute")
        else:
            with tarfile.open(CACHE / "cubins.tar.gz", "w:gz") as archive:
                archive.add(made, ".")
    record()


def record() -> None:
    """Copies the recording, if it exists, and writes the commit."""
    if RECORDING.exists():
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(RECORDING, GOLDEN)
    (BUILD / "commit").write_text(f"{commit()}\n")


def compile_kernels(target: str) -> str:
    """Compiles every kernel for "sm_90", several in parallel; returns a message. OSError if one does not compile."""
    began, sources = time.perf_counter(), sorted(kernels.HERE.glob("*.cu"))
    before = set(kernels.cache().iterdir())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        paths = list(pool.map(lambda source: kernels.cubin(source, target), sources))
    made = len({*paths} - before)
    return f"{len(paths)} files for {target} in {kernels.cache()}, {made} compiled, {time.perf_counter() - began:.0f} s"


def _compile(target: str | None = None) -> int:
    """Compiles for a target, else for the first device; returns the exit code."""
    try:
        print(compile_kernels(target or _target()), flush=True)
    except OSError as error:
        print(f"not compiled: {error}", file=sys.stderr)
        return 1
    return 0


def _target() -> str:
    import pycuda.driver as driver

    driver.init()
    return kernels.target(driver.Device(0).compute_capability())


def _bytes(files) -> int:
    return sum(file.stat().st_size for file in files)


if __name__ == "__main__":
    sys.exit(main())
