"""One training run: progress, evaluation, checkpoints, a clean stop on a signal, and a report."""

import json
import math
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from . import atomic, console
from .engine import Engine
from .feeds import Feed
from .schedule import Tick

CHECKPOINT = "checkpoint"
CLOCKS = ("seconds", "processor_seconds")  # of training
KNOWN = (*CLOCKS, "evaluation_seconds", "examples", "loss")  # what every point of a curve has, beside its tick


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
    """While open, SIGINT and SIGTERM ask for a stop at the next tick instead of ending the process; twice ends it."""

    signal = 0

    def __enter__(self):
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _note(self, number, frame):
        if self.signal:
            raise KeyboardInterrupt
        self.signal = number

    def __exit__(self, *exception):
        for number, handler in self._before.items():
            signal.signal(number, handler)


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
        """Figures of the engine, and a point of the curve with them; on the clock of evaluation."""
        start = time.perf_counter()
        figures = evaluate(engine)
        self.facts["evaluation_seconds"] += time.perf_counter() - start
        known = {name: self.facts[name] for name in KNOWN}
        self.facts["curve"].append({"tick": engine.tick} | known | figures)
        return figures

    @property
    def rate(self) -> float:
        """Examples a second of training."""
        return self.facts["examples"] / self.facts["seconds"] if self.facts["seconds"] else math.nan


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def train(job: Job, folder: Path, engine: Engine, facts: dict | None = None, label: str = "") -> dict:
    """Train the engine to the end of the job's feed; returns the report and leaves the last checkpoint in `folder`.

    facts  from a checkpoint, with its engine, to go on; None starts anew

    Raises Stopped, after a checkpoint, on SIGINT or SIGTERM; FloatingPointError when a loss is not finite, and OSError
    when a checkpoint cannot be written: then the last one stands.
    """
    if facts and facts["feed"] != job.feed.describe():
        raise ValueError(f"feed: the data or its options differ from those of the checkpoint in {folder}")
    progress = Progress(facts and facts["progress"])
    bar = console.bar(len(job.feed), label, "ticks", engine.tick)
    with Stop() as stop, bar:
        progress.go_on()
        for tick in engine.run(job.feed):
            progress.note(tick)
            bar.update()
            if _due(job, engine.tick):
                progress.pause()
                _note_and_save(job, engine, progress, folder, bar)
                progress.go_on()
            if stop.signal and engine.tick < len(job.feed):
                break
        save(engine, job, progress, folder)
    if engine.tick < len(job.feed):
        raise Stopped(stop.signal, engine.tick, folder)
    return _report(engine, progress)


def save(engine: Engine, job: Job, progress: Progress, folder: Path) -> None:
    """Write the run's checkpoint."""
    engine.save(folder / CHECKPOINT, {"feed": job.feed.describe(), "progress": progress.facts})


def _due(job: Job, tick: int) -> bool:
    every = max(job.feed.ticks_per_epoch // job.evaluations, 1)
    return tick % every == 0 or tick == len(job.feed)


def _note_and_save(job, engine, progress, folder, bar) -> None:
    figures = progress.evaluated(job.evaluate, engine)
    shown = {name: f"{value:.4g}" for name, value in figures.items()}
    bar.set_postfix(shown | {"examples/s": f"{progress.rate:,.0f}"})
    if engine.tick % job.feed.ticks_per_epoch == 0 and engine.tick < len(job.feed):
        save(engine, job, progress, folder)


def _report(engine: Engine, progress: Progress) -> dict[str, Any]:
    facts = progress.facts
    return {
        **facts["curve"][-1],
        "examples_per_second": progress.rate,
        "parameters": engine.size,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "threads": engine.threads,
        "device": engine.dense.name,
        "rows_device": engine.embedding.backend.name,
        "readout_device": engine.readout.backend.name,
        "pace": engine.pace.line() if engine.pace else None,
        "stages": engine.trace.summary(),
        "curve": facts["curve"],
    }


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that a reader sees the old file or the whole new one."""
    atomic.write(path, [json.dumps(value, indent=1).encode(), b"\n"])
