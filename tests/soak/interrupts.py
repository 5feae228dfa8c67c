"""python -m tests.soak.interrupts POINTS: Ctrl-C before the n-th line of the package, in all that a caller does; n is drawn.

Of models a third gets another one up to 30 lines later, which breaks off what the first waited for. Afterwards a model goes on
to the bytes of a run without interrupts, or it refuses, naming the remedy, and its last checkpoint does so; a step of a readout
is made or not made; a folder has a whole checkpoint; Ctrl-C is Python's own again.
"""

import argparse
import copy
import os
import random
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

os.environ.setdefault("NUMBA_NUM_THREADS", "4")

from hybrid.engine import Engine
from hybrid.pvm.model import PVM
from tests.support import readouts
from tests.support.imports import ROOT
from tests.support.small_engine import Feed, engine
from tests.support.small_pvm import TINY, Scene, walk

TICKS = 8
PACKAGES = (str(ROOT / "hybrid"), str(ROOT / "cpu"))


class Lines:
    """Counts the lines of the package that this thread executes within the context; before the lines `at` there is a Ctrl-C."""

    def __init__(self, *at: int):
        self.count, self._at = 0, at

    def __enter__(self) -> "Lines":
        sys.settrace(self._called)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(PACKAGES) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.count += 1
            if self.count in self._at:
                signal.raise_signal(signal.SIGINT)
        return self._line


class OfModel:
    """A model that stands behind two ticks, has been saved there, and is used."""

    def __init__(self, folder: Path):
        self.folder, self.model = folder, self.make()
        self.go(2)
        self.model.save(folder)

    make: Callable[[], Any]
    load: Callable[[], Any]
    go: Callable[[int], None]
    parameters: Callable[[], Any]

    def end(self) -> Any:
        """All that the model is after its last tick."""
        self.go(TICKS)
        return {name: array.tobytes() for name, array in self.parameters().items()}

    def run(self) -> None:
        """To the end."""
        self.go(TICKS)

    def save(self) -> None:
        """Once more, a tick later."""
        self.go(3)
        self.model.save(self.folder)

    def save_and_load(self) -> None:
        """Another model goes on."""
        self.model.save(self.folder)
        self.model = self.load()

    def check(self, expected: Any) -> str:
        """Go on, from the last checkpoint where the model refuses; how it went on. Raises AssertionError for other bytes."""
        how = "goes on"
        if self.model.torn:
            how = "refuses, and its checkpoint goes on"
            _refused(lambda: self.model.save(self.folder))
            self.model = self.load()
        else:
            self.model.save(self.folder)
        assert self.end() == expected, "other bytes than without an interrupt"
        self.model = self.load()
        assert self.end() == expected, "the checkpoint goes on to other bytes"
        return how


class OfEngine(OfModel):
    """An engine; `options` are its own."""

    options: ClassVar[dict[str, Any]]

    def make(self) -> Engine:
        return engine(micro_batches=2, **self.options)

    def load(self) -> Engine:
        return Engine.load(self.folder, threads=2, overlap=self.options["overlap"])[0]

    def go(self, ticks: int) -> None:
        for tick in self.model.run(Feed(TICKS)):
            if tick.number + 1 >= ticks:
                break

    def parameters(self) -> Any:
        return self.model.parameters()

    def save_within(self) -> None:
        """In every tick of a run."""
        for _ in self.model.run(Feed(TICKS)):
            self.model.save(self.folder)

    def ask(self) -> None:
        """Between the ticks of a run, and after it."""
        for _ in self.model.run(Feed(TICKS)):
            self.model.evaluate(Feed(2))
        self.model.best(Feed()[0].ids, 3)

    def copied(self) -> None:
        """A copy goes on in the place of the model."""
        self.model = copy.deepcopy(self.model)


class Serial(OfEngine):
    options: ClassVar = {"overlap": False}


class Overlapped(OfEngine):
    options: ClassVar = {"overlap": True, "kind": "sampled"}


class Delayed(OfEngine):
    options: ClassVar = {"overlap": True, "delay": 1, "kind": "full"}


class SerialDelayed(OfEngine):
    options: ClassVar = {"overlap": False, "delay": 1}


class OfPVM(OfModel):
    """A PVM that runs."""

    def make(self) -> PVM:
        return PVM(TINY, device="cpu", threads=1)

    def load(self) -> PVM:
        return PVM.load(self.folder, device="cpu", threads=1)[0]

    def go(self, ticks: int) -> None:
        for seen in self.model.run(Scene(TICKS)):
            if seen.tick + 1 >= ticks:
                break

    def parameters(self) -> Any:
        return self.model.fetch()

    def ask(self) -> None:
        """Between the ticks of a run."""
        for _ in self.model.run(Scene(TICKS)):
            self.model.expected()
            self.model.receptive_field(1, 0)


