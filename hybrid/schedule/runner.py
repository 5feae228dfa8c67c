"""The base of models trained step by step: one run at a time, which leaves the model between two steps."""

from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from .guards import Held, Runs
from .schedule import Schedule, Tick, broken_off, never_held
from .trace import Trace

T = TypeVar("T")


class Course(NamedTuple):
    """The course of a run: a schedule, the numbered batches, and the callback of `Schedule.run`."""

    schedule: Schedule
    batches: Iterator[tuple[int, Any]]
    hold: Callable[[list[Any]], bool] = never_held


class Runner(Generic[T]):
    """A model trained by runs, generators of steps; T is the caller's result per step.

    name, remedy  of the model, for messages; see hybrid/schedule/guards.py

    tick   number of finished steps
    torn   the reason why parameters are inconsistent, after an aborted step; otherwise None
    trace  stage times of the last run

    A subclass defines how a step is counted (`_count`), its result (`_result`), and what a run leaves (`_leave`).
    """

    def __init__(self, name: str, remedy: str):
        self.tick = 0
        self.torn: str | None = None
        self.trace = Trace()
        self._name = name
        self._schedule: Schedule | None = None
        self._runs = Runs(name, remedy)

    def settle(self) -> None:
        """Waits for the work in flight."""
        if self._schedule:
            self._schedule.wait()

    def _follow(self, lay_out: Callable[[], Course]) -> Iterator[T]:
        """Returns the steps of a run; the first request starts it and ends the previous run."""
        return self._runs.only(self._ticks(lay_out))

    def _ticks(self, lay_out: Callable[[], Course]) -> Generator[T, None, None]:
        self._check_whole()
        with Held() as held:
            course = lay_out()
            self._schedule = schedule = course.schedule
            try:
                for tick in schedule.run(course.batches, course.hold):
                    self._count(tick)
                    schedule.moving = False
                    result = self._result(tick)
                    with held.released():
                        yield result
            except BaseException as failure:
                if schedule.moving:
                    self.torn = self.torn or broken_off(self.tick, failure)
                    self._explain(failure)
                raise
            finally:
                self._close()

    def _close(self) -> None:
        """Ends a run; if that fails, the model is marked as inconsistent."""
        with Held():
            try:
                self._leave()
            except BaseException as failure:
                self.torn = self.torn or broken_off(self.tick, failure)
                raise
            finally:
                self._schedule = None

    def _check_whole(self) -> None:
        if self.torn:
            raise ValueError(f"{self._name}: {self.torn}; its parameters are partly updated: load the last checkpoint")

    def _count(self, tick: Tick) -> None:
        """Counts a finished step; FloatingPointError if the model diverged in it."""
        self.tick = tick.number + 1

    def _result(self, tick: Tick) -> T:
        """Returns the caller's result of a finished step."""
        raise NotImplementedError

    def _leave(self) -> None:
        """Waits for the work in flight, unless the model is inconsistent, and closes the run's queues."""
        raise NotImplementedError

    def _explain(self, failure: BaseException) -> None:
        """Raises a clearer error for an aborted step, if there is one."""
