"""The speed of our kernels while other processes use the cores, for each wait policy of the threads.

OpenMP's threads spin at the end of every parallel loop for a configured time. If another process occupies a core, the late
thread is the one that does not run. Its partner then spins through the rest of its own time slice. So the setting determines
the speed on a busy machine. Every setting gets a process of its own, since a runtime reads it once; all take turns under every
load. A load of n is n processes that only count.
"""

import concurrent.futures
import functools
import itertools
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from bench.harness.measure import append, made_by
from hybrid.machine import available

# "ours" is the package's default: TBB, or OpenMP that spins 3,000 times (cpu/runtime/threads.py).
NAMES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "NUMBA_THREADING_LAYER")
SETTINGS: dict[str, dict[str, str]] = {
    "ours": {},
    "omp, active by default": {"NUMBA_THREADING_LAYER": "omp", "GOMP_SPINCOUNT": "300000"},
    "omp, 3,000 spins": {"NUMBA_THREADING_LAYER": "omp", "GOMP_SPINCOUNT": "3000"},
}
SECONDS = 1.0  # duration of a work per turn; the first tenth is not counted
SPIN = "while True: pass"

Found = dict[tuple[str, int], list[list[float]]]  # (setting, load) -> for each turn the seconds of every step


def run(arguments) -> None:
    """Prints the table of works x loads x settings; --only selects some."""
    cores = available()
    loads = (0, 1) if arguments.quick else sorted({0, 1, cores, 2 * cores})
    turns = 1 if arguments.quick else arguments.repeat
    works = arguments.only or (("tree",) if arguments.quick else tuple(WORKS))
    seconds = 0.1 if arguments.quick else SECONDS
    workers = {name: _worker(setting) for name, setting in SETTINGS.items()}
    try:
        for work in works:
            found = _measured(workers, work, loads, turns, seconds, arguments.threads)
            _show(work, found, loads, arguments.threads)
            facts = {"bench": "busy", "work": f"busy.{work}", "unit": "steps/s"} | made_by(arguments.threads)
            for (name, load), times in found.items():
                append(arguments.json, [facts | {"who": name, "params": {"load": load}} | _figures(times)])
    finally:
        for worker in workers.values():
            worker.shutdown()


def _worker(setting: dict[str, str]) -> concurrent.futures.ProcessPoolExecutor:
    """Returns a process in which this setting is in force."""
    kept = {name: os.environ.pop(name, None) for name in NAMES}
    os.environ |= setting
    worker = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    worker.submit(os.getpid).result()  # waits until it has started with the environment
    for name, value in kept.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    return worker


def _measured(workers, work: str, loads, turns: int, seconds: float, threads: int) -> Found:
    """Returns the turns of each setting under each load; settings without a runtime are left out."""
    found: Found = {}
    able = {}
    for name, worker in workers.items():
        try:
            worker.submit(_steps, work, threads, 0.1).result()  # compiles, and starts the threads
            able[name] = worker
        except (ImportError, ValueError) as error:
            print(f"{name}: left out, {error}")
    for _, load in itertools.product(range(turns), loads):
        spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(load)]
        try:
            for name, worker in able.items():
                found.setdefault((name, load), []).append(worker.submit(_steps, work, threads, seconds).result())
        finally:
            for process in spinning:
                process.kill()
                process.wait()
    return found


def _steps(work: str, threads: int, seconds: float) -> list[float]:
    """Returns the seconds of each step of a work, repeated for about `seconds`."""
    step = _ready(work, threads)
    begin, found = time.perf_counter(), []
    while (start := time.perf_counter()) < begin + seconds:
        step()
        if start > begin + seconds / 10:
            found.append(time.perf_counter() - start)
    return found or [time.perf_counter() - begin]


@functools.cache
def _ready(work: str, threads: int):
    return WORKS[work](threads)


def _learning(step: Callable[[], float]) -> Callable[[], float]:
    """Returns the step after checking that its losses are numbers and fall."""
    losses = np.array([step() for _ in range(32)])
    if not np.nanmean(losses[16:]) < np.nanmean(losses[:16]):
        raise AssertionError(f"the loss does not fall: {losses}")
    return step


def _tree(threads: int):
    import numba

    from hybrid import TreeReadout

    numba.set_num_threads(threads)
    classes, batch, width = 100_000, 1024, 128
    counts = np.maximum(1e9 / np.arange(1, classes + 1), 1).astype(np.int64)
    readout = TreeReadout(counts, width, batch=batch)
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((batch, width), np.float32)
    share = np.cumsum(counts / counts.sum())
    targets = itertools.cycle(np.searchsorted(share, rng.random((16, batch))).astype(np.int32))
    grad = np.empty_like(hidden)
    return _learning(lambda: readout.step(grad, hidden, next(targets)))


def _language(threads: int, overlap: bool | None):
    from bench.step.language import ZipfFeed, make_engine

    feed = ZipfFeed(10_000, 512)
    engine = make_engine(feed, "tree", threads)
    engine.overlap = overlap if threads > 1 else False
    ticks = engine.run(feed)
    return _learning(lambda: next(ticks).loss)


WORKS: dict[str, Callable[[int], Callable]] = {
    "tree": _tree,
    "language in turn": functools.partial(_language, overlap=False),
    "language overlapped": functools.partial(_language, overlap=True),
}
ONLY = tuple(WORKS)


def _figures(turns: list[list[float]]) -> dict:
    """Returns steps per second, over all turns and for each turn; the median and 99th percentile of a step's seconds."""
    rates = [len(steps) / sum(steps) for steps in turns]
    steps = list(itertools.chain(*turns))
    value = len(steps) / sum(steps)
    figures = {"value": value, "samples": rates, "spread": (max(rates) - min(rates)) / value, "steps": len(steps)}
    return figures | {"median_seconds": statistics.median(steps), "p99_seconds": float(np.quantile(steps, 0.99))}


def _show(work: str, found: Found, loads, threads: int) -> None:
    """Prints steps per second under each load, relative to the quiet figure, and the 99th percentile of a step."""
    print(f"\n{work}, {threads} threads: load: steps a second (of quiet; milliseconds: median, 99 of 100 are below)")
    for name in dict.fromkeys(name for name, _ in found):
        quiet, cells = _figures(found[name, 0])["value"], []
        for load in loads:
            one = _figures(found[name, load])
            middle, slow = 1e3 * one["median_seconds"], 1e3 * one["p99_seconds"]
            cells.append(f"{load}: {one['value']:8,.0f} ({one['value'] / quiet:4.2f}; {middle:6.2f}, {slow:7.2f})")
        print(f"  {name:<24} " + "   ".join(cells), flush=True)