class SteppedPVM(OfPVM):
    """A PVM that is stepped."""

    def go(self, ticks: int) -> None:
        walk(self.model, Scene(TICKS), max(ticks, self.model.tick))


class OfReadout:
    """A readout alone, of a kind."""

    kind = ""

    def __init__(self, folder: Path):
        self.readout, self._steps = readouts.MAKE[self.kind](), 0
        self._before = readouts.frozen(self.readout)
        self._go(2)

    def step(self) -> None:
        """Three steps."""
        self._go(5)

    def ask(self) -> None:
        """Nothing moves."""
        self.readout.best(readouts.batch()[1], 3)
        self.readout.scores(readouts.batch()[1])

    def _go(self, steps: int) -> None:
        while self._steps < steps:
            readouts.train(self.readout, 1, self._steps)
            self._before, self._steps = readouts.frozen(self.readout), self._steps + 1

    def end(self) -> Any:
        """All that it is after its last step."""
        self._go(5)
        return readouts.frozen(self.readout)

    def check(self, expected: Any) -> str:
        """The step that was interrupted is made or not; after the others it is as without an interrupt."""
        self._steps += readouts.frozen(self.readout) != self._before
        assert self.end() == expected, "other bytes than without an interrupt: a step was made in part"
        return "goes on"


USES: list[tuple[type, str]] = [
    (kind, name)
    for kind in (Serial, Overlapped, Delayed, SerialDelayed, OfPVM, SteppedPVM)
    for name in ("run", "save", "save_and_load", "save_within", "ask", "copied")
    if hasattr(kind, name)
]
USES += [(type("OfReadout", (OfReadout,), {"kind": kind}), name) for kind in readouts.MAKE for name in ("step", "ask")]


class Uses:
    """All uses, each with its number of lines and what it leads to without an interrupt."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[int, Any]] = {}

    def interrupted(self, rng: random.Random, uses: Sequence[tuple[type, str]] = USES) -> str:
        """A use drawn, with a Ctrl-C at a line drawn; how it went on. Raises what does not hold, with a note of the line."""
        kind, name = rng.choice(uses)
        lines, expected = self._measured(kind, name)
        at = [rng.randint(1, lines)]
        if issubclass(kind, OfModel) and rng.random() < 1 / 3:
            at.append(at[0] + rng.randint(1, 30))
        told = f"{getattr(kind, 'kind', '') or kind.__name__}.{name}, lines {at} of {lines}"
        with tempfile.TemporaryDirectory(prefix="interrupts-") as folder:
            use = kind(Path(folder) / "checkpoint")
            try:
                how = self._done(use, name, at) + use.check(expected)
                assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "Ctrl-C is not Python's own again"
            except BaseException as failure:
                failure.add_note(told)
                raise
        return how

    def _done(self, use: Any, name: str, at: list[int]) -> str:
        """Do it; what there is to say of the interrupt itself: Python drops one within a generator that is thrown away."""
        try:
            with Lines(*at):
                getattr(use, name)()
        except KeyboardInterrupt:
            return ""
        return "is not told, and "

    def _measured(self, kind: type, name: str) -> tuple[int, Any]:
        """How many lines a use has, and what it ends in."""
        if (kind, name) not in self._known:
            with tempfile.TemporaryDirectory(prefix="interrupts-") as folder:
                use = kind(Path(folder) / "checkpoint")
                getattr(use, name)()  # once, so that what is made or imported the first time only is there
                use = kind(Path(folder) / "second")
                with Lines() as counted:
                    getattr(use, name)()
                self._known[kind, name] = counted.count, use.end()
        return self._known[kind, name]


def _refused(work: Callable[[], Any]) -> None:
    try:
        work()
    except ValueError as refusal:
        assert "load the last checkpoint" in str(refusal), refusal
    else:
        raise AssertionError("a torn model was saved")


def main() -> int:
    """Exit code 1 where something does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.interrupts", description=__doc__)
    parser.add_argument("points", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    uses, rng, found = Uses(), random.Random(given.seed), Counter[str]()
    for _ in range(given.points):
        try:
            found[uses.interrupted(rng)] += 1
        except Exception:
            traceback.print_exc()
            found["failed"] += 1
    print(", ".join(f"{count} {how}" for how, count in found.most_common()))
    return int(found["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
