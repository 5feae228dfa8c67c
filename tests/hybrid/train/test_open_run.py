"""Trained runs, opened: `Use` of hybrid/models/factors.py, hybrid/models/language.py and hybrid/models/words.py."""

import json

import pytest

from hybrid import LanguageModel, Recommender
from hybrid.train import runs
from hybrid.train.runs import open_run, vectors_of
from tests.support.trained import copied, data


def test_ratings_that_are_gone_are_asked_for_when_they_are_needed(tmp_path):
    run = copied("factors_tree", tmp_path)
    options = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(options | {"ratings": str(tmp_path / "gone.data")}))
    model = open_run(run, device="cpu")
    assert isinstance(model, Recommender) and model.length == 3
    assert model.recommend_to([[model.items[0]]], 2).names[0]
    with pytest.raises(ValueError, match=r"gone\.data: not there.* --ratings FILE"):
        model.recommend()
    assert model.remember(data() / "u.data") == 0
    assert model.recommend(k=2).ids.shape == (len(model.users), 2)


def test_a_language_run_says_of_a_text_what_eval_does(tmp_path):
    run = copied("language_tree", tmp_path)
    model = open_run(run, device="cpu")
    assert isinstance(model, LanguageModel)
    text = (data() / "text.txt").read_text()
    said = {"text": str(data() / "text.txt"), "device": "cpu", "threads": 1, "checkpoint": None}
    assert model.perplexity(text) == pytest.approx(runs.evaluate(str(run), said)["perplexity"], rel=1e-5)
    assert len(model.continue_text(model.vocabulary.words[1], 5)) == 5
    assert len(vectors_of(run)) == len(model.vocabulary) == len(model.vectors)


def test_runs_without_vectors_and_checkpoints_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match="a run of pvm has no vectors"):
        vectors_of(copied("pvm_unit", tmp_path))
    with pytest.raises(ValueError, match="holds no run"):
        open_run(tmp_path)
    with pytest.raises(ValueError, match="--checkpoint best"):
        open_run(copied("words_cbow", tmp_path), checkpoint="best")
