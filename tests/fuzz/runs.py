"""Subjects that are folders: runs of every model, checkpoints, sweeps; some changed by one who can make a checksum."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from hybrid import open_run
from hybrid.cli import main
from hybrid.cli.commands import sweep
from hybrid.storage import checkpoint
from hybrid.train import runs
from tests.support import small_runs

from . import mutations
from .subject import Subject


def run_of(kind: str) -> Callable[[Path], Path]:
    """The folder of a small run; what it was trained on is beside it, and stays as it is."""

    def make(folder: Path) -> Path:
        (folder / "text.txt").write_text("\n".join(" ".join(f"w{i * j % 17}" for j in range(9)) for i in range(80)))
        lines = (f"{user}\t{(user * 7 + n * 3) % 11}\t3\t{n}" for user in range(12) for n in range(6))
        (folder / "u.data").write_text("\n".join(lines))
        words = _labels(folder) if kind == "labels" else small_runs.command(kind, folder, folder / "run")
        more = ["--min-count", "1"] if kind == "language" else []
        assert main([*words, *more, "--device", "cpu", "--quiet"]) == 0
        return folder / "run"

    return make


def _labels(folder: Path) -> list[str]:
    examples = folder / "examples.txt"
    examples.write_text("".join(f"__label__{n % 3} some w{n % 5} words\n" for n in range(30)))
    words = ["train", "labels", "--examples", str(examples), "--trees", "2", "--threads", "1"]
    return [*words, "--out", str(folder / "run")]


def opened(path: Path) -> Any:
    """A run, to be used."""
    return open_run(path, device="cpu", threads=1)


def resumed(path: Path) -> None:
    """A finished run, which is gone on with."""
    runs.resume(str(path), {"device": "cpu", "threads": 1})


def sealed(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    """A checkpoint's JSON file, changed by somebody who knows how its checksum is made."""
    found = mutations.of_json(content, rng)
    try:
        manifest = json.loads(found)
        manifest.pop("checksum")
        manifest["checksum"] = hashlib.sha256(json.dumps(manifest, indent=1, allow_nan=False).encode()).hexdigest()
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return found
    return json.dumps(manifest, indent=1).encode("utf-8", "surrogatepass")


def arrays(folder: Path) -> Path:
    """A checkpoint of two arrays."""
    made = {"rows": np.arange(30, dtype=np.float32).reshape(6, 5), "ids": np.arange(7, dtype=np.int32)}
    checkpoint.save(folder, made, {"tick": 3, "rate": 0.1, "names": ["a", None]})
    return folder


def study(folder: Path) -> Path:
    """The journal of a sweep."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path = folder / sweep.JOURNAL
    made = optuna.create_study(study_name=sweep.NAME, storage=sweep._storage(path))
    made.set_user_attr("figure", "perplexity")
    made.set_user_attr("asked", ["language", {"text": "book.txt"}])
    for value in (0.5, 0.25):
        trial = made.ask({"rate": optuna.distributions.FloatDistribution(0.1, 0.2)})
        trial.report(value, 1)
        made.tell(trial, value)
    return path


def studied(path: Path) -> Any:
    """A sweep that is gone on with."""
    return sweep.load(path).trials


KINDS = (*small_runs.KINDS, "labels")
SUBJECTS: dict[str, Subject] = {
    "checkpoint": Subject(arrays, checkpoint.load),
    "checkpoint-sealed": Subject(arrays, checkpoint.load, ("checkpoint.json",), sealed),
    **{f"run-{kind}": Subject(run_of(kind), opened, ("run/**/*.json",)) for kind in KINDS},
    **{
        f"run-{kind}-sealed": Subject(run_of(kind), opened, ("run/checkpoint/checkpoint.json",), sealed)
        for kind in KINDS
    },
    **{f"resumed-{kind}": Subject(run_of(kind), resumed, ("run/**/*.json",), named=False, share=0.1) for kind in KINDS},
    **{
        f"resumed-{kind}-sealed": Subject(
            run_of(kind), resumed, ("run/checkpoint/checkpoint.json",), sealed, named=False, share=0.1
        )
        for kind in KINDS
    },
    "sweep-journal": Subject(study, studied),
}
