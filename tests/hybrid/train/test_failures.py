"""What goes wrong in a run: a model that diverges, damaged or altered checkpoints, none at all."""

import json
import shutil
from pathlib import Path

import pytest

from hybrid import MLP, SGD, Embedding, Engine, FullReadout
from hybrid.cli import main
from hybrid.engine.embedding import Inputs
from hybrid.pvm.model import PVM
from hybrid.storage import checkpoint
from tests.support.small_engine import BATCH, CLASSES, Feed, through
from tests.support.small_runs import command, tensors


class Words(Feed):
    """A word an example."""

    def __getitem__(self, tick):
        batch = super().__getitem__(tick)
        return batch._replace(ids=batch.ids[:BATCH])


def test_a_run_that_diverged_says_where_and_what_to_do(tmp_path, data, undrawn, capsys, monkeypatch):
    from hybrid.models import language

    run, figures = tmp_path / "run", iter([9.0, 9.0, float("inf")])
    with monkeypatch.context() as patch:
        patch.setattr(language, "perplexity", lambda *_: next(figures))
        assert main(command("language", data, run, "--save-every", "0")) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    said = "perplexity is inf: the model has diverged; begin again with lower rates and --overwrite; the checkpoint of"
    assert line.startswith("hybrid: error: tick ") and line.endswith(f"{said} tick 0 is in {run}")
    assert main(command("language", data, run, "--overwrite")) == 0


def test_a_damaged_checkpoint_names_the_option_that_goes_on(tmp_path, data, undrawn, every_tick, capsys):
    run = tmp_path / "run"
    assert main(command("pvm", data, run)) == 0
    expected = tensors(run)
    file = run / "checkpoint" / expected
    file.write_bytes(file.read_bytes()[:-1])
    assert main(["train", "--resume", str(run)]) == 2
    assert f"hybrid train --resume {run} --previous" in capsys.readouterr().err
    assert main(["train", "--resume", str(run), "--previous"]) == 0
    assert tensors(run) == expected
    assert main(["eval", str(run), "--steps", "4"]) == 0


def altered(run: Path, change) -> None:
    """Change what a checkpoint tells of its model, and seal it again."""
    path = run / "checkpoint" / checkpoint.LATEST
    manifest = json.loads(path.read_text())
    manifest.pop("checksum")
    change(manifest["facts"])
    path.write_text(json.dumps(manifest | {"checksum": checkpoint._checksum(manifest)}))


@pytest.mark.parametrize(
    "part, more",
    [("embedding", {"rows": 10**9}), ("readout", {"classes": 10**9}), ("trunk", {"sizes": [16, 10**9, 16]})],
)
def test_a_checkpoint_that_tells_of_more_than_it_holds_takes_no_memory(tmp_path, whole_language, part, more):
    run = shutil.copytree(whole_language, tmp_path / "run")
    altered(run, lambda facts: facts["engine"][part].update(more))
    with pytest.raises(ValueError, match=r"run: declares \d+ parameters, but holds \d+ numbers"):
        Engine.load(run)


def test_a_pvm_that_tells_of_more_than_it_holds_takes_no_memory(tmp_path, data, undrawn):
    run = tmp_path / "run"
    assert main(command("pvm", data, run)) == 0
    altered(run, lambda facts: facts["pvm"]["config"].update(grids=[[10**5, 10**5], [2, 2], [1, 1]]))
    with pytest.raises(ValueError, match=r"run: declares \d+ hidden activations, but holds \d+"):
        PVM.load(run)


@pytest.mark.parametrize(
    "of",
    [{}, {"tied": True}, {"trunk": MLP((4, 4), bias=False)}, {"inputs": Inputs(4)}],
    ids=["rows", "tied", "trunk", "inputs"],
)
def test_a_checkpoint_may_hold_no_more_than_it_tells_of_and_not_a_number_less(tmp_path, monkeypatch, of):
    """Of a model without state of an optimiser, which the least count leaves out."""
    settings = dict(of)
    inputs, trunk = settings.pop("inputs", Embedding(CLASSES, 4, optimiser=SGD(0.1))), settings.pop("trunk", None)
    readout = FullReadout(Feed.counts, 4, batch=BATCH, optimiser=SGD(0.1))
    made = Engine(inputs, trunk, readout, **through({"threads": 1} | settings))
    if "inputs" not in of:
        next(made.run(Words()))
    made.save(tmp_path)
    held = checkpoint.numbers(tmp_path)
    assert Engine.load(tmp_path)[0].tick == made.tick
    monkeypatch.setattr(checkpoint, "numbers", lambda folder: held - 1)
    with pytest.raises(ValueError, match=rf"declares \d+ parameters, but holds {held - 1} numbers; it was altered"):
        Engine.load(tmp_path)


@pytest.mark.parametrize(
    ("part", "value"),
    [("embedding", {"rows": "many"}), ("readout", None), ("settings", []), ("tick", None)],
)
def test_a_checkpoint_that_tells_of_no_model_is_refused_by_name(tmp_path, whole_language, part, value):
    run = shutil.copytree(whole_language, tmp_path / "run")
    altered(run, lambda facts: facts["engine"].update({part: value}))
    with pytest.raises(ValueError, match=r"/run: (describes no model \(|tick: found None)"):
        Engine.load(run)


def test_a_run_without_a_first_checkpoint_begins_again_and_says_so(tmp_path, whole_language, undrawn, capsys):
    run = shutil.copytree(whole_language, tmp_path / "run")
    expected = tensors(run)
    shutil.rmtree(run / "checkpoint")
    (run / "report.json").unlink()
    assert main(["train", "--resume", str(run)]) == 0
    assert f"{run} stopped before its first save and starts again" in capsys.readouterr().err
    assert tensors(run) == expected
