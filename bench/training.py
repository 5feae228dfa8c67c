"""A contender of the models that `hybrid train` knows: made of options, trained for any part of an epoch."""

import ctypes
import functools
import gc
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.contender import Contender, Figures, Run, Space, Train
from hybrid.train.options import choose

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")  # Linux alone has them


class Cut:
    """The first so many ticks of a feed: a schedule ends with them, whatever part of an epoch they are."""

    def __init__(self, feed: Any, ticks: int):
        self._feed, self._ticks = feed, ticks

    def __len__(self) -> int:
        return self._ticks

    def __getitem__(self, tick: int) -> Any:
        return self._feed[tick]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feed, name)


class Peak:
    """The most memory that this process holds from now on, beyond what it holds now."""

    def __init__(self) -> None:
        gc.collect()
        self._before = None
        try:
            ctypes.CDLL(None).malloc_trim(0)  # what was freed before would hide what is taken now
            RESET.write_text("5")  # the system's record of the peak begins anew
            self._before = _held("VmRSS")
        except (AttributeError, OSError):
            pass

    def bytes(self) -> int | None:
        """So far; None where the system does not say."""
        return None if self._before is None else _held("VmHWM") - self._before


def _held(name: str) -> int:
    return next(1024 * int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))


def contender(
    model: str,
    options: Mapping[str, Any],
    space: Space,
    prepare: Callable[[dict[str, Any]], Any],
    test: Callable[[Any, Any], Figures],
    *,
    valid: Callable[[Any, Any], Figures] | None = None,
    small: Callable[[dict[str, Any]], Any] | None = None,
) -> Contender:
    """One that options of `hybrid train MODEL` make.

    options  what makes it: the readout, its shape, the data, threads
    space    what is drawn, of those options that it takes
    prepare  options -> a Job whose feed is cut into ticks; `small` on the smaller data of a search
    test     (job, model) -> figures of test data
    valid    (job, model) -> figures of validation data; None: those of the job
    """
    defaults = choose(model, **options)
    taken = {name: draw for name, draw in space.items() if name in defaults}
    first = {name: defaults[name] for name in taken}
    measure = valid or (lambda job, model: job.validate(model))
    trains = [_train(model, options, made, measure, test) for made in (prepare, small) if made]
    return Contender(trains[0], taken, first, small=trains[1] if small else None)


Measure = Callable[[Any, Any], Figures]


def _train(model: str, options: Mapping[str, Any], prepare: Callable[..., Any], valid: Measure, test: Measure) -> Train:
    def train(settings: Mapping[str, Any], seed: int, epochs: float) -> Run:
        whole = max(math.ceil(epochs), 1)
        job = prepare(choose(model, **{**options, **settings, "seed": seed, "epochs": whole}))
        return learn(job, epochs, functools.partial(valid, job), functools.partial(test, job))

    return train


def learn(job: Any, epochs: float, valid: Callable[[Any], Figures], test: Callable[[Any], Figures]) -> Run:
    """Train a Job's model for so many epochs, a tick at least; kernels are compiled off the clock."""
    job.feed = Cut(job.feed, max(round(epochs * job.feed.ticks_per_epoch), 1))
    next(job.make().run(job.feed))
    peak = Peak()
    model = job.make()
    seconds, examples, whole = _timed(model, job.feed)
    measured = {"epochs": model.tick / job.feed.ticks_per_epoch, "seconds": seconds, "examples": examples}
    measured |= {"parameters": model.size, "memory": peak.bytes()}
    if not whole:
        return Run(dict, dict, **measured)
    return Run(lambda: finite(valid(model)), lambda: finite(test(model)), **measured)


def _timed(model: Any, feed: Any) -> tuple[float, int, bool]:
    """Seconds, examples, and whether the model came to the end with numbers that are finite."""
    start, examples = time.perf_counter(), 0
    try:
        for tick in model.run(feed):
            examples += tick.examples
    except FloatingPointError:
        return time.perf_counter() - start, examples, False
    seconds = time.perf_counter() - start
    return seconds, examples, all(np.isfinite(array).all() for array in model.parameters().values())


def finite(figures: Mapping[str, float]) -> Figures:
    """Those that are numbers."""
    return {name: float(value) for name, value in figures.items() if math.isfinite(value)}
