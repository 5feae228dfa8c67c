"""Checks, then times: rivals take turns in one run, every sample is kept, one JSON line per result.

If the samples of one rival spread widely, all repeat their turns, up to ROUNDS times, and the calmest round counts. A figure is
the median of its samples. `interval` is its bootstrap interval, `load` the use of the machine by others meanwhile.
"""

import functools
import importlib
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.harness.quiet import Load, between, laps, snapshot
from hybrid.machine import processor

CONFIDENCE, RESAMPLES, SEED = 0.95, 9_999, 0


def of_median(values: Sequence[float]) -> list[float] | None:
    """Returns the interval of the median; None for fewer than two values."""
    return _bootstrap((values,), np.median)


def of_ratio(over: Sequence[float], under: Sequence[float]) -> list[float] | None:
    """Returns the interval of the ratio of the medians of unpaired samples; None if either has fewer than two."""

    def ratio(over: np.ndarray, under: np.ndarray, axis: int) -> Any:
        return np.median(over, axis=axis) / np.median(under, axis=axis)

    return _bootstrap((over, under), ratio)


def _bootstrap(samples: tuple[Sequence[float], ...], statistic: Any) -> list[float] | None:
    """Returns a percentile interval: bias correction fails if all samples are equal. The numbers equal SciPy's
    `stats.bootstrap`, which a machine with a GPU may lack."""
    if min(map(len, samples)) < 2:
        return None
    rng = np.random.default_rng(SEED)
    drawn = [np.asarray(one)[rng.integers(0, len(one), (RESAMPLES, len(one)))] for one in samples]
    tail = 50 * (1 - CONFIDENCE)
    return [float(end) for end in np.percentile(statistic(*drawn, axis=-1), (tail, 100 - tail))]


LEAST = 5  # minimum turns of each rival, except in quick mode
NOISY = 0.2  # share of the median: a wider range of samples is repeated, and marked if it persists
FIRST = bool(os.environ.get("FIRST"))  # bench/first_ten.sh: seconds are few, and a device's clocks fall in a pause
ROUNDS = 1 if FIRST else 2  # maximum rounds: a third one takes time, and is seldom calm if the second one is not
PAUSE = 0.0 if FIRST else 0.1  # seconds; the previous rival's OpenMP threads spin for 20 ms, on the cores of the next


@dataclass
class Work:
    """One rival at one work: `run()` does it once and is complete when it returns.

    work, params   the work ("units.step") and its sizes: equal for rivals at the same work
    who            "ours", or the peer's name and version
    amount, unit   the amount of work per run: value = amount / seconds, in `unit`
    check          raises if the result of run() is wrong; a wrong result is never timed
    moved          minimum bytes that one run moves, for the share of the machine's bandwidth; None: not memory-bound
    own_clock      run() returns the seconds to count, because part of its time is not the work
    device         where the work is done
    more           additional entries of the record, by name
    """

    work: str
    who: str
    params: dict[str, Any]
    amount: float
    unit: str
    run: Callable[[], Any]
    check: Callable[[], Any]
    moved: float | None = None
    threads: int = 1
    warm: int = 1
    own_clock: bool = False
    device: str = "cpu"
    more: dict[str, Any] = field(default_factory=dict)
    samples: list[float] = field(default_factory=list)
    set_aside: list[float] = field(default_factory=list)


def measure(works: list[Work], repeat: int = 7, bandwidth: float | None = None) -> list[dict]:
    """Checks every rival, then measures them in `repeat` turns; returns one record per rival, in the given order.

    bandwidth: bytes per second of the machine, measured in the same run; gives `bandwidth_share` for works with `moved`. If a
    spread exceeds NOISY, the turns are repeated, up to ROUNDS times; uncounted samples are `set_aside`. On a first contact a
    rival that fails is removed from `works`, and the others are measured.
    """
    for work in list(works):
        try:
            _prepare(work)
        except Exception as error:
            if not FIRST or work is works[0]:
                raise
            print(f"{work.who} is left out: {type(error).__name__}: {error}", flush=True)
            works.remove(work)
    rounds = [_turns(works, repeat)]
    while _widest(min(rounds, key=_widest)) > NOISY and len(rounds) < ROUNDS:
        rounds.append(_turns(works, repeat))
    (samples, load), *others = sorted(rounds, key=_widest)
    for number, work in enumerate(works):
        work.samples = samples[number]
        work.set_aside = [taken for one, _ in others for taken in one[number]]
    return [record(work, bandwidth, load) for work in works]


def _prepare(work: Work) -> None:
    work.run()
    work.check()
    for _ in range(work.warm):
        work.run()


def near(what: str, found, expected, first=0.0, tolerance: float = 1e-4) -> None:
    """Raises AssertionError unless ||found - expected|| is at most `tolerance` of the change ||expected - first||.

    A step may change its weights by little, so two float32 roundings of the result are allowed in addition.
    """
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    error, change = np.linalg.norm(found - expected), np.linalg.norm(expected - first)
    allowed = tolerance * change + 2**-23 * np.linalg.norm(expected)
    if not error <= allowed:
        raise AssertionError(
            f"{what}: off by {error:.3g} where {allowed:.3g} is allowed, of a change of {change:.3g}; "
            "a wrong result is not timed"
        )


