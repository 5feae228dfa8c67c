"""What a sweep knows of its trials, in its folder.

sweep.json     what its file said, and the figure that trials are compared by
trials.jsonl   a line of JSON for every trial that is done or failed; of halving one for every rung
trials.md      the same as a table, best first
sweep.png      the figure against each option, .pdf too
trial-N/       the run of a trial, as `hybrid train` makes it; trial-N.log what it said
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from ..storage import atomic, document, lock, output
from ..train.job import Watched
from ..train.store import write_json

SWEEP, TRIALS, TABLE, PICTURE, STOP = "sweep.json", "trials.jsonl", "trials.md", "sweep.png", "stop"
TRIAL = re.compile(r"trial-\d{3,}(\.log)?")


class Record(NamedTuple):
    """A trial that is done, with its value, or failed, with its cause.

    length   what it had gone to, in a sweep of several rungs
    options  the varied ones
    seconds  of training, its whole run's
    """

    trial: int
    length: int | None
    options: dict[str, Any]
    value: float | None = None
    seconds: float | None = None
    cause: str | None = None


Records = dict[tuple[int, int | None], Record]


def refuse_strangers(folder: Path) -> None:
    """ValueError where a sweep that begins in `folder` would write over, or go on with, what no sweep has left there."""
    output.refuse_run(folder)
    if not folder.is_dir() or any((folder / name).exists() for name in (SWEEP, lock.LOCK)):
        return
    names = (TRIALS, TABLE, PICTURE, PICTURE.replace(".png", ".pdf"), STOP)
    if found := sorted(path.name for path in folder.iterdir() if path.name in names or TRIAL.fullmatch(path.name)):
        raise ValueError(
            f"--out: {folder} holds no sweep, but has {', '.join(found)}, which a sweep writes too; name another --out"
        )


def load(folder: Path) -> Records:
    """Those that were kept."""
    try:
        found = [Record(**json.loads(line)) for line in (folder / TRIALS).read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{folder / TRIALS}: not the trials of a sweep ({error}); the file was altered") from None
    return {(record.trial, record.length): record for record in found}


def keep(folder: Path, records: Records) -> None:
    """Write them, in the order of their numbers: a reader sees the old file or the whole new one."""
    rows = sorted(records.values(), key=lambda record: (record.trial, record.length or 0))
    atomic.write(folder / TRIALS, [json.dumps(record._asdict()).encode() + b"\n" for record in rows])


def begun(folder: Path) -> tuple[dict[str, Any], Watched] | None:
    """What the file said that a sweep was begun with, and its figure; None where none was begun."""
    try:
        found = document.read(folder / SWEEP)
        return found["file"], Watched(**found["figure"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / SWEEP}: not of a sweep ({error!r}); the file was altered") from None


def begin(folder: Path, raw: dict[str, Any], figure: Watched) -> None:
    """Write them; from here on the folder holds a sweep."""
    write_json(folder / SWEEP, {"file": raw, "figure": figure._asdict()})


def best_first(records: list[Record], lowest: bool) -> list[Record]:
    """Those that went furthest first, of them the best; failed ones last. Equal ones stay in the order of their numbers."""

    def place(record: Record) -> tuple[bool, int, float, int]:
        value = record.value or 0.0
        return record.value is None, -(record.length or 0), value if lowest else -value, record.trial

    return sorted(records, key=place)
