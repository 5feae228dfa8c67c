"""The contenders of `python -m bench quality` and their problems; each can be trained for a number of epochs."""

import ctypes
import functools
import gc
import math
import os
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from hybrid.train.job import Watched
from hybrid.train.options import choose

DRAWN = 0  # the seed of the settings


class Draw(Protocol):
    """The distribution of one setting, a number or name."""

    def at(self, share: float, found: Mapping[str, Any]) -> Any:
        """Returns the value at a quantile `share` from 0 to 1; found: the settings drawn before."""


class Among(NamedTuple):
    """One of several values, possibly repeated for weight."""

    values: tuple[Any, ...]

    def at(self, share: float, found: Mapping[str, Any]) -> Any:
        """Draws a value, see Draw."""
        return self.values[int(share * len(self.values))]


class Log(NamedTuple):
    """A log-uniform number, rounded to two digits."""

    low: float
    high: float

    def at(self, share: float, found: Mapping[str, Any]) -> float:
        """Draws a value, see Draw."""
        return float(f"{math.exp(math.log(self.low) + share * math.log(self.high / self.low)):.2g}")


class By(NamedTuple):
    """A distribution conditional on an earlier setting: the rate of an optimiser; without that setting, of sgd."""

    name: str
    each: Mapping[str, Draw]

    def at(self, share: float, found: Mapping[str, Any]) -> Any:
        """Draws a value, see Draw."""
        return self.each[found.get(self.name, "sgd")].at(share, found)


Space = dict[str, Draw]

OPTIMISERS = Among(("sgd", "row-adagrad", "adagrad"))
TRUNK: Space = {
    "trunk_optimiser": Among(("sgd", "adam")),
    "trunk_rate": By("trunk_optimiser", {"sgd": Log(0.02, 0.5), "adam": Log(3e-4, 0.01)}),
    "trunk_decay": Among((0.0, 0.0, 1e-5, 1e-4)),
    "dropout": Among((0.0, 0.0, 0.1, 0.3)),
}
ADAGRAD = {"row-adagrad": Log(0.005, 0.3), "adagrad": Log(0.005, 0.3)}
# A tree learns example by example, softmaxes from the sum over a micro-batch.
BY_EXAMPLE, BY_BATCH = Log(0.01, 0.2), Log(0.002, 0.1)
RATE = {"tree": BY_EXAMPLE, "full": BY_BATCH, "sampled": BY_BATCH}


def sparse(readout: str, rows: Log) -> Space:
    """Returns optimisers and rates of rows and readout; for kinds not in RATE the union of both ranges."""
    return {
        "rows_optimiser": OPTIMISERS,
        "rows_rate": By("rows_optimiser", {"sgd": rows, **ADAGRAD}),
        "readout_optimiser": OPTIMISERS,
        "rate": By("readout_optimiser", {"sgd": RATE.get(readout, Log(0.002, 0.2)), **ADAGRAD}),
    }


def drawn(space: Space, number: int) -> dict[str, Any]:
    """Draws the number-th settings. A name has the same quantile in every space, independent of other names."""
    found: dict[str, Any] = {}
    for name, draw in space.items():
        share = np.random.default_rng([DRAWN, number, zlib.crc32(name.encode())]).random()
        found[name] = draw.at(share, found)
    return found


Figures = dict[str, float]


class Run(NamedTuple):
    """One finished training.

    valid, test  measure the model when called, untimed; no figures if it diverged
    epochs       passes over the data, possibly fractional
    seconds      of training alone
    examples     number of training examples processed
    parameters   number of trained parameters
    memory       peak bytes of the process beyond those before; None if the system does not report it
    """

    valid: Callable[[], Figures]
    test: Callable[[], Figures]
    epochs: float
    seconds: float
    examples: int
    parameters: int
    memory: int | None = None


Train = Callable[[Mapping[str, Any], int, float], Run]