Round = tuple[list[list[float]], Load | None]  # seconds of each work at each turn; others' load meanwhile


def _turns(works: list[Work], repeat: int) -> Round:
    """Measures one round of all works."""
    samples: list[list[float]] = [[] for _ in works]
    before = snapshot()
    for _ in range(repeat):
        for work, found in zip(works, samples, strict=True):
            time.sleep(PAUSE)
            start = time.perf_counter()
            own = work.run()
            found.append(own if work.own_clock else time.perf_counter() - start)
    return samples, between(before, snapshot())


def _widest(turns: Round) -> float:
    """Returns the largest spread of all works."""
    return max(_spread([1 / seconds for seconds in found]) for found in turns[0])


def _spread(values: list[float]) -> float:
    return (max(values) - min(values)) / statistics.median(values)


def record(work: Work, bandwidth: float | None = None, load: Load | None = None) -> dict:
    """Returns the record of a rival whose samples, in seconds, are complete."""
    values = [work.amount / seconds for seconds in work.samples]
    value = statistics.median(values)
    found: dict[str, Any] = {
        "bench": work.work.split(".")[0],
        "work": work.work,
        "who": work.who,
        "params": work.params,
        "unit": work.unit,
        "value": value,
        "samples": values,
        "interval": of_median(values),
        "seconds": statistics.median(work.samples),
        "spread": _spread(values),
        "checked": True,
        "threads": work.threads,
        "device": work.device,
        "load": load and load._asdict(),
        "commit": commit(),
        "env": environment(),
    }
    if work.moved and bandwidth:
        found["bandwidth_share"] = work.moved / found["seconds"] / bandwidth
    if work.set_aside:
        found["set_aside"] = [work.amount / seconds for seconds in work.set_aside]
    return found | work.more


def show(records: list[dict]) -> None:
    """Prints a table: each rival's figure with interval and spread, its share of the bandwidth, and our ratio to it."""
    ours = next((record for record in records if record["who"] == "ours"), None)
    print(f"\n{records[0]['work']}  {records[0]['params']}")
    for record in records:
        share = f"{record['bandwidth_share']:6.0%} of bandwidth" if "bandwidth_share" in record else ""
        ratio = f"ours is {ours['value'] / record['value']:.3g} x this" if ours and record is not ours else ""
        where = f"{record['threads']} threads" if record["device"] == "cpu" else record["device"]
        between = "({:.4g} to {:.4g})".format(*record["interval"]) if record.get("interval") else ""
        print(
            f"  {record['who']:<34} {record['value']:>12.4g} {between:<24} {record['unit']:<14} +-{record['spread'] / 2:4.0%}"
            f"{' (noisy)' * (record['spread'] > NOISY)}  {where}  {share}  {ratio}",
            flush=True,
        )
    load = records[0].get("load")
    if load and Load(**load).busy:
        print(
            f"  others took {load['others']:.2f} of {load['cores']} cores meanwhile, other machines {load['stolen']:.2f}"
        )


def append(path: str | None, records: list[dict]) -> None:
    """Appends one line per record to a .jsonl file (None: nowhere); a record without load gets that since the last call."""
    load = laps.lap()
    meanwhile = {"load": load._asdict()} if load else {}
    if path:
        with open(path, "a") as file:
            for record in records:
                file.write(json.dumps(record | meanwhile if record.get("load") is None else record) + "\n")


@functools.cache
def peer(module: str) -> Any:
    """Returns the module of a rival; None if it cannot be imported, with one message: ours is then measured alone."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        print(f"{module} is not measured: {error}; pip install 'hybrid-engine[bench]'", flush=True)
        return None


def commit() -> str:
    """Returns the commit of the checkout, with a "+" if it has changes; HYBRID_COMMIT of a plain copy, else "unknown"."""
    if carried := os.environ.get("HYBRID_COMMIT"):
        return carried
    here = os.path.dirname(__file__)
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        found = subprocess.run(command, cwd=here, capture_output=True, text=True)
    except FileNotFoundError:  # no git
        return "unknown"
    return found.stdout.strip() or "unknown"


def made_by(threads: int) -> dict[str, Any]:
    """Returns the common record entries of a CPU figure measured without a Work."""
    return {"threads": threads, "device": "cpu", "checked": True, "commit": commit(), "env": environment()}


def environment() -> dict[str, Any]:
    """Returns processor, cores, operating system and the versions of packages that the figures depend on."""
    packages = ("numpy", "scipy", "numba", "annoy", "hnswlib", "pycuda", "torch", "gensim", "fasttext-wheel")
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "os": platform.platform(),
        "python": sys.version.split()[0],
    } | versions
