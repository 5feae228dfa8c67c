"""A few checked steps of our kernels, for kernel profilers: python -m bench.gpu.once [--quick] [WORK...].

So `ncu` sees almost only our launches: no other implementation, no repetition. Sizes are small, since a profiler repeats each
launch many times, but they fill the device. It needs only NumPy and PyCUDA.
"""

import argparse
import sys
from collections.abc import Callable, Iterator

import numpy as np

from bench.gpu.machine import Machine

UNITS, SIDE, LEAVES, CLASSES = 4096, 60, 100_000, 20_000  # SIDE * SIDE units of the Predictive Vision Model
QUICK_UNITS, QUICK_SIDE, QUICK_LEAVES, QUICK_CLASSES = 4, 2, 300, 300
BATCH, QUICK_BATCH = 1024, 80


def main(arguments: list[str] | None = None) -> int:
    """Takes the steps of each work; returns 0, an error raises."""
    parser = argparse.ArgumentParser("python -m bench.gpu.once", description=__doc__)
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"of {', '.join(WORKS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, which fill nothing")
    given = parser.parse_args(arguments)
    if unknown := sorted({*given.works} - {*WORKS}):
        parser.error(f"found {unknown[0]!r}, expected some of {', '.join(WORKS)}")
    machine = Machine()
    machine.torch = None
    try:
        for work in given.works or WORKS:
            for step in WORKS[work](machine, given.quick):
                step()
            print(work, flush=True)
    finally:
        machine.close()
    return 0


def _units(machine: Machine, quick: bool) -> Iterator[Callable[[], None]]:
    """Yields one online step of units of 150-49-150, without and with momentum."""
    from bench.gpu.units import MOMENTUM, contest
    from bench.step.units import Problem, equal

    for momentum in (0.0, MOMENTUM):
        yield contest(machine, Problem(equal(QUICK_UNITS if quick else UNITS), 1, momentum)).once


def _pvm(machine: Machine, quick: bool) -> Iterator[Callable[[], None]]:
    """Yields four frames of a flat layer; its first matrices learn from the third on."""
    yield lambda: _frames(QUICK_SIDE if quick else SIDE)


def _frames(side: int) -> None:
    from dataclasses import replace

    from bench.step.pvm import Case, Feed
    from hybrid.pvm.model import PVM
    from hybrid.pvm.presets import load

    model = PVM(replace(load("flat210m")[0], grids=((side, side),)), device="cuda:0", threads=1)
    feed = Feed(model.wiring.frame, Case("flat210m"))
    errors = [model.step(feed[tick].image[0]).error for tick in range(4)]
    if not np.isfinite(errors).all():
        raise AssertionError(f"errors of the frames: found {errors}, expected numbers")


def _tree(machine: Machine, quick: bool) -> Iterator[Callable[[], None]]:
    """Yields a step of a Huffman tree whose nodes learn from the whole batch, from groups of 64, and in order."""
    from bench.gpu.tree import GROUP, tree_contest
    from bench.oracles.tree import Task

    batch = QUICK_BATCH if quick else BATCH
    task = Task(QUICK_LEAVES if quick else LEAVES, 1, batch=batch)
    for together in (batch, GROUP, 1):
        yield tree_contest(machine, task, together).once


def _softmax(machine: Machine, quick: bool) -> Iterator[Callable[[], None]]:
    """Yields a step of the full softmax, in bfloat16, TF32 and fp32."""
    from bench.gpu.sparse import QUICK_WIDTH, WIDTH, Classification, softmax_contest

    problem = Classification(*((QUICK_CLASSES, QUICK_WIDTH, QUICK_BATCH) if quick else (CLASSES, WIDTH, BATCH)))
    for kind in ("bf16", "tf32", "fp32"):
        yield softmax_contest(machine, problem, kind).once


WORKS = {"units": _units, "pvm": _pvm, "tree": _tree, "softmax": _softmax}

if __name__ == "__main__":
    sys.exit(main())
