"""Which items choose a model and which test it; what `hybrid eval` does where the ratings are no longer those of the run."""

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import hybrid
from hybrid import metrics
from hybrid.feeds import ratings
from hybrid.feeds.histories import whole as bags
from hybrid.feeds.interactions import Order
from hybrid.models import factors
from tests.support.commands import refused, run_json

SMALL = ["--width", "8", "--hidden", "12", "--readout-width", "8", "--batch", "64", "--epochs", "1", "--threads", "2"]


def rows(last=()):
    """60 users who each walk through 25 items in a circle; user u's last item is last[u], where given."""
    table = [(u, (3 * u + t) % 25, 1000 + t) for u in range(60) for t in range(12)]
    for user, item in enumerate(last):
        table[12 * user + 11] = (user, item, 1011)
    return "".join(f"{user}\t{item}\t4\t{time}\n" for user, item, time in table)


@pytest.fixture
def trained(tmp_path, monkeypatch, capsys):
    """A run in `run` of the ratings in u.data, both of the current folder, and its report."""
    monkeypatch.chdir(tmp_path)
    Path("u.data").write_text(rows())
    return run_json(capsys, "train", "factors", "--ratings", "u.data", "--out", "run", *SMALL)


def test_the_test_items_are_measured_at_the_end_alone(trained, capsys):
    point = trained["curve"][-1]
    assert {name for name in point if "@" in name} == {"valid recall@10", "valid ndcg@10"}
    assert not [name for name in point if name.startswith("test")]
    assert trained["evaluation_seconds"] > point["evaluation_seconds"]  # that of the test is counted too
    figures = run_json(capsys, "eval", "run")
    assert figures == {name: trained[name] for name in figures}
    assert set(figures) == {
        "test recall@10",
        "test ndcg@10",
        "test users",
        "test repeats",
        "test recall@10 of popularity",
        "test ndcg@10 of popularity",
    }


def test_the_validation_item_is_history_for_the_test_and_unknown_to_validation(tmp_path, monkeypatch):
    """Figures equal those of ranks by hand, with scores that depend on nothing but what a user has had."""
    (tmp_path / "u.data").write_text(rows())
    asked = []

    class Engine:
        def scores(self, ids, bag_at):
            asked.append([ids[a:b].tolist() for a, b in pairwise(bag_at)])
            return np.tile(np.arange(25, dtype=np.float32), (len(bag_at) - 1, 1))

    options = {"ratings": tmp_path / "u.data", "history": 3, "batch": 64, "epochs": 1, "seed": 0}
    job = factors.prepare(options)
    engine = Engine()
    job.validate(engine)
    whole = ratings.histories(ratings.load(tmp_path / "u.data"))
    items = [whole.item[a:b].tolist() for a, b in pairwise(whole.at)]
    assert asked == [[one[-5:-2] for one in items]]
    job.final(engine)
    assert asked[1:] == [[one[-4:-1] for one in items]]
    assert np.array_equal(job.feed.histories.item, np.concatenate([one[:-2] for one in items]))


def test_the_best_model_is_the_one_of_the_highest_recall(tmp_path):
    (tmp_path / "u.data").write_text(rows())
    job = factors.prepare({"ratings": tmp_path / "u.data", "history": 3, "batch": 64, "epochs": 1, "seed": 0})
    assert job.watched.name == "valid recall@10"
    assert job.watched.better(0.3, than=0.2) and not job.watched.better(0.2, than=0.3)


def test_ratings_that_leave_nothing_to_choose_with(tmp_path, capsys):
    few, again = tmp_path / "few.csv", tmp_path / "again.csv"
    few.write_text("user,item\n1,a\n1,b\n2,a\n2,b\n")
    again.write_text("user,item\n1,a\n1,b\n1,a\n1,b\n")
    command = ["train", "factors", "--out", str(tmp_path / "run"), "--ratings"]
    assert "none of 2 users has 3 items; expected some: the last tests" in refused(capsys, *command, str(few))
    assert "every item that validates is one that its user had before" in refused(capsys, *command, str(again))


def test_eval_from_another_folder_and_of_a_moved_file(trained, capsys, monkeypatch):
    figures = run_json(capsys, "eval", "run")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert run_json(capsys, "eval", "../run") == figures
    os.rename("../u.data", "moved.data")
    message = refused(capsys, "eval", "../run")
    assert "u.data: not there" in message and "hybrid eval ../run --ratings FILE" in message
    assert run_json(capsys, "eval", "../run", "--ratings", "moved.data") == figures


def test_a_run_keeps_what_its_ids_mean(trained):
    whole = ratings.histories(ratings.load("u.data"))
    assert json.loads(Path("run/users.json").read_text()) == whole.users
    assert json.loads(Path("run/items.json").read_text()) == whole.items
    kept = json.loads(Path("run/run.json").read_text())
    assert (kept["data"], kept["ratings"]) == (whole.sha256, str(Path("u.data").resolve()))


def test_columns_by_option(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("plain.txt").write_text("".join(" ".join(line.split()[:2]) + "\n" for line in rows().splitlines()))
    command = ["train", "factors", "--ratings", "plain.txt", "--out", "run", *SMALL]
    assert "no user column; found the columns '0', '0'" in refused(capsys, *command)
    report = run_json(capsys, *command, "--columns", "1,2")
    assert run_json(capsys, "eval", "run")["test recall@10"] == report["test recall@10"]


def test_scores_of_a_user_are_those_of_log_prob(trained):
    from hybrid.engine import Engine

    engine, _ = Engine.load("run/checkpoint", threads=1)
    parts = ratings.split(ratings.histories(ratings.load("u.data")))
    users = np.array([5, 0, 59], np.int32)
    found = factors.scores(engine, parts.seen, Order(length=50))(users)
    batch = bags(parts.seen, users, users, 50)
    hidden = np.repeat(engine.hidden(batch.ids, batch.bag_at), 25, axis=0)
    expected = engine.readout.log_prob(hidden, np.tile(np.arange(25, dtype=np.int32), 3)).reshape(3, 25)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert metrics.figures(factors.scores(engine, parts.seen, Order(length=50)), parts.seen, parts.test)["users"] == 60


def test_the_users_of_a_run_are_known_before_anything_is_asked(trained):
    model = hybrid.open_run("run")
    assert model.users == [str(user) for user in range(60)] and model.histories is model.histories


def test_defaults_are_settings_that_a_search_has_tried():
    records = [json.loads(line) for line in Path("bench/results/summary.jsonl").read_text().splitlines()]
    tried = [one["params"] for one in records if one["bench"] == "tune_factors"]
    for tuned in factors.TUNED.values():
        wanted = {name: value for name, value in tuned.items() if name in tried[0]}
        assert any(wanted.items() <= one.items() for one in tried), wanted
