"""The training loop of every model: progress, curve points, saves, clean and early stopping."""

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import console
from ..machine import SingleRank
from ..storage import files
from ..storage.checkpoint import CHECKPOINT
from .job import Job, Model, Watched
from .options import EVERY
from .progress import SPENT, Progress
from .stop import USER_ERRORS, Stop, Stopped, leaving
from .store import BEST

SINGLE = SingleRank()
Observer = Callable[[Mapping[str, Any]], None]  # takes each new curve point


@dataclass(frozen=True)
class LoopOptions:
    """Settings of progress, saving and early stopping of a run.

    label       of the progress bar
    save_every  seconds between checkpoints; 0: only at the start, after every epoch, on a stop and at the end
    patience    stop early after this many curve points without a better watched figure; 0: never
    observers   take each new curve point
    measured    returns the model to evaluate at the end; None: the trained one
    """

    label: str = ""
    save_every: float = EVERY
    patience: int = 0
    observers: Sequence[Observer] = ()
    measured: Callable[[], Any] | None = None


def train(
    job: Job,
    folder: Path,
    model: Model,
    facts: dict[str, Any] | None = None,
    options: LoopOptions | None = None,
    ranks: SingleRank = SINGLE,
) -> dict[str, Any]:
    """Trains a model to the end of its job's feed; returns the job's report.

    `folder` receives the last checkpoint, and `folder`/best that of the best point if the job watches a figure. On several
    ranks, all call it and act alike after each step: see `Run`.

    The report includes the final evaluation, `job.final`, and its time in evaluation_seconds. Its times of training,
    evaluation, saving and starting sum to the time of this call.

    facts  of a checkpoint, with its model, to resume with a feed accepted by `check_feed`; None starts a new run
    ranks  the ranks that train together: a Group of hybrid/mpi, or this process alone

    Raises Stopped, after a checkpoint, on SIGINT, SIGTERM or SIGHUP; FloatingPointError for a loss that is not finite or an
    infinite figure; OSError if a checkpoint cannot be written: the last one then remains.
    """
    options, progress = options or LoopOptions(), Progress(facts and facts["progress"])
    best = Best(job.watched, options.patience, progress.facts)
    run = Run(job, folder, model, progress, Saves(options.save_every), best, options.observers, ranks)
    with progress.spending("starting_seconds"):
        job.begin(model, progress.facts)
        if facts is None or not run.finished:
            run.learn(options.label, anew=facts is None)
        with progress.spending("evaluation_seconds"):
            report = job.report(model, progress.facts, progress.rate) | best.report()
            final = job.final(options.measured() if options.measured else model)
    return report | {clock: progress.facts[clock] for clock in SPENT} | final


@dataclass(eq=False)
class Run:
    """A training run in progress; see `train`.

    Ranks run the same steps and make the same decisions after each. A save due by one rank's clock, or a signal to one,
    applies to all; for early stopping, rank 0's figures count. This costs one small exchange per step, none on a single rank.
    A rank that fails alone reports it and ends all.
    """

    job: Job
    folder: Path
    model: Model
    progress: Progress
    saves: "Saves"
    best: "Best"
    observers: Sequence[Observer]
    ranks: SingleRank

    @property
    def finished(self) -> bool:
        """True if training is complete."""
        return self.model.tick == len(self.job.feed) or self.best.over

    def learn(self, label: str, anew: bool) -> None:
        """Trains to the end of the feed, to early stopping, or to a signal, which raises Stopped."""
        job, model = self.job, self.model
        bar = console.bar(len(job.feed), label, f"{job.unit}s", model.tick)
        with Stop() as stop, bar, leaving(self.folder):
            if anew:
                self.save()  # so that every started run can be resumed
            if not job.compiles:
                self.progress.begin()
            with contextlib.closing(self._ticks()) as ticks:
                for tick in ticks:
                    self._note(tick, bar)
                    if job.busy(model):
                        continue
                    signal, due = self.ranks.greatest(stop.signal, self.saves.due())
                    stop.obey(signal)
                    if self.finished or signal:
                        break
                    if due or job.ends_epoch(model.tick):
                        self.save()
            if self.finished and (last := job.ending(model, self.progress.facts)) is not None:
                self._point(last, bar)
            self.save()
        if not self.finished:
            raise Stopped(stop.signal, model.tick, self.folder, job.unit)

    def save(self, name: str = CHECKPOINT) -> None:
        """Writes the checkpoint of this name."""
        at = f"{self.job.unit} {self.model.tick}"
        facts = {"feed": self.job.feed.describe(), "progress": self.progress.facts, "at": at}
        with self.progress.spending("saving_seconds"):
            try:
                self.model.save(self.folder / name, facts)
            except ValueError as failure:  # non-finite numbers not yet visible in the losses
                failure.add_note("the model diverged: begin again with lower rates and --overwrite")
                raise
        if name == CHECKPOINT:  # the only one that runs resume from
            self.saves.done()

    def _ticks(self) -> Generator[Any, None, None]:
        """Yields the model's steps. If the feed fails, the model is between two steps and is saved.

        With several ranks it is not saved, since others may wait for this rank within a step; the previous save remains.
        """
        try:
            yield from self.job.ticks(self.model)
        except USER_ERRORS:
            if self.model.torn is None and self.ranks.size == 1:
                self.save()
            raise

    def _note(self, tick: Any, bar: Any) -> None:
        self.progress.note(self.job.note(tick, self.progress.facts))
        self.job.amend(self.model)
        bar.update()
        if (at := self.job.due(self.model)) is not None:
            self._point(at, bar)

    def _point(self, at: int, bar: Any) -> None:
        """Adds a curve point, and saves the model if it is the best so far."""
        unit = self.job.unit
        with self.progress.spending("evaluation_seconds"):
            measured = self.job.measure(self.model, self.progress.facts)
            figures = self.ranks.once(lambda: measured)
            numbers = {name: value for name, value in figures.items() if isinstance(value, float)}
            unsaid = {name: None for name, value in numbers.items() if math.isnan(value)}  # JSON has no NaN
            point = self.progress.point(unit, at, figures | unsaid)
            bar.set_postfix_str(self.job.postfix(point, self.progress.rate), refresh=self.job.logged)
            for name, value in numbers.items():
                if math.isinf(value):
                    raise FloatingPointError(f"{unit} {at}: {name} is {value}: the model has diverged")
            for observe in self.observers:
                observe(point)
            if self.best.take(at, point):
                self.save(BEST)


