"""What models share that learn tick by tick: one run at a time, and a model that stands between two ticks when it ends."""

from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from .guards import Held, Runs
from .schedule import Schedule, Tick, broken_off
from .trace import Trace

T = TypeVar("T")


def never(slots: list[Any]) -> bool:
    """No batch is restored or held."""
    return False


class Course(NamedTuple):
    """What one run follows: a schedule, the numbered batches, and the two questions that `Schedule.run` asks of a batch."""

    schedule: Schedule
    batches: Iterator[tuple[int, Any]]
    restore: Callable[[list[Any]], bool] = never
    hold: Callable[[list[Any]], bool] = never


class Runner(Generic[T]):
    """A model that is trained by runs, generators of ticks. T is what its caller gets of a tick.

    name, remedy  of the model, for messages; see hybrid/schedule/guards.py

    tick   ticks so far
    torn   why the parameters are no longer those of a finished tick; None while they are
    trace  when the stages of the last run were done

    A subclass says how a tick is counted (`_count`), what of it the caller gets (`_result`), and what is kept when a run
    ends (`_leave`).
    """

    def __init__(self, name: str, remedy: str):
        self.tick = 0
        self.torn: str | None = None
        self.trace = Trace()
        self._name = name
        self._schedule: Schedule | None = None
        self._runs = Runs(name, remedy)

    def settle(self) -> None:
        """Wait for what is in flight."""
        if self._schedule:
            self._schedule.wait()

    def _follow(self, lay_out: Callable[[], Course]) -> Iterator[T]:
        """The ticks of a run, which begins with the first of them; the run before it ends there."""
        return self._runs.only(self._ticks(lay_out))

    def _ticks(self, lay_out: Callable[[], Course]) -> Generator[T, None, None]:
        self._check_whole()
        with Held() as held:
            course = lay_out()
            self._schedule = schedule = course.schedule
            try:
                for tick in schedule.run(course.batches, course.restore, course.hold):
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
        """End a run; a model that could not be left whole is torn."""
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
            raise ValueError(f"{self._name}: {self.torn}; its parameters have moved in part: load the last checkpoint")

    def _count(self, tick: Tick) -> None:
        """A tick is finished; FloatingPointError where the model has diverged in it."""
        self.tick = tick.number + 1

    def _result(self, tick: Tick) -> T:
        """What the caller gets of a finished tick."""
        raise NotImplementedError

    def _leave(self) -> None:
        """A run ends: keep what it has begun, unless the model is torn, and end its queues."""
        raise NotImplementedError

    def _explain(self, failure: BaseException) -> None:
        """Raise a better error in place of what broke off a tick, where there is one."""
