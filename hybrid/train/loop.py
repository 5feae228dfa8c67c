"""One training run: progress, evaluation, checkpoints, a clean stop on a signal, and a report."""

import contextlib
import math
import resource
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import console
from ..engine import Engine
from ..engine.schedule import Tick
from ..feeds import Feed
from ..storage.checkpoint import CHECKPOINT
from . import store
from .saving import Saves

CLOCKS = ("seconds", "processor_seconds")  # of training
KNOWN = (*CLOCKS, "evaluation_seconds", "examples", "loss")  # what every point of a curve has, beside its tick
USER_ERRORS = (ValueError, IndexError, OSError, FloatingPointError)


class Job(NamedTuple):
    """What is trained on what.

    feed         the training batches, over all epochs
    make         builds the engine, untrained
    evaluate     engine -> figures by name, shown beside the progress bar and kept in the curve
    evaluations  how many times an epoch
    final        engine -> figures of the trained model on the test data, for the report alone: nothing is chosen by them
    data         digest of what validates, and of test items too; run.json keeps it
    """

    feed: Feed
    make: Callable[[], Engine]
    evaluate: Callable[[Engine], dict[str, float]]
    evaluations: int = 4
    final: Callable[[Engine], dict[str, float]] = lambda engine: {}
    data: str | None = None


class Stopped(Exception):
    """The run was stopped by a signal; what it had learned stands in its checkpoint."""

    def __init__(self, number: int, tick: int, folder: Path):
        super().__init__(f"stopped at tick {tick}; go on with: hybrid train --resume {folder}")
        self.signal = number


class Stop:
    """While open, SIGINT, SIGTERM and SIGHUP ask for a stop at the next tick instead of ending the process; twice ends it.

    A signal that is ignored stays so (SIGHUP under nohup). Python hands signals to the main thread alone, so in another
    one this does nothing.
    """

    signal = 0

    def __enter__(self):
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                before = signal.getsignal(number)
                if before not in (signal.SIG_IGN, None):  # None: a handler of C code's own
                    self._before[number] = before
                    signal.signal(number, self._note)
        return self

    def _note(self, number, frame):
        if self.signal:
            raise KeyboardInterrupt
        self.signal = number

    def __exit__(self, *exception):
        for number, handler in self._before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def leaving(folder: Path) -> Iterator[None]:
    """While a run learns: an error that ends it says what is left of it, and how to begin again where it diverged."""
    try:
        yield
    except USER_ERRORS as failure:
        if isinstance(failure, FloatingPointError):
            failure.add_note("begin again with lower rates and --overwrite")
        failure.add_note(store.standing(folder))
        raise


class Progress:
    """What a run has done so far; `facts` is JSON-able and travels in the checkpoint.

    seconds counts training alone, processor_seconds the same over all threads, waiting ones that spin included;
    evaluation_seconds evaluation alone, none of them saving; loss is a running mean over about the last 50 ticks.
    """

    def __init__(self, facts: dict | None):
        begun: dict[str, Any] = {"examples": 0, "loss": None, "curve": []}
        begun |= dict.fromkeys((*CLOCKS, "evaluation_seconds"), 0.0)
        self.facts = begun | (facts or {})
        self._start = _clocks()

    def note(self, tick: Tick) -> None:
        """Count a finished tick."""
        self.facts["examples"] += tick.examples
        if tick.examples:
            before = self.facts["loss"]
            self.facts["loss"] = tick.loss if before is None else before + (tick.loss - before) / 50

    def pause(self) -> None:
        """Stop the clocks of training."""
        for name, now, start in zip(CLOCKS, _clocks(), self._start, strict=True):
            self.facts[name] += now - start

    def go_on(self) -> None:
        """Start the clocks of training again."""
        self._start = _clocks()

    def evaluated(self, evaluate: Callable[[Engine], dict[str, float]], engine: Engine) -> dict[str, float]:
        """Figures of the engine, and a point of the curve with them; on the clock of evaluation.

        JSON has no NaN, which a figure of nothing is: in the curve it is null.
        """
        start = time.perf_counter()
        figures = evaluate(engine)
        self.facts["evaluation_seconds"] += time.perf_counter() - start
        known = {name: self.facts[name] for name in KNOWN}
        sayable = {name: None if math.isnan(value) else value for name, value in figures.items()}
        self.facts["curve"].append({"tick": engine.tick} | known | sayable)
        return figures

    @property
    def rate(self) -> float:
        """Examples a second of training."""
        return self.facts["examples"] / self.facts["seconds"] if self.facts["seconds"] else 0.0


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def train(
    job: Job, folder: Path, engine: Engine, facts: dict | None = None, label: str = "", save_every: float | None = None
) -> dict:
    """Train the engine to the end of the job's feed; returns the report and leaves the last checkpoint in `folder`.

    What is measured at the end alone, `job.final`, is in the report, and its time in evaluation_seconds.

    facts       from a checkpoint, with its engine, to go on with a feed that `check_same` finds the same; None starts anew
    save_every  seconds between checkpoints; 0: only at the beginning, after every epoch, on a stop and at the end

    Raises Stopped, after a checkpoint, on SIGINT, SIGTERM or SIGHUP; FloatingPointError when a loss is not finite or a
    figure infinite, and OSError when a checkpoint cannot be written: then the last one stands.
    """
    total = len(job.feed)
    progress, saves = Progress(facts and facts["progress"]), Saves(save_every)
    if facts and engine.tick == total:
        return _report(job, engine, progress)

    def keep() -> None:
        progress.pause()
        save(engine, job, progress, folder)
        saves.done()
        progress.go_on()

    bar = console.bar(total, label, "ticks", engine.tick)
    with Stop() as stop, bar, leaving(folder):
        progress.go_on()
        if facts is None:
            keep()  # so that whatever begins can go on
        with contextlib.closing(_ticks(engine, job.feed, keep)) as ticks:
            for tick in ticks:
                progress.note(tick)
                bar.update()
                if _due(job, engine.tick):
                    _evaluate(job, engine, progress, bar)
                if engine.tick == total or stop.signal:
                    break
                if saves.due() or engine.tick % job.feed.ticks_per_epoch == 0:
                    keep()
        keep()
    if engine.tick < total:
        raise Stopped(stop.signal, engine.tick, folder)
    return _report(job, engine, progress)


