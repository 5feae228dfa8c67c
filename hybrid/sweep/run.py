"""A sweep under way: its trials handed to workers, what becomes of each kept at once, the best chosen to go on."""

import contextlib
import math
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

from .. import console
from ..models import MODELS
from ..storage import atomic, lock
from ..train import store
from ..train.job import Watched
from ..train.stop import Stop
from . import picture, records, strategies, table
from .asked import Asked
from .file import Sweep
from .records import Record, Records
from .trial import Outcome, Task, perform

POLL = 0.2  # seconds between two looks for a signal


class Stopped(Exception):
    """The sweep was stopped by a signal; what its trials had learned stands in their folders."""

    def __init__(self, number: int):
        super().__init__("stopped; the same command goes on")
        self.signal = number


class Result(NamedTuple):
    """What a sweep found: its records, best first, by which figure."""

    ordered: list[Record]
    figure: Watched
    table: str


def run(
    sweep: Sweep,
    folder: Path,
    workers: int,
    threads: int,
    retry: bool = False,
    executor: Callable[[int], Executor] = ThreadPoolExecutor,
) -> Result:
    """Train all trials that are not recorded in the folder yet, and write table and picture.

    threads   CPU threads of each worker
    retry     whether trials that failed before are tried again, from where they stand
    executor  makes what performs tasks, given the number of workers

    Raises ValueError for trials that cannot be, a folder of another sweep, and where no trial succeeds; Stopped on SIGINT,
    SIGTERM or SIGHUP, once the trials under way are saved.
    """
    varied, rungs = strategies.trials(sweep), strategies.rungs(sweep)
    store.refuse_taken(folder)
    records.refuse_strangers(folder)
    atomic.make(folder)
    with lock.held(folder):
        under_way = UnderWay(sweep, folder, varied, threads, _figure(sweep, folder, varied[0]))
        if retry:
            under_way.forget_failed()
        with Stop() as stop, under_way.pool(executor, workers) as pool, under_way.bar(rungs):
            going = list(range(1, len(varied) + 1))
            for rung in rungs:
                going = under_way.best(rung, going)
                under_way.climb(rung, going, pool, stop)
        return under_way.result()


class UnderWay:
    """A sweep under way, in a folder that is held."""

    def __init__(self, sweep: Sweep, folder: Path, varied: list[dict[str, Any]], threads: int, figure: Watched):
        self._sweep, self._folder, self._varied, self._threads = sweep, folder, varied, threads
        self._figure, self._length = figure, Asked(sweep.model).length
        self._records: Records = records.load(folder)
        self._bar: Any = None
        self._climbed: strategies.Rung | None = None

    def forget_failed(self) -> None:
        """Forget what failed, so that it is tried again."""
        self._records = {key: record for key, record in self._records.items() if record.value is not None}

    @contextlib.contextmanager
    def pool(self, executor: Callable[[int], Executor], workers: int) -> Iterator[Executor]:
        """What performs tasks. Whatever ends the context, trials under way are asked to stop, and waited for."""
        stop = self._folder / records.STOP
        stop.unlink(missing_ok=True)
        pool = executor(workers)
        try:
            yield pool
        finally:
            stop.touch()
            pool.shutdown(wait=True, cancel_futures=True)
            stop.unlink()

    @contextlib.contextmanager
    def bar(self, rungs: list[strategies.Rung]) -> Iterator[None]:
        """How many trials are left, on stderr."""
        total = sum(rung.most for rung in rungs)
        with console.bar(total, "sweep", "trials", min(len(self._records), total)) as self._bar:
            yield

    def best(self, rung: strategies.Rung, going: list[int]) -> list[int]:
        """Of the trials that have climbed the rung before, the best, which climb this one; at first all."""
        if self._climbed is None:
            return going
        climbed = [self._records[number, self._climbed.length] for number in going]
        done = [record for record in climbed if record.value is not None]
        return sorted(record.trial for record in records.best_first(done, self._figure.lowest)[: rung.most])

    def climb(self, rung: strategies.Rung, going: list[int], pool: Executor, stop: Stop) -> None:
        """Train those trials to the length of the rung that are not recorded there."""
        left = [number for number in going if (number, rung.length) not in self._records]
        futures = {pool.submit(perform, self._task(number, rung.length)): number for number in left}
        while futures:
            done, _ = wait(futures, POLL, FIRST_COMPLETED)
            for future in done:
                self._note(futures.pop(future), rung.length, future)
            if stop.signal:
                raise Stopped(stop.signal)
        self._climbed = rung

    def result(self) -> Result:
        """Write table and picture."""
        ordered = records.best_first(self._of_this_sweep(), self._figure.lowest)
        if not ordered or ordered[0].value is None:
            cause = ordered[0].cause if ordered else "there were none"
            raise ValueError(
                f"{self._folder}: all trials failed, the first with: {cause}; mend that, then --retry goes on"
            )
        shown = table.markdown(ordered, self._figure.name, self._length)
        atomic.write(self._folder / records.TABLE, [shown.encode()])
        path = self._folder / records.PICTURE
        picture.draw(path, ordered, self._sweep.vary, self._figure.name, self._length)
        return Result(ordered, self._figure, shown)

    def _of_this_sweep(self) -> list[Record]:
        """Records of the trials that the file has now: it may have had more."""
        return [record for record in self._records.values() if record.trial <= len(self._varied)]

    def _task(self, number: int, length: int | None) -> Task:
        return Task(
            self._sweep.model,
            self._sweep.fixed | self._varied[number - 1],
            {self._length: length} if length else {},
            self._threads,
            str(self._folder / name_of(number)),
            str(self._folder / records.STOP),
        )

    def _note(self, number: int, length: int | None, future: Future[Outcome]) -> None:
        """Keep what became of a trial; of one that was stopped there is nothing to keep."""
        report, cause = future.result()
        if report is None and cause is None:
            return
        record = Record(number, length, self._varied[number - 1], cause=cause)
        if report is not None:
            value = value_of(report, self._figure)
            record = record._replace(value=value, seconds=report["curve"][-1]["seconds"])
            if value is None:
                record = record._replace(cause=f"{self._figure.name} is not a finite number")
        self._records[number, length] = record
        records.keep(self._folder, self._records)
        if record.cause:
            console.note(f"trial {number} ({strategies.said(record.options)}) failed: {record.cause}")
        self._bar.update()


