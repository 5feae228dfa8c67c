"""Tiny runs of every model, and what has to hold of one that something interrupted."""

import functools
import hashlib
import itertools
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hybrid.models import MODELS
from hybrid.storage import checkpoint
from hybrid.train import store
from tests.support.small_runs import command, figures, ticks

from .child import Child, Event, Task

KINDS = ("language", "words", "factors", "labels", "pvm")
NEVER = float("inf")
SAID_ANEW = "begins anew"


class Broken(Exception):
    """A run that cannot go on, that has lost more than it may, or ends with other bytes."""


class Model(NamedTuple):
    """A model on a device, in its tiny form.

    words  more of its command line, of all its runs
    """

    kind: str
    device: str
    data: Path
    words: tuple[str, ...] = ()

    def command(self, out: Path, *more: str) -> list[str]:
        """The command that begins a run."""
        return command(self.kind, self.data, out, "--device", self.device, *self.words, *more)


class Whole(NamedTuple):
    """A run that nothing interrupted.

    left          what it left, see `left`
    until, takes  seconds until its first save begins, and from there to its end
    """

    model: Model
    left: dict[str, Any]
    until: float
    takes: float

    @property
    def epoch(self) -> float:
        """Ticks after which there is a save, whatever the clock says."""
        return NEVER if self.model.kind == "pvm" else self.left["ticks"] / 2  # both epochs of small_runs.command


def fresh_disk(folder: Path) -> Path:
    """An empty folder for the next turn: what stands in its place is removed."""
    shutil.rmtree(folder / "turn", ignore_errors=True)
    (disk := folder / "turn" / "disk").mkdir(parents=True)
    return disk


@functools.cache
def whole(model: Model) -> Whole:
    """Train to the end, twice, for times without compiling; what the two leave has to be the same."""
    found = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            disk = fresh_disk(Path(folder).resolve())
            child = Task(model.command(disk / "run"), disk).done()
            if child.code:
                raise Broken(f"{model.kind}: {child.said}")
            found.append(left(disk / "run"))
    if found[0] != found[1]:
        raise Broken(f"{model.kind}: two runs differ: {differing(*found)}")
    begun, saving, last = (child.events[place].seconds for place in (0, 1, -1))
    return Whole(model, found[0], saving - begun, last - saving)


def left(out: Path) -> dict[str, Any]:
    """What a run has left in the end, without clocks, and without what tells how often it was saved."""
    options = store.options_of(out)
    kept = {name for kind in MODELS.names() for name in getattr(MODELS.load(kind), "FILES", ())}
    found = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in kept if (out / name).exists()}
    for name in store.CHECKPOINTS:
        if checkpoint.stands(out / name):
            found[name] = _json(out / name / checkpoint.LATEST)["file"]  # named by its sha256
    return found | {
        "ticks": ticks(out),
        "curve": figures(out),
        "report": len(_json(out / store.REPORT)["curve"]),
        "options": {name: value for name, value in options.items() if name not in ("out", "save_every")},
    }


def differing(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """What differs between what two runs left."""
    return ", ".join(sorted(name for name in found | expected if found.get(name) != expected.get(name)))


def standing(out: Path) -> int | None:
    """The tick of the checkpoint that a run would go on from; None: there is no run, or it has not been saved yet."""
    if not (out / store.RUN).exists() or not checkpoint.stands(out / checkpoint.CHECKPOINT):
        return None
    try:
        return ticks(out)
    except (ValueError, OSError, KeyError) as error:
        raise Broken(f"no checkpoint that can be read: {error}") from error


def check_saves(events: Sequence[Event], every: float, epoch: float) -> None:
    """Broken unless there was a save at the beginning, when one was due, and after epochs of so many ticks.

    every  seconds between two saves; 0: after every tick
    """
    saved = NEVER
    for event, after in itertools.pairwise(events):
        if event.name == "saved":
            saved = event.seconds
        due = event.seconds - saved >= every or event.number % epoch == 0
        if event.name == "tick" and due and after.name in ("tick", "busy"):
            raise Broken(f"tick {event.number} was not saved: {event.seconds - saved:.3f} s after the save before it")


def check_loss(out: Path, events: Sequence[Event], before: Sequence[int | None] = (None,)) -> int | None:
    """The tick that stands; Broken unless it is that of the last save that was completed, or of one begun since.

    before  what may stand before the first save of the process that told of these events
    """
    may = [*before]
    for event in events:
        may = [event.number] if event.name == "saved" else [*may, event.number] if event.name == "saving" else may
    if (found := standing(out)) not in may:
        raise Broken(f"lost more than it may: tick {found} stands, expected {' or '.join(map(str, may))}")
    if None in before and [event.name for event in events if event.name in ("tick", "saving")][:1] == ["tick"]:
        raise Broken("learned before its first save")
    return found


def going_on(model: Model, out: Path, *more: str) -> list[str]:
    """The command that goes on with a run, or begins it where there is none yet."""
    return ["train", "--resume", str(out)] if (out / store.RUN).exists() else model.command(out, *more)


def finish(child: Child, out: Path, anew: bool, *may: dict[str, Any]) -> None:
    """Broken unless a process has brought a run to its end, and left what one that nothing interrupted leaves.

    anew  whether it had to say that it begins anew
    may   what may be left
    """
    if child.code:
        raise Broken(f"cannot go on, exit code {child.code}: {child.said[-2000:]}")
    if anew and SAID_ANEW not in child.said:
        raise Broken("began anew without saying so")
    try:
        found = left(out)
    except (OSError, ValueError, KeyError) as error:
        raise Broken(f"came to its end, and left no {error}") from error
    if found not in may:
        raise Broken(f"differs from a run without interruption: {differing(found, may[0])}")
    if parts := [path.name for path in out.rglob("*.part")]:
        raise Broken(f"left behind: {parts}")


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def has_begun(out: Path) -> bool:
    """Whether a folder holds a run that has not been saved yet."""
    return (out / store.RUN).exists() and standing(out) is None
