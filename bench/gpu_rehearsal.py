"""What the first minutes on a lent GPU machine run, run here: `python -m bench gpu --rehearse`.

bench/first_ten.sh runs on the simulated driver, with small sizes, in a clean Python of the kit's version that has NumPy alone;
the steps `overlap` and `tests` come last, once it has what else such a machine has. Then the host's part of each step is taken
at full size, without a launch: whether a step keeps its cap depends on it. No figure says anything about a device.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench import gpu_kit
from gpu import install

MACHINE = gpu_kit.BUILD / "rehearsal"
OUT = gpu_kit.BUILD / "rehearsed"
FIRST = (*"facts install smoke ceilings units pvm tree softmax rows ragged".split(),)  # need NumPy and the kit
LAST = ("overlap", "tests")
PRESENT = "scipy numba threadpoolctl matplotlib pillow tqdm packaging pytest pytest-xdist hypothesis".split()
SECONDS = "1000"  # of either call; on a device all have 545


def rehearse(out: str | None) -> int:
    """Make the kit where there is none and the environment, and run the script; returns 0, 1 where a step failed, 2 where it
    cannot run.

    out  the script's folder; None: build/rehearsed, anew
    """
    folder = Path(out or OUT).absolute()
    if out is None:
        shutil.rmtree(folder, ignore_errors=True)
    try:
        python = gpu_kit.find_python(os.environ.get("GPU_PYTHON"))
        if not list(gpu_kit.KIT.glob("*.whl")):
            gpu_kit.build(python)
        gpu_kit.record()
        made = machine(python)
        failed = _script(made, folder, FIRST)
        install.pip("install what else the machine has", "install", "--quiet", *PRESENT, python=made)
        wheels = map(str, gpu_kit.KIT.glob("*.whl"))
        install.pip("install the kit", "install", "--quiet", "--no-index", "--no-deps", *wheels, python=made)
        failed += _script(made, folder, LAST)
    except (gpu_kit.KitError, install.PreparationError, OSError, subprocess.CalledProcessError) as error:
        print(f"nothing was rehearsed: {error}", file=sys.stderr)
        return 2
    failed += subprocess.run([made, "-m", "bench.gpu_rehearsal"], cwd=gpu_kit.ROOT, env=surroundings(made)).returncode
    return 1 if failed else 0


def machine(python: str) -> str:
    """The Python of a clean environment with NumPy."""
    print(f"making an environment of {python} with NumPy", flush=True)
    subprocess.run([python, "-m", "venv", "--clear", str(MACHINE)], check=True)
    made = str(MACHINE / "bin" / "python")
    install.pip("install NumPy", "install", "--quiet", "numpy", python=made)
    return made


def surroundings(python: str) -> dict[str, str]:
    """Variables of the rehearsal: nothing of this Python, and no caps for a real device."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    headers = {} if "CUDA_ROOT" in kept else {"CUDA_ROOT": str(install.cuda()[0])}
    return kept | headers | {"PYTHON": python, "CUDASIM": "1", "QUICK": "1", "SLOWER": "8"}


def _script(python: str, folder: Path, steps: tuple[str, ...]) -> int:
    command = [python, "-m", "tests.cudasim", "bash", "bench/first_ten.sh", str(folder), SECONDS, *steps]
    return subprocess.run(command, cwd=gpu_kit.ROOT, env=surroundings(python)).returncode


# The host's part of each step, in the clean Python


def main(quick: bool = False) -> int:
    """Print the seconds of each part; returns 0."""
    print(
        "\nThe host's part of each step at full size, without launches; in brackets seconds of all cores:", flush=True
    )
    first = before = time.perf_counter(), time.process_time()
    for step, what, part in parts(quick):
        part()
        now = time.perf_counter(), time.process_time()
        print(f"  {step:<9} {now[0] - before[0]:5.1f} s ({now[1] - before[1]:4.1f})  {what}", flush=True)
        before = now
    print(f"  {'all':<9} {before[0] - first[0]:5.1f} s ({before[1] - first[1]:4.1f})", flush=True)
    return 0


def parts(quick: bool) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Step, what is made, and what makes it; a step that makes it several times takes so much longer."""
    from bench import gpu_units

    yield "ceilings", "factors of a product, and some of its rows in float64", partial(_product, quick)
    for momentum in (0.0, gpu_units.MOMENTUM):
        what = f"a collection of equal units, momentum {momentum:g}"
        yield "units", what, partial(gpu_units.collection, quick, 1, momentum)
    yield "pvm", "wiring, layout and weights of flat210m", partial(_weights, quick)
    if gpu_kit.GOLDEN.exists():
        yield "pvm", "the recording", _recording
    yield from _tree(quick)
    yield "softmax", "classes, batches and what the first step makes of them", partial(_classes, quick)
    yield "rows", "the table, and ids", partial(_rows, quick)
    yield "ragged", "a collection of ragged units", lambda: next(gpu_units.ragged(None, quick))  # type: ignore[arg-type]


def _product(quick: bool) -> None:
    import numpy as np

    from bench.gpu_ceilings import QUICK_SIDE, SAMPLE, SIDE

    side, rng = QUICK_SIDE if quick else SIDE, np.random.default_rng(3)
    a, b = (rng.standard_normal((side, side), np.float32) for _ in range(2))
    _ = a[:SAMPLE].astype(np.float64) @ b.astype(np.float64)


def _weights(quick: bool) -> None:
    import numpy as np

    from bench.pvm import TINY
    from hybrid.pvm import initial
    from hybrid.pvm.config import Config
    from hybrid.pvm.layout import tape_layout
    from hybrid.pvm.presets import load
    from hybrid.pvm.rules import wire

    config = Config(**TINY) if quick else load("flat210m")[0]
    initial.weights(tape_layout(wire(config), config), config, 0, np.float32)


def _recording() -> None:
    from tests.golden import read

    read(gpu_kit.GOLDEN)


def _tree(quick: bool) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    from bench.gpu_tree import QUICK_SWEEP, QUICK_TREES, TREES, first_ways
    from bench.tree_task import BATCH, Task, learned

    made: list[Task] = []
    classes, batch = (QUICK_TREES[0], QUICK_SWEEP[0]) if quick else (TREES[0], BATCH)
    yield "tree", "nodes, targets and hidden vectors", lambda: made.append(Task(classes, 1, batch=batch))
    yield "tree", "the Huffman tree", lambda: made[0].tree
    ways = [*first_ways(batch)]
    yield (
        "tree",
        f"what a step makes of them, in {len(ways)} ways",
        lambda: [learned(made[0], way.together, way.top) for way in ways],
    )


def _classes(quick: bool) -> None:
    from bench.gpu_sparse import classification

    classification(quick)


def _rows(quick: bool) -> None:
    import numpy as np

    from bench.gpu_sparse import IDS, QUICK_IDS, QUICK_ROWS, QUICK_WIDTH, ROWS, TURNS, WIDTH, zipf

    size, width, ids = (QUICK_ROWS, QUICK_WIDTH, QUICK_IDS[-1]) if quick else (ROWS, WIDTH, IDS[-1])
    rng = np.random.default_rng(7)
    rng.standard_normal((size, width), np.float32)
    rng.permutation(size)
    zipf(rng, size, (TURNS, ids))


if __name__ == "__main__":
    sys.exit(main())