def name_of(number: int) -> str:
    """The folder of a trial's run."""
    return f"trial-{number:03}"


def value_of(report: dict[str, Any], figure: Watched) -> float | None:
    """The figure of a run: that of its last point; of the best, where the run could stop early, as `hybrid eval` takes it.

    None where it is not a finite number; ValueError where points of the run's curve have no such figure.
    """
    values = [point[figure.name] for point in report["curve"] if figure.name in point]
    if not values:
        found = [name for name, value in report["curve"][-1].items() if isinstance(value, float)]
        goal = "minimise" if figure.lowest else "maximise"
        raise ValueError(f"[sweep] {goal}: found {figure.name!r}, expected a figure of the curve: {', '.join(found)}")
    best: float | None = None
    for value in values if report["options"].get("patience") else values[-1:]:
        if isinstance(value, int | float) and math.isfinite(value) and figure.better(value, best):
            best = float(value)
    return best


def _figure(sweep: Sweep, folder: Path, first: dict[str, Any]) -> Watched:
    """What trials are compared by. Asked of the first trial's data when the sweep begins, which so are known to be there."""
    if before := records.begun(folder):
        _refuse_another(sweep.raw, before[0], folder)
        return before[1]
    watched = MODELS.load(sweep.model).prepare(Asked(sweep.model).chosen(sweep.fixed | first)).watched
    if sweep.figure is None and watched is None:
        raise ValueError(
            f"[sweep]: these runs of {sweep.model} measure nothing while they learn; give them data to validate on, or say "
            'minimise = "loss"'
        )
    figure = watched if sweep.figure is None else Watched(sweep.figure, sweep.lowest)
    if watched and figure.name == watched.name and figure.lowest != watched.lowest:
        raise ValueError(
            f"[sweep]: of {figure.name!r} {'less' if watched.lowest else 'more'} is better; turn the goal round"
        )
    records.begin(folder, sweep.raw, figure)
    return figure


def _refuse_another(now: dict[str, Any], before: dict[str, Any], folder: Path) -> None:
    """ValueError unless a file says what the sweep in the folder was begun with; the number of trials may differ.

    Not of halving, whose rungs follow from it: a trial cannot go back to a shorter length.
    """
    free = set() if now["sweep"]["strategy"] == "halving" else {("sweep", "trials")}
    for name in ("sweep", "fixed", "vary"):
        ours, theirs = now.get(name, {}), before.get(name, {})
        for key in dict.fromkeys([*theirs, *ours]):
            if ours.get(key) != theirs.get(key) and (name, key) not in free:
                raise ValueError(
                    f"[{name}] {key}: found {ours.get(key, 'none')!r}, expected {theirs.get(key, 'none')!r}, with which the "
                    f"sweep in {folder} was begun; give it back, or name another --out"
                )
    if list(now["vary"]) != list(before["vary"]):
        raise ValueError(f"[vary]: found another order than the sweep in {folder} was begun with; give it back")