class Contender(NamedTuple):
    """A training method.

    train  (settings, seed, epochs) -> Run; its schedule ends with the epochs, which may be fractional
    space  the settings that a search draws; {}: no search
    first  settings tried before any are drawn: the current defaults; the only ones without a search
    once   trained once, on one pass: it is deterministic, and more time does not help
    small  train on the smaller data of a search; None: as `train`
    """

    train: Train
    space: Space
    first: Mapping[str, Any]
    once: bool = False
    small: Train | None = None


class Problem(NamedTuple):
    """Data, the task, and the contenders.

    data        training and test data, in words
    judged      the deciding figure of validation data, and its direction
    contenders  by their names in tables
    epochs      lengths at which all are compared; a search trains for the last
    seconds     other lengths
    seeds       of every comparison
    small       a search's training data if smaller, in words
    """

    data: str
    judged: Watched
    contenders: Mapping[str, Contender]
    epochs: Sequence[float]
    seconds: Sequence[float] = (60, 120, 240, 480)
    seeds: Sequence[int] = (0, 1, 2)
    small: str | None = None


STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")  # Linux only


class Cut:
    """The first `ticks` ticks of a feed: a schedule ends with them, at any part of an epoch."""

    def __init__(self, feed: Any, ticks: int):
        self._feed, self._ticks = feed, ticks

    def __len__(self) -> int:
        return self._ticks

    def __getitem__(self, tick: int) -> Any:
        return self._feed[tick]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feed, name)


class Peak:
    """The peak memory of this process from now on, beyond the present memory."""

    def __init__(self) -> None:
        gc.collect()
        self._before = None
        try:
            ctypes.CDLL(None).malloc_trim(0)  # freed memory would hide new allocations
            RESET.write_text("5")  # resets the system's record of the peak
            self._before = _held("VmRSS")
        except (AttributeError, OSError):
            pass

    def bytes(self) -> int | None:
        """Returns the bytes so far; None if the system does not report them."""
        return None if self._before is None else _held("VmHWM") - self._before


def _held(name: str) -> int:
    return next(1024 * int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))


def contender(
    model: str,
    options: Mapping[str, Any],
    space: Space,
    prepare: Callable[[dict[str, Any]], Any],
    test: Callable[[Any, Any], Figures],
) -> Contender:
    """Builds a contender from options of `hybrid train MODEL`.

    options  fixed: the readout, its shape, the data, threads
    space    distributions of those options that the model has
    prepare  options -> a Job whose feed is cut into ticks
    test     (job, model) -> figures of test data
    """
    defaults = choose(model, **options)
    taken = {name: draw for name, draw in space.items() if name in defaults}

    def train(settings: Mapping[str, Any], seed: int, epochs: float) -> Run:
        whole = max(math.ceil(epochs), 1)
        job = prepare(choose(model, **{**options, **settings, "seed": seed, "epochs": whole}))
        return learn(job, epochs, job.validate, functools.partial(test, job))

    return Contender(train, taken, {name: defaults[name] for name in taken})


def learn(job: Any, epochs: float, valid: Callable[[Any], Figures], test: Callable[[Any], Figures]) -> Run:
    """Trains a Job's model for so many epochs, at least one tick; kernels are compiled untimed."""
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
    """Returns seconds, examples, and True if the model finished with finite parameters."""
    start, examples = time.perf_counter(), 0
    try:
        for tick in model.run(feed):
            examples += tick.examples
    except FloatingPointError:
        return time.perf_counter() - start, examples, False
    seconds = time.perf_counter() - start
    return seconds, examples, all(np.isfinite(array).all() for array in model.parameters().values())


def finite(figures: Mapping[str, float]) -> Figures:
    """Returns the finite figures."""
    return {name: float(value) for name, value in figures.items() if math.isfinite(value)}


def there(name: str) -> Path | None:
    """Returns a file or folder of data that cannot be redistributed; None, with a message, if it is missing."""
    path = Path(os.environ.get("HYBRID_DATA", "data")) / name
    if path.exists():
        return path
    print(f"{path}: not there; HYBRID_DATA names the folder that holds {name}", flush=True)
    return None
