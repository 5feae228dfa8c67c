"""Small runs of every model: their commands, what they leave, and a stop between two ticks."""

import json
from pathlib import Path

import numpy as np

from hybrid.engine import Engine
from hybrid.pvm.model import PVM
from hybrid.storage import checkpoint
from hybrid.train import store
from tests.hybrid.pvm import tiny
from tests.support.ranks import ended, started

SIZES = ["--width", "4", "--threads", "2"]
TRUNK = ["--trunk", "mlp", "--hidden", "6", "--readout-width", "4", "--batch", "64"]
CLOCKS = ("seconds", "processor_seconds", "evaluation_seconds")
KINDS = ("language", "words", "factors", "pvm")


def write_data(folder: Path) -> Path:
    """A text of words in pairs, ratings of users who walk in a circle, lines with a label or two; returns the folder."""
    rng = np.random.default_rng(0)
    lines = (" ".join(f"noun{i} verb{i}" for i in rng.integers(0, 20, 6)) for _ in range(60))
    (folder / "text.txt").write_text("\n".join(lines))
    rows = (f"{u}\t{(3 * u + t) % 25}\t4\t{1000 + t}" for u in range(30) for t in range(9))
    (folder / "u.data").write_text("\n".join(rows) + "\n")
    labelled = (f"__label__{i % 7} __label__{i % 5} noun{i} verb{i}" for i in rng.integers(0, 20, 300))
    (folder / "labels.txt").write_text("\n".join(labelled))
    return folder


def command(kind, data, out, *more):
    """The command that trains a small model, for two epochs of some ticks, or two trees."""
    if kind == "pvm":
        return tiny.command(data, out, "--steps", "8", "--every", "4", *more)
    text, ratings = ["--text", str(data / "text.txt")], ["--ratings", str(data / "u.data")]
    own = {
        "language": [*text, *TRUNK, "--readout", "tree"],
        "words": [*text, "--min-count", "1", "--window", "1"],
        "factors": [*ratings, *TRUNK],
        "labels": ["--examples", str(data / "labels.txt"), "--trees", "2"],
    }
    if kind == "labels":
        return ["train", kind, *own[kind], "--threads", "2", "--out", str(out), *more]
    return ["train", kind, *own[kind], *SIZES, "--epochs", "2", "--out", str(out), *more]


def tensors(run: Path) -> str:
    """The name of the latest checkpoint's tensors, which is their sha256."""
    return tiny.tensors(run)


def ticks(run: Path) -> int:
    facts = checkpoint.read_facts(run)
    own = {"pvm": "step", "label_trees": "tick", "engine": "tick"}
    return next(facts[name][count] for name, count in own.items() if name in facts)


def figures(run: Path) -> list[dict]:
    """The points of a run's curve, without clocks."""
    points = map(json.loads, (run / store.CURVE).read_text().splitlines())
    return [{name: value for name, value in point.items() if name not in CLOCKS} for point in points]


def on_ranks(ranks: int, *words: str) -> None:
    """A command on several ranks, which ends well."""
    code, _, err = ended(started(*words, ranks=ranks, module="hybrid"), limit=240.0)
    assert code == 0, err


def stop_at(monkeypatch, tick: int | None, act) -> None:
    """Do something between two ticks, once so many are done; None: after each."""
    for owner in (Engine, PVM):
        run = owner.run

        def stopping(self, *feed, run=run, **options):
            for done in run(self, *feed, **options):
                if tick in (None, self.tick):
                    act()
                yield done

        monkeypatch.setattr(owner, "run", stopping)


class Killed(BaseException):
    """What a test kills a run by."""


def kill():
    raise Killed
