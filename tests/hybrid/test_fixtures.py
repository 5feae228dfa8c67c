"""Files that an earlier version wrote (tests/fixtures) still load, give the same figures and go on as they did.

Parameters are compared as numbers and not as bytes, since another machine's BLAS rounds otherwise.
"""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from hybrid import Engine, LanguageFeed
from hybrid.cli import main
from hybrid.feeds.text import Corpus, read
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.readout.tree import _note_gone
from hybrid.storage import checkpoint
from tests.support.old_runs import DATA, FIXTURES, copied

PARTS, VECTORS = FIXTURES / "parts", FIXTURES / "vectors"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())
READOUTS = ("tree", "balanced", "full", "sampled", "negative", "neighbours")
ENGINES = ("engine", "engine_neighbours")


@pytest.fixture(params=EXPECTED)
def run(request, tmp_path) -> Path:
    """A copy of a run's folder, in which its data have the paths that they have here."""
    return copied(request.param, tmp_path)


def same(found, expected) -> None:
    """Both are arrays by the same names, and equal but for rounding."""
    assert found.keys() == set(expected)
    for name in found:
        assert found[name].dtype == expected[name].dtype, name
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-6, err_msg=name)


def saved(run: Path) -> dict[str, np.ndarray]:
    """The arrays of a run's last checkpoint."""
    folder = run / "checkpoint"
    return load_file(folder / json.loads((folder / "checkpoint.json").read_text())["file"])


def recorded(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as arrays:
        return dict(arrays)


def test_eval_gives_the_recorded_figures(capsys, run):
    expected = EXPECTED[run.name]
    more = [part.replace("DATA", str(DATA)) for part in expected["eval"]]
    assert main(["eval", str(run), *more, "--threads", "1", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    near = 1e-2 if run.name.startswith("words") else 1e-4  # ranks of nearly equal cosines may change places
    for name, value in expected["figures"].items():
        assert figures[name] == pytest.approx(value, rel=1e-4, abs=near), name


def test_a_run_goes_on_to_the_recorded_parameters(run):
    assert main(["train", "--resume", str(run), *EXPECTED[run.name]["further"]]) == 0
    same(saved(run), recorded(FIXTURES / "ends" / f"{run.name}.npz"))


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("run", ["language_stopped"], indirect=True)
def test_a_run_of_a_mode_that_is_gone_goes_on_deterministically(capsys, run, begun):
    _note_gone.cache_clear()
    options, kept = run / "run.json", run / "checkpoint"
    options.write_text(options.read_text().replace('"deterministic"', '"hogwild"'))
    if begun:
        facts = json.dumps(checkpoint.read_facts(run)).replace('"deterministic"', '"hogwild"')
        checkpoint.save(kept, saved(run), json.loads(facts))
    else:
        shutil.rmtree(kept)
    assert main(["train", "--resume", str(run)]) == 0
    assert 'mode "hogwild" is no more' in capsys.readouterr().err
    same(saved(run), recorded(FIXTURES / "ends" / f"{run.name}.npz"))
    assert "hogwild" not in (kept / "checkpoint.json").read_text()


@pytest.mark.parametrize("run", ["language_tree", "factors_sampled", "words_cbow", "pvm_tile"], indirect=True)
def test_a_finished_run_shows_its_report_again(capsys, run):
    report = json.loads((run / "report.json").read_text())
    assert main(["train", "--resume", str(run), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {name: value for name, value in report.items() if name != "options"}


@pytest.mark.parametrize("run", ["language_stopped", "pvm_stopped"], indirect=True)
def test_a_stopped_run_goes_on_from_the_save_before_the_last(run):
    assert main(["train", "--resume", str(run), "--previous"]) == 0
    same(saved(run), recorded(FIXTURES / "ends" / f"{run.name}.npz"))


@pytest.mark.parametrize("run", ["words_cbow"], indirect=True)
@pytest.mark.parametrize("name", ["cbow.txt", "cbow.bin", "cbow.npz", "cbow.tsv"])
def test_export_writes_the_recorded_file(tmp_path, run, name):
    file = tmp_path / name
    assert main(["export", str(run), str(file), *(["--binary"] if name.endswith(".bin") else [])]) == 0
    if name.endswith(".npz"):
        found, expected = np.load(file), np.load(VECTORS / name)
        assert found["names"].tolist() == expected["names"].tolist()
        np.testing.assert_array_equal(found["vectors"], expected["vectors"])
    else:  # nothing is computed, so every byte is the same
        assert file.read_bytes() == (VECTORS / name).read_bytes()


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """What the readouts of tests/fixtures/make.py learned from: three batches, then three more."""
    rng = np.random.default_rng(1)
    return [(rng.normal(size=(20, 4)).astype(np.float32), rng.integers(0, 30, 20).astype(np.int32)) for _ in range(6)]


@pytest.mark.parametrize("name", READOUTS)
def test_a_pickled_readout_goes_on(name):
    readout = pickle.loads((PARTS / f"{name}.pickle").read_bytes())
    for hidden, target in batches()[3:]:
        readout.step(np.empty_like(hidden), hidden, target)
    same(readout.parameters(), recorded(PARTS / f"{name}.npz"))


@pytest.mark.parametrize("how", ["pickle", "checkpoint"])
@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_stopped_between_two_ticks_goes_on(name, how):
    text = read(DATA / "text.txt")
    feed = LanguageFeed(Corpus(text, Vocabulary.build(text)), context=2, batch=64, epochs=2)
    if how == "pickle":
        engine = pickle.loads((PARTS / f"{name}.pickle").read_bytes())
    else:
        engine, facts = Engine.load(PARTS / name, device="cpu", threads=1)
        assert facts == {"about": name}
    assert engine.tick == 5
    assert len(list(engine.run(feed))) == len(feed) - 5
    same(engine.parameters(), recorded(PARTS / f"{name}.npz"))
