"""The folder of a run: creation, locking, and replacement by another run.

Whenever a kill occurs, the folder holds a run that --resume continues, or nothing that --out rejects. Files that a run reads
are written before run.json, and run.json before the first checkpoint. A replaced run loses its checkpoint first, and run.json
before the files written before it.
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

# Files that our models write before run.json; listed here to avoid importing the models.
FILES: dict[str, tuple[str, ...]] = dict.fromkeys(("language", "words"), ("vocabulary.json",))
FILES |= {"factors": ("items.json", "users.json"), "labels": ("labels.json", "words.json"), "pvm": ("config.json",)}
BEST = "best"  # folder of the best checkpoint by the watched figure
CHECKPOINTS = (checkpoint.CHECKPOINT, BEST)
CURVE = "curve.jsonl"
TENSORBOARD = "tensorboard"

RUN = files.RUN
REPORT = "report.json"
PICTURES = tuple(f"{name}.{kind}" for name in ("curve", "last") for kind in ("png", "pdf", "csv"))
COUNTS = "counts.npz"  # of a run of factors
AFTER = (REPORT, CURVE, "timeline.json", COUNTS, *PICTURES)


def refuse_taken(folder: Path, overwrite: bool = False) -> None:
    """Raises ValueError if no run can start in `folder`, since what is there must not be replaced."""
    if (folder / RUN).exists():
        if not overwrite:
            raise ValueError(
                f"--out: {folder} holds a run; --resume {folder} continues it, --overwrite replaces it; or name another --out"
            )
    elif any(checkpoint.stands(folder / name) for name in CHECKPOINTS):
        raise ValueError(f"--out: {folder} holds a checkpoint, but no run ({RUN}); move it away, or name another --out")


def refuse_strangers(folder: Path, overwrite: bool = False) -> None:
    """Raises ValueError if a new run in `folder` would replace files of no run, or be inside another run.

    Without run.json, the lock marks files of a run: it is created first, and remains if the run is killed at its start.
    """
    files.refuse_run(folder)
    if overwrite or not folder.is_dir() or any((folder / name).exists() for name in (RUN, lock.LOCK)):
        return
    if found := sorted({path.name for path in folder.iterdir()} & {*AFTER, *_before()}):
        raise ValueError(
            f"--out: {folder} holds no run, but has {', '.join(found)}, which runs write; name another --out, or "
            "replace them by --overwrite"
        )


@contextlib.contextmanager
def begun(folder: Path, overwrite: bool = False) -> Iterator[None]:
    """A context of a new run in `folder`, created if missing and locked; raises as `refuse_taken` and `refuse_strangers`.

    overwrite  removes the files of an existing run, and nothing else
    """
    refuse_strangers(folder, overwrite)  # before a lock is created there
    files.make(folder)
    with lock.held(folder):
        files.settle(folder)  # so that after a power cut the lock exists if any file of the run does
        refuse_taken(folder, overwrite)
        _refuse_special(folder)
        if (folder / RUN).exists():
            _erase(folder)
        _sweep(folder)
        yield


@contextlib.contextmanager
def resumed(folder: Path) -> Iterator[dict[str, Any]]:
    """A context that locks a run and yields its options; ValueError as `options_of`, and if another works on it."""
    options_of(folder)  # rejects a folder without a run before a lock is created there
    with lock.held(folder):
        _refuse_special(folder)
        _sweep(folder)
        yield options_of(folder)  # again, since another process may have held the lock until now


def options_of(folder: Path) -> dict[str, Any]:
    """Returns the options that a run was started with; ValueError for a folder without a run."""
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
            f"{path}: found no options of a run, expected a kind of {', '.join(known)}; altered, or a plug-in is missing"
        )
    return options


def seen(folder: Path) -> list[bytes]:
    """Returns the contents of the files that a run's resumption begins with, of those that exist."""
    paths = (folder / RUN, *(folder / name / checkpoint.LATEST for name in CHECKPOINTS))
    return [path.read_bytes() for path in paths if path.exists()]


