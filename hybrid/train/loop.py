"""The training loop, one for every model: progress, points of the curve, saves, a clean stop, early stopping."""

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
Observer = Callable[[Mapping[str, Any]], None]  # takes each new point of a curve


@dataclass(frozen=True)
class LoopOptions:
    """How a run is followed, saved and ended.

    label       of the progress bar
    save_every  seconds between checkpoints; 0: only at the beginning, after every epoch, on a stop and at the end
    patience    end early after so many points of the curve without a better watched figure; 0: never
    observers   take each new point of the curve
    measured    gives the model that is measured at the end; None: the one that was trained
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
    """Train a model to the end of its job's feed; returns the job's report and leaves the last checkpoint in `folder`, and in
    `folder`/best that of the best point, where the job watches a figure.

    On several ranks all call it, and do the same after each tick: see `Run`.

    What is measured at the end alone, `job.final`, is in the report, and its time in evaluation_seconds. The report's times
    of training, evaluation, saving and starting add up to the time of this call.

    facts  of a checkpoint, with its model, to resume with a feed that `check_feed` finds the same; None starts anew
    ranks  those that train this model together: a Group of hybrid/mpi, or this process alone

    Raises Stopped, after a checkpoint, on SIGINT, SIGTERM or SIGHUP; FloatingPointError when a loss is not finite or a
    figure infinite, and OSError when a checkpoint cannot be written: then the last one stands.
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


