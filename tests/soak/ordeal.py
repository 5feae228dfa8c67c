"""What may happen to a run: it is left, saved, resumed, copied, asked, interrupted, broken, and ends as if it had not been."""

import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import cpu.device
from gpu.device import DeviceError
from hybrid.storage import checkpoint
from tests import cudasim
from tests.soak.case import Case, Outcome, Way
from tests.support.full_disk import Disk
from tests.support.small_runs import Killed

LEGS = 16  # in which a run is about done


class Planted(Exception):
    """What a piece of work or a feed is made to raise."""


class Work:
    """Counts what queues of the CPU do, and does something else before the n-th piece from now."""

    def __init__(self) -> None:
        self._left, self._act = -1, _nothing

    def before(self, number: int, act: Callable[[], None]) -> None:
        """Act once, before the piece of this number from now, counted from 0."""
        self._left, self._act = number, act

    def never(self) -> None:
        """Nothing is planned any more."""
        self._left = -1

    def watched(self) -> Any:
        """A context in which all pieces are counted."""
        timed = cpu.device._timed

        def counted(*arguments: Any) -> Any:
            self._left -= 1
            if self._left == -1:
                self._act()
            return timed(*arguments)

        return mock.patch.object(cpu.device, "_timed", counted)


class Breaking:
    """A feed that fails once, at a tick."""

    def __init__(self, feed: Any):
        self._feed, self.at = feed, -1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feed, name)

    def __len__(self) -> int:
        return len(self._feed)

    def __getitem__(self, tick: int) -> Any:
        if tick == self.at:
            self.at = -1
            raise Planted("the feed")
        return self._feed[tick]


