"""A run's folder: how it begins, who works in it, and how another run takes its place.

Whatever a kill interrupts, the folder holds a run that --resume goes on with, or nothing that --out refuses. For what a
run reads of its folder is written before run.json, and run.json before the first checkpoint; a run that is replaced loses
its checkpoint first, and run.json before what stood there before it.
"""

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import console
from ..settings import MODELS
from ..storage import checkpoint, files, lock

# What our models write before run.json; here, so that none of them is imported to know it.
FILES = {
    "factors": ("items.json", "users.json"),
    "labels": ("labels.json", "words.json"),
    "language": ("vocabulary.json",),
    "pvm": ("config.json",),
    "words": ("vocabulary.json",),
}
BEST = "best"  # the folder of the best checkpoint by what was measured, beside that of the last
CHECKPOINTS = (checkpoint.CHECKPOINT, BEST)
CURVE = "curve.jsonl"
TENSORBOARD = "tensorboard"

RUN = files.RUN
REPORT = "report.json"
PICTURES = tuple(f"{name}.{kind}" for name in ("curve", "timeline", "last") for kind in ("png", "pdf", "csv"))
COUNTS = "counts.npz"  # of a run of factors
AFTER = (REPORT, CURVE, "timeline.json", COUNTS, *PICTURES)


def refuse_taken(folder: Path, overwrite: bool = False) -> None:
    """ValueError where no run can begin in `folder`: it holds one that is not to be replaced, or that is under way."""
    if (folder / RUN).exists() and overwrite:
        with lock.held(folder):
            return
    _refuse_taken(folder, overwrite)


def _refuse_taken(folder: Path, overwrite: bool) -> None:
    if (folder / RUN).exists():
        if not overwrite:
            raise ValueError(
                f"--out: {folder} holds a run; --resume {folder} goes on with it, --overwrite replaces it, another --out "
                "begins a new one"
            )
    elif any(checkpoint.stands(folder / name) for name in CHECKPOINTS):
        raise ValueError(
            f"--out: {folder} holds a checkpoint, but not the run that it is of ({RUN}); move it away, or name another --out"
        )


def refuse_strangers(folder: Path, overwrite: bool = False) -> None:
    """ValueError where a run that begins in `folder` would replace files that no run has left there, or be within another's.

    Without a run the lock tells whose they are: a run has it before all else, and what was killed at its beginning leaves it.
    """
    files.refuse_run(folder)
    if overwrite or not folder.is_dir() or any((folder / name).exists() for name in (RUN, lock.LOCK)):
        return
    if found := sorted({path.name for path in folder.iterdir()} & {*AFTER, *_before()}):
        raise ValueError(
            f"--out: {folder} holds no run, but has {', '.join(found)}, which a run writes too; another --out leaves them as "
            "they are, --overwrite replaces them"
        )


@contextlib.contextmanager
def begun(folder: Path, overwrite: bool = False) -> Iterator[None]:
    """A new run in `folder`, made when missing, by this process alone; raises as `refuse_taken` and `refuse_strangers`.

    overwrite  a run that stands there is removed: what it wrote, and nothing else
    """
    refuse_strangers(folder, overwrite)  # before a lock is put there
    files.make(folder)
    with lock.held(folder):
        files.settle(folder)  # the lock outlasts a power cut that leaves any of the run's files
        _refuse_taken(folder, overwrite)
        _refuse_special(folder)
        if (folder / RUN).exists():
            _erase(folder)
        _sweep(folder)
        yield


@contextlib.contextmanager
def resumed(folder: Path) -> Iterator[dict[str, Any]]:
    """The options of a run in `folder`, which this process alone goes on with.

    Raises ValueError as `options_of` does, and where another process works on it.
    """
    options_of(folder)  # refuses a folder that is no run, before a lock is put there
    with lock.held(folder):
        _refuse_special(folder)
        _sweep(folder)
        yield options_of(folder)  # another process may have had it until now


def options_of(folder: Path) -> dict[str, Any]:
    """The options that a run was started with; ValueError for a folder that holds none."""
    path = folder / RUN
    try:
        options = files.read(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"{folder}: holds no run (no {RUN}){_instead(folder)}") from None
    known = MODELS.names()
    if (
        not isinstance(options, dict)
        or options.get("kind") not in known
        or not isinstance(options.get("data"), str | None)
    ):
        raise ValueError(
            f"{path}: found no options of a run, expected a kind of {', '.join(known)}; the file was altered, or the "
            "distribution that offers its model is not installed"
        )
    return options


