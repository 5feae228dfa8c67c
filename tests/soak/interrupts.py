"""python -m tests.soak.interrupts POINTS: Ctrl-C before the n-th line of the package, in all that a caller does; n is drawn.

Of models a third gets another one up to 30 lines later, which breaks off what the first waited for. Afterwards a model goes on
to the bytes of a run without interrupts, or it refuses, naming the remedy, and its last checkpoint does so; a step of a readout
is made or not made; a folder has a whole checkpoint; Ctrl-C is Python's own again.
"""

import argparse
import copy
import functools
import os
import random
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "4")

from hybrid.engine import Engine
from hybrid.pvm.model import PVM
from tests.support import readouts
from tests.support.imports import ROOT
from tests.support.small_engine import Feed, engine
from tests.support.small_pvm import TINY, Scene, walk

TICKS = 8
PACKAGES = (str(ROOT / "hybrid"), str(ROOT / "cpu"))
ENGINES: dict[str, dict[str, Any]] = {
    "serial": {"overlap": False},
    "overlapped": {"overlap": True, "kind": "sampled"},
    "delayed": {"overlap": True, "delay": 1, "kind": "full"},
    "serial, delayed": {"overlap": False, "delay": 1},
}


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
    """A model of a kind that stands behind two ticks, has been saved there, and is used."""

    def __init__(self, kind: str, folder: Path):
        self.kind, self.folder, self.model = kind, folder, _model(kind)
        self._go(2)
        self.model.save(folder)

    def run(self) -> None:
        """To the end."""
        self._go(TICKS)

    def save(self) -> None:
        """Once more, a tick later."""
        self._go(3)
        self.model.save(self.folder)

    def save_and_load(self) -> None:
        """Another model goes on."""
        self.model.save(self.folder)
        self._load()

    def ask(self) -> None:
        """Between the ticks of a run; an engine is saved there too."""
        for _ in self._ticks():
            if isinstance(self.model, PVM):
                self.model.prediction()
                self.model.receptive_field(1, 0)
            else:
                self.model.save(self.folder)
                self.model.evaluate(Feed(2))
        if isinstance(self.model, Engine):
            self.model.best(Feed()[0].ids, 3)

    def copied(self) -> None:
        """A copy goes on in the place of the model."""
        self.model = copy.deepcopy(self.model)

    def _ticks(self) -> Iterator[int]:
        """A run; the number of ticks behind the model, after each."""
        if self.kind == "stepped pvm":
            for tick in range(self.model.tick, TICKS):
                walk(self.model, Scene(TICKS), tick + 1)
                yield tick + 1
        elif isinstance(self.model, PVM):
            yield from (seen.tick + 1 for seen in self.model.run(Scene(TICKS)))
        else:
            yield from (tick.number + 1 for tick in self.model.run(Feed(TICKS)))

    def _go(self, ticks: int) -> None:
        for done in self._ticks():
            if done >= ticks:
                break

    def _load(self) -> None:
        how: dict[str, Any] = {"device": "cpu", "threads": 1}
        if self.kind in ENGINES:
            how = {"threads": 2, "overlap": ENGINES[self.kind]["overlap"]}
        self.model = type(self.model).load(self.folder, **how)[0]

    def end(self) -> Any:
        """All that the model is after its last tick."""
        self._go(TICKS)
        arrays = self.model.fetch() if isinstance(self.model, PVM) else self.model.parameters()
        return {name: array.tobytes() for name, array in arrays.items()}

    def check(self, expected: Any) -> str:
        """Go on, from the last checkpoint where the model refuses; how it went on. Raises AssertionError for other bytes."""
        how = "goes on"
        if self.model.torn:
            how = "refuses, and its checkpoint goes on"
            _refused(lambda: self.model.save(self.folder))
            self._load()
        else:
            self.model.save(self.folder)
        assert self.end() == expected, "other bytes than without an interrupt"
        self._load()
        assert self.end() == expected, "the checkpoint goes on to other bytes"
        return how


def _model(kind: str) -> Any:
    return engine(micro_batches=2, **ENGINES[kind]) if kind in ENGINES else PVM(TINY, device="cpu", threads=1)


class OfReadout:
    """A readout alone, of a kind."""

    def __init__(self, kind: str, folder: Path):
        self.readout, self._steps = readouts.MAKE[kind](), 0
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


USES: list[tuple[type, str, str]] = [
    (OfModel, kind, name)
    for kind in (*ENGINES, "pvm", "stepped pvm")
    for name in ("run", "save", "save_and_load", "ask", *(["copied"] if kind in ENGINES else []))
]
USES += [(OfReadout, kind, name) for kind in readouts.MAKE for name in ("step", "ask")]


@functools.cache
def measured(use: tuple[type, str, str]) -> tuple[int, Any]:
    """How many lines a use has, and what it ends in."""
    make, kind, name = use
    with tempfile.TemporaryDirectory(prefix="interrupts-") as folder:
        getattr(
            make(kind, Path(folder) / "first"), name
        )()  # so that what is made or imported the first time only is there
        used = make(kind, Path(folder) / "second")
        with Lines() as counted:
            getattr(used, name)()
        return counted.count, used.end()


def interrupted(rng: random.Random, uses: Sequence[tuple[type, str, str]] = USES) -> str:
    """A use drawn, with a Ctrl-C at a line drawn; how it went on. Raises what does not hold, with a note of the line."""
    make, kind, name = use = rng.choice(uses)
    lines, expected = measured(use)
    at = [rng.randint(1, lines)]
    if make is OfModel and rng.random() < 1 / 3:
        at.append(at[0] + rng.randint(1, 30))
    with tempfile.TemporaryDirectory(prefix="interrupts-") as folder:
        used = make(kind, Path(folder) / "checkpoint")
        how = "is not told, and "  # Python drops an interrupt within a generator that is thrown away
        try:
            try:
                with Lines(*at):
                    getattr(used, name)()
            except KeyboardInterrupt:
                how = ""
            how += used.check(expected)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "Ctrl-C is not Python's own again"
        except BaseException as failure:
            failure.add_note(f"{kind}.{name}, lines {at} of {lines}")
            raise
    return how


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
    rng, found = random.Random(given.seed), Counter[str]()
    for _ in range(given.points):
        try:
            found[interrupted(rng)] += 1
        except Exception:
            traceback.print_exc()
            found["failed"] += 1
    print(", ".join(f"{count} {how}" for how, count in found.most_common()))
    return int(found["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
