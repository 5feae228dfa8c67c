"""Checkpoints whose facts are not those of a run are refused by name, before anything is written."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from hybrid import Engine
from hybrid.cli import main
from hybrid.storage import checkpoint, lock
from hybrid.train import runs, store
from hybrid.train.job import Watched
from tests.support.small_runs import command

ENGINE = SimpleNamespace(unit="tick", drawn="perplexity", watched=Watched("perplexity"))
FRAMES = SimpleNamespace(unit="step", drawn="prediction", watched=None)
PVM = SimpleNamespace(config=SimpleNamespace(grids=[(2, 2), (1, 1)]))
GONE = object()


def told(kind: str) -> dict:
    """The facts of a run of this kind, with a point of its curve."""
    if kind == "pvm":
        point = {"step": 4, "seconds": 0.5, "error": [0.1, 0.2], "prediction": 0.1, "last_frame": 0.2}
        since = {"ticks": 0, "error": [0.0, 0.0], "pairs": 0, "prediction": 0.0, "last_frame": 0.0}
        return {"feed": {}, "progress": {"seconds": 0.5, "clocked": 3, "curve": [point], "since": since}}
    point = {"tick": 4, "seconds": 0.5, "examples": 9, "loss": 2.0, "perplexity": 8.0}
    best = {"tick": 4, "figure": "perplexity", "value": 8.0}
    progress = {"examples": 9, "seconds": 0.5, "curve": [point], "loss": 2.0, "best": best, "worse": 0}
    return {"feed": {}, "progress": progress}


def changed(what: dict, path: str, value) -> dict:
    """Facts in which one is another, or gone."""
    *outer, last = [int(name) if name.isdigit() else name for name in path.split(".")]
    within = what
    for name in outer:
        within = within[name]
    if value is GONE:
        within.pop(last)
    else:
        within[last] = value
    return what


def altered(run: Path, change) -> None:
    """Change the facts of a run's checkpoint, and seal it again."""
    path = run / "checkpoint" / checkpoint.LATEST
    manifest = json.loads(path.read_text())
    manifest.pop("checksum")
    manifest["facts"]["facts"] = change(manifest["facts"]["facts"])
    path.write_text(json.dumps(manifest | {"checksum": checkpoint._checksum(manifest)}))


@pytest.mark.parametrize(
    "path, value, said",
    [
        ("feed", GONE, "feed: found none, expected an object"),
        ("progress.curve", "x", "progress.curve: found 'x', expected a list"),
        ("progress.curve", [1, 2], "progress.curve[0]: found 1, expected an object"),
        ("progress.curve", [{}], "progress.curve[0].seconds: found none, expected a number"),
        ("progress.curve.0.tick", "x", "progress.curve[0].tick: found 'x', expected a whole number"),
        ("progress.curve.0.perplexity", {}, "progress.curve[0].perplexity: found an object of 0, expected a number"),
        ("progress.examples", 10**400, "progress.examples: found a number beyond 2^63, expected a number"),
        ("progress.clocked", True, "progress.clocked: found True, expected a number"),
        ("progress.loss", "low", "progress.loss: found 'low', expected a number or null"),
        ("progress.worse", 2, "progress.worse: found 2, expected at most 1, the points of the curve"),
        ("progress.best", [8.0], "progress.best: found a list of 1, expected an object"),
    ],
)
def test_facts_are_refused_by_name(tmp_path, path, value, said):
    with pytest.raises(ValueError) as raised:
        runs.check(changed(told("language"), path, value), ENGINE, "language", None, tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / checkpoint.LATEST}: {said}")
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize(
    "path, value, said",
    [
        ("progress.curve.0.error", [0.1], "progress.curve[0].error: found a list of 1, expected a list of 2 numbers"),
        ("progress.curve.0.prediction", GONE, "progress.curve[0].prediction: found none, expected a number or null"),
        ("progress.since.pairs", 0.5, "progress.since.pairs: found 0.5, expected a whole number of at least 0"),
    ],
)
def test_facts_of_frames_are_refused_by_name(tmp_path, path, value, said):
    with pytest.raises(ValueError) as raised:
        runs.check(changed(told("pvm"), path, value), FRAMES, "pvm", PVM, tmp_path)
    assert f"{tmp_path / checkpoint.LATEST}: {said}" in str(raised.value)


def test_an_engine_saved_over_the_checkpoint_of_a_run_is_not_resumed_and_the_save_before_is(
    tmp_path, whole_language, undrawn, capsys
):
    run = tmp_path / "run"
    shutil.copytree(whole_language, run)
    with lock.held(run):  # as any version before this one let everybody do
        Engine.load(run)[0].save(run / "checkpoint")
    before = {path: path.read_bytes() for path in run.rglob("*.json*")}
    assert main(["train", "--resume", str(run), "--epochs", "2"]) == 2
    file = run / "checkpoint" / checkpoint.LATEST
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(
        f"hybrid: error: {file}: feed: found none, expected an object; expected a checkpoint of a run"
    )
    assert {path: path.read_bytes() for path in run.rglob("*.json*")} == before
    assert main(["train", "--resume", str(run), "--epochs", "2", "--previous"]) == 0
    assert json.loads((run / store.RUN).read_text())["epochs"] == 2


@pytest.mark.parametrize("kind", ["pvm"])
def test_a_checkpoint_sealed_with_other_facts_is_one_line_and_changes_nothing(tmp_path, data, undrawn, capsys, kind):
    run = tmp_path / "run"
    assert main(command(kind, data, run)) == 0
    further = ["--steps", "12"] if kind == "pvm" else ["--epochs", "3"]
    altered(run, lambda found: found | {"progress": found["progress"] | {"curve": [{}]}})
    before = {path: path.read_bytes() for path in run.rglob("*.json*")}
    capsys.readouterr()
    assert main(["train", "--resume", str(run), *further]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"{run / 'checkpoint' / checkpoint.LATEST}: progress.curve[0].seconds: found none" in said
    assert {path: path.read_bytes() for path in run.rglob("*.json*")} == before