def _instead(folder: Path) -> str:
    """What a folder without the options of a run is, and what to do."""
    if (folder / lock.LOCK).exists() and not any((folder / name).exists() for name in (*AFTER, *CHECKPOINTS)):
        return (
            ": what was begun there has not written its options; if it was killed, give the command that began it again"
        )
    return "; expected the --out folder of `hybrid train`"


def kind_of(folder: Path) -> str | None:
    """The name of a run's model; None where the folder holds no run that can be read."""
    try:
        kind: str = options_of(folder)["kind"]
    except (ValueError, OSError):
        return None
    return kind


def refuse_lost(folder: Path) -> None:
    """ValueError for a finished run, as its report tells, that has lost its checkpoint: begun anew it would write over what it
    has left, such as the best checkpoint.
    """
    if (folder / REPORT).exists():
        raise ValueError(
            f"{folder / checkpoint.CHECKPOINT}: found none, though {REPORT} is of a finished run; put it back to go on, or "
            "begin anew with --out and --overwrite"
        )


def keep_options(folder: Path, options: dict[str, Any]) -> None:
    """Write the options of a run; from here on the folder holds one."""
    write_json(folder / RUN, options)


def extend(folder: Path, changes: dict[str, Any]) -> None:
    """The run is to go on to another length than it was begun for, or with another patience."""
    options = options_of(folder)
    if options | changes != options:
        keep_options(folder, options | changes)


def finished(folder: Path, unit: str, made: int, further: str) -> dict[str, Any] | None:
    """Note that a run has made all its ticks; its report, where it has written one of so many.

    unit     what the report calls a tick: it counts them under this name or its plural
    further  how to go on, the beginning of a sentence
    """
    console.note(f"{folder} is finished; {further} with --resume goes on")
    try:
        report = files.read(folder / REPORT)
    except (OSError, ValueError):
        return None  # it was stopped before it could be written
    if not isinstance(report, dict) or report.get(f"{unit}s", report.get(unit)) != made:
        return None
    return {key: value for key, value in report.items() if key != "options"}


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that a reader sees the old file or the whole new one; OSError as `lock.keep` raises it."""
    lock.keep(path.parent)
    files.write(path, [json.dumps(value, indent=1).encode(), b"\n"])


def standing(folder: Path) -> str:
    """What is left of a run after a failure, as a sentence."""
    try:
        at = checkpoint.read_facts(folder / checkpoint.CHECKPOINT)["facts"].get("at")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return f"no whole checkpoint stands in {folder}"
    return f"the checkpoint of {at} stands in {folder}" if at else f"a checkpoint stands in {folder}"


def _refuse_special(folder: Path) -> None:
    """ValueError for a link where a run writes, through which a stranger's run would write elsewhere, or for a pipe, which
    nobody may read.
    """
    saves = [folder / name / file for name in CHECKPOINTS for file in (checkpoint.LATEST, checkpoint.PREVIOUS)]
    names = (*AFTER, RUN, *_before(), *CHECKPOINTS, TENSORBOARD)
    for path in (*(folder / name for name in names), *saves):
        if path.is_symlink():
            raise ValueError(
                f"{path}: found a link, expected what a run writes itself; put in its place what it points to"
            )
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ValueError(f"{path}: found a pipe or a device, expected what a run writes itself; remove it")


def _erase(folder: Path) -> None:
    """Remove what a run has written: its report, which says that there is a checkpoint, then all that it goes on from, so that
    what is left at any moment goes on or begins anew.
    """
    _remove(folder / REPORT)
    files.settle(folder)
    for name in CHECKPOINTS:
        checkpoint.erase(folder / name)
    events = (folder / TENSORBOARD).glob("events.out.tfevents.*")
    _remove(*events, *(folder / name for name in (*AFTER, RUN)))
    files.settle(folder)
    _remove(*(folder / name for name in _before()))
    with contextlib.suppress(OSError):  # there is none, or something else is in it
        (folder / TENSORBOARD).rmdir()
    files.settle(folder)


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove what a killed process left unfinished."""
    files.sweep(folder, (RUN, *_before(), *AFTER))
    for name in CHECKPOINTS:
        checkpoint.tidy(folder / name, alone=True)


def _before() -> set[str]:
    """What models write before run.json: of all, since that of a damaged run is not known."""
    others = [MODELS.load(kind) for kind in MODELS.names() if kind not in FILES]
    return {*itertools.chain(*FILES.values()), *(name for other in others for name in getattr(other, "FILES", ()))}