class Run:
    """One training run under way; see `train`.

    Ranks make the same ticks, and decide the same after each of them: a save that the clock of one asks for, or a signal
    that one has had, is everybody's; and of figures, by which a run ends early, those of rank 0 count. That is one small
    exchange a tick, and none where there is one rank. Who fails alone says so and ends, and is the end of all.
    """

    def __init__(
        self,
        job: Job,
        folder: Path,
        model: Model,
        progress: Progress,
        saves: "Saves",
        best: "Best",
        observers: Sequence[Observer],
        ranks: SingleRank,
    ):
        self.job, self.folder, self.model, self.progress = job, folder, model, progress
        self.saves, self.best, self.observers, self.ranks = saves, best, observers, ranks

    @property
    def finished(self) -> bool:
        """Whether nothing is left to learn."""
        return self.model.tick == len(self.job.feed) or self.best.over

    def learn(self, label: str, anew: bool) -> None:
        """To the end of the feed, to early stopping, or to a signal, which raises Stopped."""
        job, model = self.job, self.model
        bar = console.bar(len(job.feed), label, f"{job.unit}s", model.tick)
        with Stop() as stop, bar, leaving(self.folder):
            if anew:
                self.save()  # so that whatever begins can be resumed
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
        """Write the checkpoint, or the one of another name."""
        at = f"{self.job.unit} {self.model.tick}"
        facts = {"feed": self.job.feed.describe(), "progress": self.progress.facts, "at": at}
        with self.progress.spending("saving_seconds"):
            try:
                self.model.save(self.folder / name, facts)
            except ValueError as failure:  # numbers that are not finite, which the losses do not show yet
                failure.add_note("the model diverged: begin again with lower rates and --overwrite")
                raise
        if name == CHECKPOINT:  # a run is resumed from this one alone
            self.saves.done()

    def _ticks(self) -> Generator[Any, None, None]:
        """Those of the model. Where the feed fails, the model stands between two ticks and is saved.

        But not with others, who may be in the middle of a tick, waiting for this rank: then the save before stands.
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
        """Add a point to the curve, and keep the model where it is the best so far."""
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
    """The clock of a run's saves, wound from the end of one to the beginning of the next.

    every  seconds between two; 0: the clock asks for none
    """

    def __init__(self, every: float):
        self.every = every
        self.done()

    def due(self) -> bool:
        """Whether it is time for a save."""
        return self.every > 0 and time.monotonic() - self._last >= self.every

    def done(self) -> None:
        """There was a save just now."""
        self._last = time.monotonic()


class Best:
    """Follows the watched figure of a curve: which point is the best so far, and whether to stop waiting for a better one.

    watched   None: nothing is followed
    patience  how many points in a row may bring nothing better; 0: any number
    facts     JSON-able, travels in the checkpoint: "best" holds the tick, the figure's name and its value, "worse" the
              points since
    """

    def __init__(self, watched: Watched | None, patience: int, facts: dict[str, Any]):
        self._watched, self._patience, self._facts = watched, patience, facts
        facts.setdefault("worse", 0)

    def take(self, tick: int, point: Mapping[str, Any]) -> bool:
        """Whether this point of the curve is better than all before it."""
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
        """Whether nothing better has come for too long."""
        worse: int = self._facts["worse"]
        return 0 < self._patience <= worse

    def report(self) -> dict[str, Any]:
        """The best point; and why the run ended before its end, if that is so."""
        best = self._facts.get("best")
        lines = {"best": f"{best['figure']} {best['value']:.4g} at {best['tick']:,}"} if best else {}
        if self.over:
            lines["stopped early"] = f"nothing better in the last {self._facts['worse']} points of the curve"
        return lines


class JsonLines:
    """The curve as a file that grows, a point a line, which other programs can follow while the run learns.

    points  those that are known when training starts; what the file holds beyond them, of ticks that were lost when the
            run was killed, is removed
    """

    def __init__(self, path: Path, points: Iterable[Mapping[str, Any]]):
        files.write(path, [_line(point) for point in points])
        self._path, self._file = path, path.open("ab")

    def point(self, point: Mapping[str, Any]) -> None:
        """Write a line."""
        with files.naming(self._path):
            self._file.write(_line(point))
            self._file.flush()

    def close(self) -> None:
        """Close the file, through to the disk: a report that is written later does not outlive its points."""
        with files.naming(self._path), self._file:
            self._file.flush()
            os.fsync(self._file.fileno())


def _line(point: Mapping[str, Any]) -> bytes:
    return json.dumps(point).encode() + b"\n"


def tensorboard() -> ModuleType:
    """The module tensorboardX, which needs neither TensorFlow nor PyTorch; ValueError, with a remedy, where it is missing."""
    try:
        import tensorboardX
    except ImportError as error:
        raise ValueError(
            f'--tensorboard: needs tensorboardX, which cannot be imported ({error}): pip install "hybrid-engine[tensorboard]"'
        ) from None
    module: ModuleType = tensorboardX
    return module


class TensorBoard:
    """Writes figures and pictures of every point to event files in a folder.

    What stands there of `first` and later ticks, from a run that was stopped, is dropped by whoever reads them.

    The caller's thread writes. tensorboardX's own writer has a thread that waits by the wall clock: it dies when the clock
    is set back by weeks, nobody empties its queue then, and the run waits for ever.
    """

    def __init__(self, folder: Path, job: Job, first: int = 0):
        tensorboard()
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import SessionLog

        folder.mkdir(parents=True, exist_ok=True)
        # the name holds the second, the host and this: a run resumed within the second replaces no file
        self._job, self._writer = job, EventsWriter(str(folder / "events"), f".{os.getpid()}.{first}")
        if first:
            self._event(first, session_log=SessionLog(status=SessionLog.START))

    def point(self, point: Mapping[str, Any]) -> None:
        """Write figures and pictures."""
        from tensorboardX.summary import image, scalar

        step = point[self._job.unit]
        for name, figure in self._job.figures(point).items():
            self._event(step, summary=scalar(_tag(name), figure))
        for name, picture in self._job.pictures(point).items():
            self._event(step, summary=image(_tag(name), picture, dataformats="HWC"))
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def _event(self, step: int, **what: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._writer.write_event(Event(step=step, wall_time=time.time(), **what))


def _tag(name: str) -> str:
    """TensorBoard's tags have no spaces; what stands before a slash is a group."""
    return name.replace(", ", "/").replace(" ", "_")
