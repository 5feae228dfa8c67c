"""What the first minutes on a GPU machine run, run here: `python -m bench gpu --rehearse`.

A clean environment of the kit's Python has what such a machine is taken to have, NumPy, SciPy and Numba (no PyTorch: it is
gigabytes), and bench/first_contact.sh runs there on the simulated driver, with small sizes. What is missing is said as it
would be there. Figures mean nothing.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench import gpu_kit
from gpu import install

MACHINE = gpu_kit.ROOT / "build" / "rehearsal"
OUT = gpu_kit.ROOT / "build" / "rehearsed"


def rehearse(out: str | None) -> int:
    """Make the kit where there is none and the environment, and run the script; returns its exit code, 2 where it cannot run.

    out  the script's folder; None: build/rehearsed, anew
    """
    try:
        python = gpu_kit.find_python(os.environ.get("GPU_PYTHON"))
        if not list(gpu_kit.KIT.glob("*.whl")):
            gpu_kit.build(python)
        made = machine(python)
    except (gpu_kit.KitError, install.PreparationError, OSError, subprocess.CalledProcessError) as error:
        print(f"nothing was rehearsed: {error}", file=sys.stderr)
        return 2
    if out is None:
        shutil.rmtree(OUT, ignore_errors=True)
    command = [made, "-m", "tests.cudasim", "bash", "bench/first_contact.sh", str(Path(out or OUT).absolute())]
    return subprocess.run(command, cwd=gpu_kit.ROOT, env=surroundings(made)).returncode


def machine(python: str) -> str:
    """The Python of a clean environment that has what the machine has."""
    present = [one for one in gpu_kit.requirements() if gpu_kit.name(one) in gpu_kit.PRESENT]
    print(f"making an environment of {python} with {', '.join(present)}", flush=True)
    subprocess.run([python, "-m", "venv", "--clear", str(MACHINE)], check=True)
    made = str(MACHINE / "bin" / "python")
    install.pip("install what the machine has", "install", "--quiet", *present, python=made)
    return made


def surroundings(python: str) -> dict[str, str]:
    """Variables of the rehearsal: nothing of this Python, and no limits for a real device."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    headers = {} if "CUDA_ROOT" in kept else {"CUDA_ROOT": str(install.cuda()[0])}
    return kept | headers | {"PYTHON": python, "CUDASIM": "1", "QUICK": "1", "SLOWER": "8"}
