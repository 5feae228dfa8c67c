"""python -m tests.soak.memory [SHARE]: what 10,000 ticks of an engine and 2,000 frames of a PVM, or a share, leave in memory.

Exit code 1 where resident memory has risen by more than 1 % after a warm-up of a fifth.
"""

import argparse
import gc
import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "4")

from hybrid.pvm.model import PVM
from tests.support.small_engine import Feed, engine
from tests.support.small_pvm import TINY, Scene

TICKS, FRAMES, MOST = 10_000, 2_000, 0.01


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def risen(ticks: Iterator[Any], measured: int) -> float:
    """By what share resident memory rises over so many ticks, after a fifth as many."""
    for _ in range(measured // 5):
        next(ticks)
    before = resident()
    for _ in range(measured):
        next(ticks)
    return resident() / before - 1


def of_engine(ticks: int, folder: Path) -> Iterator[Any]:
    """Stages overlap and batches are delayed; now and then it is saved and asked."""
    trained = engine("sampled", micro_batches=2, delay=1, overlap=True)
    for tick in trained.run(Feed(2 * ticks)):
        if tick.number % (ticks // 20) == 0:
            trained.save(folder / "engine")
            trained.evaluate(Feed(1))
        yield tick


def of_pvm(frames: int, folder: Path) -> Iterator[Any]:
    """Heatmaps are learned; now and then it is saved and asked."""
    model = PVM(TINY, device="cpu", threads=2)
    for seen in model.run(Scene(2 * frames)):
        if seen.tick % (frames // 20) == 0:
            model.save(folder / "pvm")
            model.prediction()
        yield seen


def main() -> int:
    """Say by how much each has risen."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.memory", description=__doc__)
    parser.add_argument("share", type=float, nargs="?", default=1.0)
    share, worst = parser.parse_args().share, 0.0
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        for name, run, whole in (("engine, ticks", of_engine, TICKS), ("PVM, frames", of_pvm, FRAMES)):
            count = int(whole * share)
            found = risen(run(count, Path(folder)), count)
            print(f"{name}: {count}, resident memory {found:+.3%} of {resident() / 1e6:,.0f} MB")
            worst = max(worst, found)
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