def check_same(feed: Feed, saved: dict, tick: int, folder: Path) -> None:
    """ValueError unless a checkpoint of so many ticks goes on with this feed, which may have more epochs than its own."""
    ours = feed.describe()
    if ours.keys() != saved.keys() or any(saved[name] != value for name, value in ours.items() if name != "epochs"):
        raise ValueError(f"feed: the data or its options differ from those of the checkpoint in {folder}")
    if tick > len(feed):
        done = -(-tick // feed.ticks_per_epoch)
        raise ValueError(f"--epochs: found {feed.epochs}, expected at least {done}, which the run has begun")


def save(engine: Engine, job: Job, progress: Progress, folder: Path) -> None:
    """Write the run's checkpoint."""
    engine.save(folder / CHECKPOINT, {"feed": job.feed.describe(), "progress": progress.facts})


def _ticks(engine: Engine, feed: Feed, keep: Callable[[], None]) -> Generator[Tick, None, None]:
    """Those of the engine. Where the feed fails, the engine stands between two ticks and is kept."""
    try:
        yield from engine.run(feed)
    except USER_ERRORS:
        if engine.torn is None:
            keep()
        raise


def _due(job: Job, tick: int) -> bool:
    """Whether to evaluate after so many ticks: as often an epoch as the job says, after its last tick in any case."""
    size, parts = job.feed.ticks_per_epoch, job.evaluations
    return tick % size in {0, *(size * part // parts for part in range(1, parts))}


def _evaluate(job: Job, engine: Engine, progress: Progress, bar) -> None:
    progress.pause()
    figures = progress.evaluated(job.evaluate, engine)
    shown = {name: f"{value:.4g}" for name, value in figures.items()}
    bar.set_postfix(shown | {"examples/s": f"{progress.rate:,.0f}"})
    for name, value in figures.items():
        if math.isinf(value):
            raise FloatingPointError(f"tick {engine.tick}: {name} is {value}: the model has diverged")
    progress.go_on()


def _report(job: Job, engine: Engine, progress: Progress) -> dict[str, Any]:
    facts = progress.facts
    start = time.perf_counter()
    final = job.final(engine)
    evaluation = facts["evaluation_seconds"] + time.perf_counter() - start
    return {
        **facts["curve"][-1],
        "evaluation_seconds": evaluation,
        "examples_per_second": progress.rate,
        "parameters": engine.size,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "threads": engine.threads,
        "device": engine.dense.name,
        "rows_device": engine.embedding.backend.name,
        "readout_device": engine.readout.backend.name,
        "pace": engine.cores.line() if engine.cores else None,
        "stages": engine.trace.summary(),
        "curve": facts["curve"],
        **final,
    }
