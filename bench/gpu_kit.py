"""Wheels for a GPU machine without a network: `make gpu-kit`, which runs `python -m bench.gpu_kit`.

Such a machine is taken to have Python 3.12, PyTorch, NumPy, SciPy, Numba and the CUDA toolkit, and nothing else. What we and
our tests need besides is collected in build/gpu-kit: PyCUDA and Annoy, which are published as source only, built here for that
Python, the other wheels as they are published, and pip. GPU_PYTHON names another Python, of the version that the machine has.
bench/first_contact.sh installs the folder there; `python -m bench gpu --rehearse` does so here.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from gpu import install

ROOT = Path(__file__).parents[1]
KIT = ROOT / "build" / "gpu-kit"
REQUIREMENTS = "requirements.txt"  # in the kit: what is to be installed, with what of it the machine has to have
VERSION = (3, 12)  # of Python
MOST = 60_000_000  # bytes of all wheels
PRESENT = ("numpy", "scipy", "numba", "llvmlite")  # on the machine: they would take most of the room
TESTS = ("pytest", "pytest-xdist", "hypothesis")  # of the extra `test`: what tests/gpu cannot do without
RIVALS = ("cut-cross-entropy",)  # of `bench gpu`; without what it needs, which PyTorch brings
# Annoy asks for the processor that compiles it, which the GPU machine may not have.
ANNOY = "-O3,-march=x86-64-v3,-fpermissive,-ffast-math,-fno-associative-math,-DANNOYLIB_MULTITHREADED_BUILD,-std=c++14"


class KitError(Exception):
    """What is missing, and the remedy."""


def main() -> int:
    """Build the kit and list it; 0 done, 1 failed."""
    try:
        build(find_python(os.environ.get("GPU_PYTHON")))
    except (KitError, install.PreparationError, OSError) as error:
        print(f"the kit was not built: {error}", file=sys.stderr)
        return 1
    wheels = sorted(KIT.glob("*.whl"))
    for wheel in wheels:
        print(f"  {wheel.stat().st_size / 1e6:5.1f} MB  {wheel.name}")
    print(
        f"{len(wheels)} wheels, {_bytes(wheels) / 1e6:.0f} MB, in {KIT.relative_to(ROOT)}\n"
        "carry the checkout with this folder to the GPU machine, and there: bash bench/first_contact.sh results"
    )
    return 0


def find_python(named: str | None) -> str:
    """The path of the Python named, or of a Python 3.12 that can make environments; KitError where there is none."""
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
    """Make the folder for a Python, in one step, so that half of one is never taken for whole."""
    print(f"collecting wheels for {python}", flush=True)
    KIT.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KIT.parent) as made:
        environment, part = Path(made, "environment"), Path(made, "part")
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        collect(str(environment / "bin" / "python"), part, requirements())
        if (size := _bytes(part.glob("*.whl"))) > MOST:
            raise KitError(
                f"the wheels are {size:,} bytes, expected {MOST:,} at most; PRESENT in {__file__} leaves some out"
            )
        shutil.rmtree(KIT, ignore_errors=True)
        os.replace(part, KIT)


def requirements() -> list[str]:
    """What the engine and its GPU tests need, as pip takes it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], "pycuda", *(one for one in extras["test"] if name(one) in TESTS)]


def collect(python: str, folder: Path, wanted: list[str]) -> None:
    """Put the wheels of what is wanted, and of all that it needs in turn, into a new folder, but for what is PRESENT."""
    folder.mkdir()
    into = ("wheel", "--wheel-dir", str(folder))
    shutil.copy(install.wheel(python), folder)
    _annoy(python, into)
    install.pip("collect wheels", *into, "--find-links", str(folder), "--prefer-binary", *wanted, "pip", python=python)
    install.pip("collect the rivals", *into, "--no-deps", *RIVALS, python=python)
    for wheel in folder.glob("*.whl"):
        if name(wheel.name) in PRESENT:
            wheel.unlink()
    (folder / REQUIREMENTS).write_text("\n".join(wanted) + "\n")


def _annoy(python: str, into: tuple[str, ...]) -> None:
    """Build Annoy for any processor of ten years; pip's own cache may have one that was built for this one."""
    os.environ["ANNOY_COMPILER_ARGS"] = ANNOY
    try:
        install.pip("build Annoy", *into, "--no-deps", "--no-cache-dir", "annoy", python=python)
    finally:
        del os.environ["ANNOY_COMPILER_ARGS"]


def name(text: str) -> str:
    """The name at the beginning of a requirement, or of a wheel's file."""
    return re.match(r"[A-Za-z0-9._]+(-[A-Za-z][A-Za-z0-9._]*)*", text)[0].lower()  # type: ignore[index]


def _bytes(wheels) -> int:
    return sum(wheel.stat().st_size for wheel in wheels)


if __name__ == "__main__":
    sys.exit(main())
