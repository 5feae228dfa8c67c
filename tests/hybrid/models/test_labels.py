"""`hybrid train labels`: from files of fastText and LIBSVM, measured, resumed and asked; hybrid/models/labels.py."""

import io
import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from hybrid import open_run
from hybrid.cli import main
from hybrid.formats import svm
from hybrid.models import labels
from hybrid.train.options import choose
from tests.support.commands import refused, run_json
from tests.support.small_runs import Killed, kill, tensors

DISHES = ["soup", "cake", "rice", "salad", "bread", "stew"]
SMALL = ["--trees", "2", "--threads", "2"]


def lines(count, seed=0):
    """Questions that name a dish and perhaps another, which are their labels."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        own = rng.choice(DISHES, rng.integers(1, 3), replace=False)
        made.append(" ".join([*(f"__label__{dish}" for dish in own), "how do I cook", *own, f"w{rng.integers(50)} ?"]))
    return "\n".join(made) + "\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "train.txt").write_text(lines(300))
    (tmp_path / "other.txt").write_text(lines(50, seed=1) + "__label__unheard of\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_best_model_is_the_one_of_the_highest_precision(here):
    watched = labels.prepare(choose("labels", examples=str(here / "train.txt"))).watched
    assert watched.name == "valid precision@1"
    assert watched.better(0.3, than=0.2) and not watched.better(0.2, than=0.3)


def test_a_run_learns_goes_on_and_says_which_labels_texts_have(here, capsys):
    train = ["train", "labels", "--examples", "train.txt", *SMALL]
    report = run_json(capsys, *train, "--out", "run")
    assert report["valid precision@1"] > 0.9 and report["examples"] == 270 and report["labels"] == 6
    found = run_json(capsys, "eval", "run", "--examples", "other.txt")
    assert found["examples"] == 51 and found["precision@1"] > 0.9 and found["recall@3"] > 0.9
    assert run_json(capsys, "eval", "run")["precision@1"] == report["valid precision@1"]
    assert [point["tree"] for point in report["curve"]] == [1, 2]
    one = run_json(capsys, "train", "labels", "--examples", "train.txt", "--trees", "1", "--out", "one")
    assert one["examples_per_second"] > 0
    further = run_json(capsys, "train", "--resume", "run", "--trees", "3")
    assert further["curve"][:2] == report["curve"] and further["tree"] == 3
    run_json(capsys, "train", "labels", "--examples", "train.txt", "--trees", "3", "--threads", "1", "--out", "whole")
    assert tensors(here / "run") == tensors(here / "whole")
    model = open_run("run", device="cpu")
    answers = model.predict(["How do I cook a STEW?", ""], k=2)
    assert answers[0][0][0] == "stew" and len(answers[1]) == 2 and 0 < answers[0][0][1] <= 1
    for wrong, message in (("stew", "found one string"), (["stew"], "k: found 9")):
        with pytest.raises(ValueError, match=message):
            model.predict(wrong, k=9)


def test_predict_prints_as_fasttext_does(here, capsys, monkeypatch):
    run_json(capsys, "train", "labels", "--examples", "train.txt", *SMALL, "--out", "run")
    texts = ["how do I cook soup", "", "__label__soup", "cake and __label__soup rice"]
    (here / "texts.txt").write_text("\n".join(texts))
    answers = open_run("run", device="cpu").predict([texts[0], "cake and rice"], k=2)
    expected = [" ".join(f"__label__{label} {p:.6g}" for label, p in one) for one in answers]
    for source in ("texts.txt", "-"):
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(texts) + "\n"))
        assert main(["predict", "run", source, "--k", "2", "--probabilities"]) == 0
        assert capsys.readouterr().out.split("\n") == [expected[0], "", "", expected[1], ""]
    assert main(["predict", "run", "texts.txt"]) == 0
    assert capsys.readouterr().out.split("\n")[0] == "__label__soup"
    assert main(["predict", "run", "texts.txt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.split("\n")[0])[0]["label"] == "soup"


def test_numbered_features_and_a_file_that_validates(here, capsys):
    rng = np.random.default_rng(0)
    y = rng.random((200, 4)) < 0.4
    with open("train.svm", "wb") as file:
        file.write(b"200 7 4\n")
        dump_svmlight_file(
            np.hstack([y, rng.random((200, 3)) < 0.2]).astype(float), y.astype(int), file, multilabel=True
        )
    train = ["train", "labels", "--examples", "train.svm", "--valid", "train.svm", "--out", "run"]
    report = run_json(capsys, *train)
    assert report["examples"] == report["valid examples"] == 200 and report["labels"] == 4
    model = open_run("run")
    with pytest.raises(ValueError, match="learned from numbered features"):
        model.predict(["soup"])
    assert model.model.best(svm.load("train.svm").features, 2)[0].shape == (200, 2)


def test_files_without_a_header_number_features_as_the_training_examples_do(here, capsys):
    y = np.random.default_rng(0).random((200, 4)) < 0.4
    features = np.hstack([np.ones((200, 1)), y])
    dump_svmlight_file(features, y.astype(int), "train.svm", multilabel=True)
    features[:, 0] = 0  # now no line has the feature 0
    dump_svmlight_file(features, y.astype(int), "other.svm", multilabel=True)
    train = ["train", "labels", "--examples", "train.svm", "--valid", "other.svm", "--out", "run"]
    assert run_json(capsys, *train)["valid precision@1"] > 0.9
    assert run_json(capsys, "eval", "run", "--examples", "other.svm")["precision@1"] > 0.9


def test_a_run_that_ended_before_its_first_tree_says_what_to_do(here, capsys):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(labels.LabelTrees, "grow", lambda *given: kill())
        main(["train", "labels", "--examples", "train.txt", "--out", "run"])
    assert "has no tree yet; hybrid train --resume" in refused(capsys, "eval", "run")
    assert run_json(capsys, "train", "--resume", "run")["tree"] == 3


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--examples", "one.txt"], "one.txt: found 1 examples, expected at least 2"),
        (["--examples", "same.txt"], "same.txt: found 1 labels and"),
    ],
)
def test_what_is_refused(here, capsys, more, message):
    (here / "one.txt").write_text("__label__soup hot\n")
    (here / "same.txt").write_text("__label__soup hot\n" * 9)
    assert message in refused(capsys, "train", "labels", "--examples", "train.txt", *SMALL, *more)
    assert not (here / "runs").exists()