def _instead(folder: Path) -> str:
    """Returns a description of a folder without run options, and a remedy."""
    if (folder / lock.LOCK).exists() and not any((folder / name).exists() for name in (*AFTER, *CHECKPOINTS)):
        return ": the run has not written its options yet; if it was killed, repeat the command that started it"
    return "; expected the --out folder of `hybrid train`"


def refuse_lost(folder: Path) -> None:
    """Raises ValueError if a finished run, with a report, has lost its checkpoint.
    A restart would overwrite its remaining files, such as the best checkpoint."""
    if (folder / REPORT).exists():
        raise ValueError(
            f"{folder / checkpoint.CHECKPOINT}: missing, but {REPORT} is of a finished run; restore it, or use --overwrite"
        )


def keep_options(folder: Path, options: dict[str, Any]) -> None:
    """Writes the options of a run, which makes the folder one."""
    write_json(folder / RUN, options)


def extend(folder: Path, changes: dict[str, Any]) -> None:
    """Stores a new length or patience of a run."""
    options = options_of(folder)
    if options | changes != options:
        keep_options(folder, options | changes)


def finished(folder: Path, unit: str, made: int, further: str) -> dict[str, Any] | None:
    """Prints that a run is finished; returns its report, if there is one for that many steps.

    unit     the report's key of the number of steps, or its singular
    further  how to continue, the start of a sentence
    """
    console.note(f"{folder} is finished; {further} with --resume continues it")
    try:
        report = files.read(folder / REPORT)
    except (OSError, ValueError):
        return None  # stopped before the report was written
    if not isinstance(report, dict) or report.get(f"{unit}s", report.get(unit)) != made:
        return None
    return {key: value for key, value in report.items() if key != "options"}


def write_json(path: Path, value: Any) -> None:
    """Writes JSON atomically; OSError as from `lock.keep`."""
    lock.keep(path.parent)
    files.write(path, [json.dumps(value, indent=1).encode(), b"\n"])


def standing(folder: Path) -> str:
    """Returns a sentence on what remains of a run after a failure."""
    try:
        at = checkpoint.read_facts(folder / checkpoint.CHECKPOINT)["facts"].get("at")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return f"no complete checkpoint is in {folder}"
    return f"the checkpoint of {at} is in {folder}" if at else f"a checkpoint is in {folder}"


def _refuse_special(folder: Path) -> None:
    """Raises ValueError for links at a run's file names, which would redirect writes, and for pipes, which would block."""
    saves = [folder / name / file for name in CHECKPOINTS for file in (checkpoint.LATEST, checkpoint.PREVIOUS)]
    names = (*AFTER, RUN, *_before(), *CHECKPOINTS, TENSORBOARD)
    for path in (*(folder / name for name in names), *saves):
        if path.is_symlink():
            raise ValueError(f"{path}: found a link, expected a file of the run; replace the link by its target")
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ValueError(f"{path}: found a pipe or a device, expected a file of the run; remove it")


def _erase(folder: Path) -> None:
    """Removes a run's files: the report, which implies a checkpoint, then all that resuming needs.
    At any moment the remaining files can be resumed or restarted."""
    _remove(folder / REPORT)
    files.settle(folder)
    for name in CHECKPOINTS:
        checkpoint.erase(folder / name)
    events = (folder / TENSORBOARD).glob("events.out.tfevents.*")
    _remove(*events, *(folder / name for name in (*AFTER, RUN)))
    files.settle(folder)
    _remove(*(folder / name for name in _before()))
    with contextlib.suppress(OSError):  # missing, or not empty
        (folder / TENSORBOARD).rmdir()
    files.settle(folder)


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Removes temporary files of a killed process."""
    files.sweep(folder, (RUN, *_before(), *AFTER))
    for name in CHECKPOINTS:
        checkpoint.tidy(folder / name, alone=True)


def _before() -> set[str]:
    """Returns the files that any model writes before run.json, since a damaged run's model is unknown."""
    others = [MODELS.load(kind) for kind in MODELS.names() if kind not in FILES]
    return {*itertools.chain(*FILES.values()), *(name for other in others for name in getattr(other, "FILES", ()))}