class Saves:
    """The timer of a run's saves, restarted at the end of each; every: seconds between two, 0: never due."""

    def __init__(self, every: float):
        self.every = every
        self.done()

    def due(self) -> bool:
        """True if a save is due."""
        return self.every > 0 and time.monotonic() - self._last >= self.every

    def done(self) -> None:
        """Restarts the timer after a save."""
        self._last = time.monotonic()


class Best:
    """The best value of the watched figure so far, and early stopping.

    watched   None: nothing is watched
    patience  allowed number of consecutive points without improvement; 0: any number
    facts     JSON-able, saved in the checkpoint: "best" holds the step, the figure's name and its value, "worse" the number
              of points since
    """

    def __init__(self, watched: Watched | None, patience: int, facts: dict[str, Any]):
        self._watched, self._patience, self._facts = watched, patience, facts
        facts.setdefault("worse", 0)

    def take(self, tick: int, point: Mapping[str, Any]) -> bool:
        """True if this curve point is the best so far."""
        if self._watched is None or (value := point.get(self._watched.name)) is None:
            return False
        best = self._facts.get("best")
        if not self._watched.better(value, best and best["value"]):
            self._facts["worse"] += 1
            return False
        self._facts |= {"best": {"tick": tick, "figure": self._watched.name, "value": value}, "worse": 0}
        return True

    @property
    def over(self) -> bool:
        """True if `patience` is exhausted."""
        worse: int = self._facts["worse"]
        return 0 < self._patience <= worse

    def report(self) -> dict[str, Any]:
        """Returns the best point, and the reason for early stopping, if any."""
        best = self._facts.get("best")
        lines = {"best": f"{best['figure']} {best['value']:.4g} at {best['tick']:,}"} if best else {}
        if self.over:
            lines["stopped early"] = f"no better one in the last {self._facts['worse']} measurements"
        return lines


class JsonLines:
    """The curve as a growing file, one point per line, which other programs can follow during training.

    points  existing points at the start; later ones in the file, from steps lost when the run was killed, are removed
    """

    def __init__(self, path: Path, points: Iterable[Mapping[str, Any]]):
        files.write(path, [_line(point) for point in points])
        self._path, self._file = path, path.open("ab")

    def point(self, point: Mapping[str, Any]) -> None:
        """Writes a line."""
        with files.naming(self._path):
            self._file.write(_line(point))
            self._file.flush()

    def close(self) -> None:
        """Syncs and closes the file, so that no later report outlives its points."""
        with files.naming(self._path), self._file:
            self._file.flush()
            os.fsync(self._file.fileno())


def _line(point: Mapping[str, Any]) -> bytes:
    return json.dumps(point).encode() + b"\n"


def tensorboard() -> ModuleType:
    """Returns the module tensorboardX, which needs neither TensorFlow nor PyTorch; ValueError, with a remedy, if missing."""
    try:
        import tensorboardX
    except ImportError as error:
        raise ValueError(f'--tensorboard: {error}: pip install "hybrid-engine[tensorboard]"') from None
    return tensorboardX


class TensorBoard:
    """A writer of every point's figures to event files in a folder.

    Readers drop existing events of step `first` and later, from a stopped run.

    It writes in the caller's thread. tensorboardX's own writer has a thread that waits by the wall clock. If the clock is set
    back by weeks, that thread dies, its queue fills up, and the run blocks forever.
    """

    def __init__(self, folder: Path, job: Job, first: int = 0):
        tensorboard()
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import SessionLog

        folder.mkdir(parents=True, exist_ok=True)
        # the name has second, host and this suffix, so that a run resumed within a second replaces no file
        self._job, self._writer = job, EventsWriter(str(folder / "events"), f".{os.getpid()}.{first}")
        if first:
            self._event(first, session_log=SessionLog(status=SessionLog.START))

    def point(self, point: Mapping[str, Any]) -> None:
        """Writes figures."""
        from tensorboardX.summary import scalar

        step = point[self._job.unit]
        for name, figure in self._job.figures(point).items():
            self._event(step, summary=scalar(_tag(name), figure))
        self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()

    def _event(self, step: int, **what: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._writer.write_event(Event(step=step, wall_time=time.time(), **what))


def _tag(name: str) -> str:
    """Returns a TensorBoard tag: without spaces, its group before a slash."""
    return name.replace(", ", "/").replace(" ", "_")
