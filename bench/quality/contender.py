"""What `python -m bench quality` compares: contenders at a problem, each of which can be trained for so many epochs."""

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
    """One number or name of settings."""

    def at(self, share: float, found: Mapping[str, Any]) -> Any:
        """The value at a share from 0 to 1 of what there is; found: the settings drawn before."""


class Among(NamedTuple):
    """One of some values, which may be there more than once."""

    values: tuple[Any, ...]

    def at(self, share: float, found: Mapping[str, Any]) -> Any:
        """See Draw."""
        return self.values[int(share * len(self.values))]


class Log(NamedTuple):
    """A number, evenly in the logarithm, of two digits."""

    low: float
    high: float

    def at(self, share: float, found: Mapping[str, Any]) -> float:
        """See Draw."""
        return float(f"{math.exp(math.log(self.low) + share * math.log(self.high / self.low)):.2g}")


class By(NamedTuple):
    """As another setting says, which was drawn before: the rate of an optimiser; where there is none to choose, of sgd."""

    name: str
    each: Mapping[str, Draw]

    def at(self, share: float, found: Mapping[str, Any]) -> Any:
        """See Draw."""
        return self.each[found.get(self.name, "sgd")].at(share, found)


Space = dict[str, Draw]

OPTIMISERS = Among(("sgd", "row-adagrad", "adagrad"))
TRUNK: Space = {
    "trunk_optimiser": Among(("sgd", "adagrad", "adam")),
    "trunk_rate": By("trunk_optimiser", {"sgd": Log(0.02, 0.5), "adagrad": Log(0.003, 0.1), "adam": Log(3e-4, 0.01)}),
    "trunk_decay": Among((0.0, 0.0, 1e-5, 1e-4)),
    "dropout": Among((0.0, 0.0, 0.1, 0.3)),
}
ADAGRAD = {"row-adagrad": Log(0.005, 0.3), "adagrad": Log(0.005, 0.3)}
# A tree learns example by example, softmaxes from the sum over a micro-batch.
BY_EXAMPLE, BY_BATCH = Log(0.01, 0.2), Log(0.002, 0.1)
RATE = {"tree": BY_EXAMPLE, "full": BY_BATCH, "sampled": BY_BATCH}


def sparse(readout: str, rows: Log) -> Space:
    """Optimisers and rates of rows and readout; of kinds that are not in RATE, both ranges of rates together."""
    return {
        "rows_optimiser": OPTIMISERS,
        "rows_rate": By("rows_optimiser", {"sgd": rows, **ADAGRAD}),
        "readout_optimiser": OPTIMISERS,
        "rate": By("readout_optimiser", {"sgd": RATE.get(readout, Log(0.002, 0.2)), **ADAGRAD}),
    }


def drawn(space: Space, number: int) -> dict[str, Any]:
    """The number-th settings. A name has the same share of its range in every space, whatever else is drawn."""
    found: dict[str, Any] = {}
    for name, draw in space.items():
        share = np.random.default_rng([DRAWN, number, zlib.crc32(name.encode())]).random()
        found[name] = draw.at(share, found)
    return found


Figures = dict[str, float]


class Run(NamedTuple):
    """One training that is over.

    valid, test  measure the model when they are called, off the clock; no figures where it diverged
    epochs       passes over the data, also a part of one
    seconds      of training alone
    examples     learned from
    parameters   numbers that are learned
    memory       bytes that the process took at its peak beyond what it had before; None where the system does not say
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
    """One that learns.

    train  (settings, seed, epochs) -> Run; its schedule ends where the epochs do, which may be a part of one
    space  what a search draws of its settings; {}: nothing is searched
    first  settings that are tried before any are drawn: the defaults of the time; all of them where nothing is searched
    once   it is trained once, on one pass: there is nothing random in it, and more time is no use to it
    small  train on the smaller data of a search; None: as `train`
    """

    train: Train
    space: Space
    first: Mapping[str, Any]
    once: bool = False
    small: Train | None = None


class Problem(NamedTuple):
    """Data, what is asked of a model of them, and who contends.

    data        what is learned from and measured on, in words
    judged      the figure of validation data that decides, and whether less of it is better
    contenders  by the name that tables show
    epochs      lengths at which all are compared; a search trains for the last
    seconds     other lengths
    seeds       of every comparison
    small       what a search learns from where that is less, in words
    """

    data: str
    judged: Watched
    contenders: Mapping[str, Contender]
    epochs: Sequence[float]
    seconds: Sequence[float] = (60, 120, 240, 480)
    seeds: Sequence[int] = (0, 1, 2)
    small: str | None = None


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
) -> Contender:
    """One that options of `hybrid train MODEL` make.

    options  what makes it: the readout, its shape, the data, threads
    space    what is drawn, of those options that it takes
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


def there(name: str) -> Path | None:
    """A file or folder of the data that are not ours to give away; None, which is said, where it is not there."""
    path = Path(os.environ.get("HYBRID_DATA", "data")) / name
    if path.exists():
        return path
    print(f"{path}: not there; HYBRID_DATA names the folder that holds {name}", flush=True)
    return None