class Ordeal:
    """A case's run from its beginning to its end, with trials drawn from the seed.

    done   how many ticks were computed, those that were lost and computed again among them
    log    what has happened, a line each: the trial and the tick before it
    """

    def __init__(self, case: Case, folder: Path):
        self._case, self._folder = case, folder / "checkpoint"
        self._rng = random.Random(f"ordeal {case.seed}")
        self._work, self._feed = Work(), Breaking(case.feed())
        self._ticks: dict[int, bytes] = {}
        self._running: Iterator[Any] | None = None
        self._unseen: set[int] = set()
        self._saved = False
        self.done, self.log = 0, list[str]()

    def run(self) -> Outcome:
        """All of it."""
        trials = [*TRIALS, *([] if self._case.device == "cpu" else ["on_device"])]
        self.begin()
        while not self.over:
            self.suffer(self._rng.choice(trials))
        return self.end()

    def begin(self) -> None:
        """Make the model."""
        self._model = self._case.make(self._way())

    @property
    def over(self) -> bool:
        """Whether the last tick is done."""
        return bool(self._model.tick >= self._case.ticks)

    def suffer(self, trial: str) -> None:
        """One trial."""
        self.log.append(f"tick {self._model.tick}: {trial}")
        with self._work.watched():
            getattr(self, trial)()

    def end(self) -> Outcome:
        """Go on to the last tick; what the caller got, and the model."""
        self._go(self._case.ticks + 1)
        self._leave()
        return Outcome(self._ticks, self._case.held(self._model), frozenset(self._unseen))

    # What happens

    def leave(self) -> None:
        """The caller stops, and begins another run."""
        self._go()
        self._leave()

    def abandon(self) -> None:
        """The caller begins another run, and comes back to the first."""
        self._go()
        left, self._running = self._running, None
        tick = self._model.tick
        self._go(1)
        self._unseen |= set(range(tick, tick + self._ahead)) - self._ticks.keys()
        if left and self._running:
            with pytest.raises(RuntimeError, match="found a run that ended"):
                next(left)

    def ask(self) -> None:
        """Between two ticks."""
        self._go()
        self._case.ask(self._model)

    def save(self) -> None:
        """Between two ticks of a run that goes on."""
        self._go()
        self._save()

    def resume(self) -> None:
        """The model is saved, and another process goes on."""
        self._go()
        self._save()
        self._load()

    def save_later(self) -> None:
        """The model goes on after a save, and is lost."""
        self._go()
        self._save()
        self._go()
        self._load()

    def copy(self) -> None:
        """A copy goes on."""
        self._go()
        self._complete()
        model = self._case.copy(self._model)
        self._leave()
        self._model = model

    def full_disk(self) -> None:
        """A save fails; the model goes on, and so would the save before."""
        self._go()
        self._broken_save(dead=False)

    def death_in_a_save(self) -> None:
        """What the process left on the disk goes on."""
        self._go()
        self._broken_save(dead=True)
        self._load()

    def interrupt(self) -> None:
        """Ctrl-C in a piece of work: the run ends behind its tick."""
        self._work.before(self._rng.randrange(100), _interrupt)
        self._go(20, KeyboardInterrupt)
        assert not self._model.torn, self._model.torn

    def two_interrupts(self) -> None:
        """The second one breaks off the tick."""
        self._work.before(self._rng.randrange(100), lambda: (_interrupt(), _interrupt()) and None)
        self._go(20, KeyboardInterrupt)
        self._whole_or_refused()

    def fault(self) -> None:
        """A piece of work fails."""
        self._work.before(self._rng.randrange(100), _fail)
        self._go(20, Planted)
        self._whole_or_refused()

    def feed_fails(self) -> None:
        """The feed fails; the model stands between two ticks."""
        self._leave()
        self._feed.at = self._model.tick + self._rng.randrange(5)
        self._go(20, Planted)
        assert not self._model.torn, self._model.torn
        self._feed.at = -1

    def on_device(self) -> None:
        """A call of the driver fails."""
        cudasim.fail(f"{self._rng.choice(['launch', 'copy', 'alloc'])}:{self._rng.randint(1, 100)}")
        try:
            self._go(20, DeviceError, MemoryError)
        finally:
            cudasim.fail()
        self._whole_or_refused()

    # By which

    def _way(self) -> Way:
        return Way.drawn(self._rng)

    def _go(self, ticks: int = 0, *failures: type[BaseException]) -> None:
        """Some ticks further; a run that fails has ended."""
        ticks = ticks or self._rng.randint(1, max(2, 2 * self._case.ticks // LEGS))
        try:
            for _ in range(ticks):
                self._running = self._running or self._case.run(self._model, self._feed)
                number, given = next(self._running, (None, b""))
                if number is None:
                    self._running = None
                    break
                self.done += 1
                assert self._ticks.setdefault(number, given) == given, f"tick {number} gave something else before"
        except failures as failure:
            self._running = None
            self._miss(1 if isinstance(failure, KeyboardInterrupt) else 0)
        finally:
            self._work.never()

    def _leave(self) -> None:
        running, self._running = self._running, None
        if running:
            running.close()  # type: ignore[attr-defined]
            self._miss(0)

    def _miss(self, most: int) -> None:
        """A run has ended: so many ticks, and those that a GPU was ahead, are done and were not given to the caller."""
        tick = self._model.tick
        self._unseen |= set(range(max(0, tick - most - self._ahead), tick)) - self._ticks.keys()

    @property
    def _ahead(self) -> int:
        """How many ticks a run may have done that its caller does not have."""
        return self._case.settings.get("ahead", 0) if self._case.device != "cpu" else 0

    def _whole_or_refused(self) -> None:
        """A torn model refuses by name to go on or to be saved, and the last checkpoint stands; another goes on."""
        if not self._model.torn:
            return
        for refused in (self._save, lambda: next(self._case.run(self._model, self._feed))):
            with pytest.raises(ValueError, match="load the last checkpoint"):
                refused()
        self._load()

    def _complete(self) -> None:
        """On to a tick after which the model may be saved: a PVM that runs ahead on a GPU has others under way."""
        while getattr(self._model, "under_way", 0):
            self._go(1)

    def _save(self) -> None:
        self._complete()
        self._model.save(self._folder, {"tick": self._model.tick})
        self._saved = True

    def _load(self) -> None:
        """The model of the last save, or a new one where there is none."""
        self._leave()
        model = self._case.load(self._folder, self._way()) if self._saved else self._case.make(self._way())
        if self._saved:
            assert checkpoint.read_facts(self._folder)["facts"] == {"tick": model.tick}
        self._model = model

    def _broken_save(self, dead: bool) -> None:
        """A save that fails at an operation, or dies there; a checkpoint stands if one did, or if this one is whole."""
        with pytest.MonkeyPatch.context() as patch:
            Disk(patch, self._folder, self._rng.randrange(30), dead)
            try:
                self._save()
            except Killed:
                assert dead
            except OSError as failure:
                assert "No space left" in str(failure) and not dead, failure
        self._saved = self._saved or (self._folder / "checkpoint.json").exists()


TRIALS = (
    "leave",
    "abandon",
    "ask",
    "save",
    "resume",
    "save_later",
    "copy",
    "full_disk",
    "death_in_a_save",
    "interrupt",
    "two_interrupts",
    "fault",
    "feed_fails",
)


def _nothing() -> None:
    pass


def _interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def _fail() -> None:
    raise Planted("a piece of work")
