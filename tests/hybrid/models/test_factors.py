"""Next items: which choose a model and which test it, orders of histories, and ratings that are no longer those of the run."""

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hybrid import baselines, open_run
from hybrid.cli import main
from hybrid.feeds import ratings, splits
from hybrid.feeds.histories import Histories
from hybrid.models import factors
from hybrid.train import runs
from hybrid.train.options import choose
from tests.support.commands import refused, run_json

TRAIN = ["train", "factors", "--ratings", "u.data", "--out", "run"]
SMALL = "--trunk mlp --width 8 --hidden 12 --readout-width 8 --batch 64 --epochs 1 --threads 1".split()
SEQUENCE = (
    "--start counts --order sequence --trunk attention --history 6 --tied --micro-batches 1 --readout full --dropout 0 "
    "--rows-rate 0.05 --rate 0.02 --trunk-rate 0.01 --width 8 --batch 96 --epochs 8 --threads 1"
)
ORDERS = {"bag": ["--order", "bag", *SMALL], "sequence": SEQUENCE.split()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """60 users who each walk through 25 items in a circle, a step a second: u.data in the current folder."""
    monkeypatch.chdir(tmp_path)
    rows = [(user, (3 * user + step) % 25, 1000 + step) for user in range(60) for step in range(12)]
    Path("u.data").write_text("".join(f"{user}\t{item}\t4\t{time}\n" for user, item, time in rows))
    return tmp_path


@pytest.fixture
def trained(folder, capsys):
    """A run in `run`, and its report."""
    return run_json(capsys, *TRAIN, *SMALL)


def test_the_test_items_are_measured_at_the_end_alone(trained, capsys):
    point = trained["curve"][-1]
    assert {name for name in point if "@" in name} == {"valid recall@10", "valid ndcg@10"}
    assert not [name for name in point if name.startswith("test")]
    assert trained["evaluation_seconds"] > point["evaluation_seconds"]  # that of the test is counted too
    figures = run_json(capsys, "eval", "run")
    assert 0 < figures.pop("test coverage@10") <= 1
    assert 0 <= figures["test ndcg@10 of popularity"] <= figures["test recall@10 of popularity"] <= 1
    assert figures == {name: trained[name] for name in figures}
    measured = {f"{name}@10{error}" for name in ("recall", "ndcg", "mrr", "map") for error in ("", " standard error")}
    rows = ("of popularity", "of counts", "of EASE", "with counts")
    measured |= {f"{name}@10 {row}" for name in ("recall", "ndcg") for row in rows}
    measured |= {"users", "repeats", "share of counts"}
    assert set(figures) == {f"test {name}" for name in measured}
    several = run_json(capsys, "eval", "run", "--k", "3,10")
    assert {name: several[name] for name in figures} == figures and 0 < several["test coverage@3"] <= 1
    assert several["test recall@3"] <= several["test recall@10"]


def test_the_validation_item_is_history_for_the_test_and_unknown_to_validation(folder):
    """Figures equal those of ranks by hand, with scores that depend on nothing but what a user has had."""
    asked = []

    class Engine:
        def scores(self, ids, bag_at):
            asked.append([ids[a:b].tolist() for a, b in pairwise(bag_at)])
            return np.tile(np.arange(25, dtype=np.float32), (len(bag_at) - 1, 1))

    job = factors.prepare(choose("factors", ratings="u.data", trunk="mlp", history=3))
    assert job.watched.name == "valid ndcg@10"
    assert job.watched.better(0.3, than=0.2) and not job.watched.better(0.2, than=0.3)
    engine = Engine()
    job.validate(engine)
    whole = ratings.histories(ratings.load("u.data"))
    items = [whole.item[a:b].tolist() for a, b in pairwise(whole.at)]
    validating, testing = ([one[-5:-2] for one in items], [one[-4:-1] for one in items])
    assert asked == [validating]
    job.final(engine)
    assert asked[1:] == [*[validating] * len(baselines.SHARES), testing, testing]  # for the share; alone; mixed
    assert np.array_equal(job.feed.histories.item, np.concatenate([one[:-2] for one in items]))


def test_recommendations_are_mixed_with_the_counts_that_validated_best(trained, folder):
    assert trained["test share of counts"] > 0
    assert trained["test ndcg@10 with counts"] > trained["test ndcg@10"] + 0.1  # an epoch teaches little of the circle
    model = open_run("run")
    parts = splits.split(model.histories)
    users, k = np.arange(60, dtype=np.int32), 12
    mixed = model.counts.mixed(factors.scores(model.engine, model.histories, model.order), model.histories)(users)
    for exclude_seen in (True, False):
        scores = np.array(mixed)
        for user in users if exclude_seen else ():
            scores[user, model.histories.item[model.histories.at[user] : model.histories.at[user + 1]]] = -np.inf
        found = model.recommend(k=k, exclude_seen=exclude_seen, forbidden=["3"])
        scores[:, model.items.index("3")] = -np.inf
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        expected = np.take_along_axis(scores, best, 1)
        np.testing.assert_allclose(found.scores, expected, rtol=1e-6)
        assert ((found.ids == -1) == np.isneginf(expected)).all() and (found.ids != model.items.index("3")).all()
        own, there = np.take_along_axis(scores, found.ids, 1), found.ids >= 0
        np.testing.assert_allclose(own[there], found.scores[there], rtol=1e-6)
    told = model.recommend_to([[model.items[item] for item in parts.seen.item[parts.seen.at[0] : parts.seen.at[1]]]], 1)
    assert told.ids[0, 0] == parts.test.item[0]


def test_eval_from_another_folder_and_of_a_moved_file(trained, capsys, monkeypatch):
    figures = run_json(capsys, "eval", "run")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert run_json(capsys, "eval", "../run") == figures
    os.rename("../u.data", "moved.data")
    message = refused(capsys, "eval", "../run")
    assert "u.data: not there" in message and "hybrid eval ../run --ratings FILE" in message
    assert run_json(capsys, "eval", "../run", "--ratings", "moved.data") == figures


def test_a_run_keeps_what_its_ids_mean_and_knows_its_users(trained):
    whole = ratings.histories(ratings.load("u.data"))
    assert json.loads(Path("run/users.json").read_text()) == whole.users
    assert json.loads(Path("run/items.json").read_text()) == whole.items
    kept = json.loads(Path("run/run.json").read_text())
    assert (kept["data"], kept["ratings"]) == (whole.sha256, str(Path("u.data").resolve()))
    model = open_run("run")
    assert model.users == [str(user) for user in range(60)] and model.histories is model.histories


@pytest.mark.parametrize("more", ["full --biases", "sampled", "sampled --tied --width 8 --biases", "neighbours"])
def test_products_of_exported_factors_rank_as_the_run_recommends(folder, capsys, more):
    run_json(capsys, *TRAIN, *SMALL, "--epochs", "3", "--readout", *more.split())
    sides = {}
    for side, name in (("users", "users.npz"), ("outputs", "items.npz"), ("outputs", "items.npy")):
        assert main(["export", "run", name, "--side", side]) == 0
        assert f"({side}), {name[-3:]} -> {name}" in capsys.readouterr().out
        sides[name] = np.load(name)
    users, items = sides["users.npz"], sides["items.npz"]
    assert np.array_equal(items["vectors"], sides["items.npy"])
    assert items["vectors"].shape[1] == 8 + ("--biases" in more)
    best = np.argsort(-(users["vectors"] @ items["vectors"].T), axis=1)[:, :10]
    model = open_run("run")
    model.counts = None
    found = model.recommend(users["names"], 10, exclude_seen=False)
    assert [items["names"][row].tolist() for row in best] == found.names


# Ways to split


def test_times_belong_to_the_data_where_they_split(folder, capsys):
    report = run_json(capsys, *TRAIN, *SMALL, "--split-by", "time:0.3")
    figures = run_json(capsys, "eval", "run")
    del figures["test coverage@10"]
    assert figures == {name: report[name] for name in figures}
    assert 0 < figures["test recall@10"] <= 1 and report["valid users"] == report["test users"] == 60
    lines = Path("u.data").read_text().splitlines()
    moved = [line[:-4] + str(int(line[-4:]) + (line.split()[0] == "0") * 100) for line in lines]
    Path("u.data").write_text("\n".join(moved) + "\n")  # the same histories, other moments
    assert "not the ratings that run was trained on" in refused(capsys, "eval", "run")


@pytest.mark.parametrize(
    ("lines", "more", "message"),
    [
        ("1,a 1,b 2,a 2,b", "", "none of 2 users has 3 items; expected some: the last item is for the test"),
        ("1,a 1,b 1,a 1,b", "", "every item that validates was seen before by its user"),
        ("", "--split-by time:0.6:0.4", "split: found test 0.6 and valid 0.4"),
        ("", "--split-by time:0.2:0", "u.data: no item validates; expected some: give --split-by larger shares"),
        ("", "--negatives 26", "--negatives: found 26, expected at most 25, the classes"),
        ("", "--columns 1,9", "no column '9'; found 4 columns"),
    ],
)
def test_ratings_and_options_that_leave_nothing_to_learn_or_choose_with(folder, capsys, lines, more, message):
    if lines:
        Path("u.data").write_text("\n".join(["user,item", *lines.split(), ""]))
    assert message in refused(capsys, *TRAIN, *SMALL, *more.split())


@pytest.mark.parametrize("value", ["ratio:0.2", "time:1", "time:x", "last:0.2", "time:0.1:0.1:0.1"])
def test_ways_that_cannot_be_read(capsys, value):
    with pytest.raises(SystemExit):
        run_json(capsys, *TRAIN, "--split-by", value)
    assert f"argument --split-by: found {value!r}, expected" in capsys.readouterr().err


# Orders of histories


@pytest.mark.parametrize("readout", [["head"], ["tree", "--tree", "clustered"]])
def test_a_readout_that_is_as_wide_begins_as_the_rows_do(folder, capsys, readout):
    still = ["--start", "counts", "--rate", "0", "--rows-rate", "0", "--trunk-rate", "0"]
    run_json(capsys, *TRAIN, *SMALL, *still, "--readout", *readout)
    model = open_run("run").engine
    rows, made = model.embedding.table[:25], model.readout
    if readout == ["head"]:
        alone = np.flatnonzero(made.slot < made.head)
        np.testing.assert_array_equal(made.parameters()["head"][made.slot[alone]], rows[alone])
    else:
        found = made.vectors()
        np.testing.assert_allclose(found - found[0], rows - rows[0], atol=1e-5)
        with pytest.raises(ValueError, match="tree has no vector for every class; expected full"):
            runs.export("run", "items.npy", side="outputs")


@pytest.mark.parametrize("order", list(ORDERS))
def test_a_run_of_an_order_is_evaluated_and_recommends(folder, capsys, order):
    if order == "sequence":
        pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
    report = run_json(capsys, *TRAIN, *ORDERS[order])
    assert run_json(capsys, "eval", "run")["test ndcg@10"] == report["test ndcg@10"]
    model = open_run("run")
    known, new = model.recommend("3", 4), model.recommend_to([[str((9 + step) % 25) for step in range(12)]], 4)
    assert known.names == new.names
    if order == "sequence":
        assert report["test ndcg@10"] > 0.8  # what comes next in a circle is certain


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"order": "sequence", "trunk": "mlp"}, "--order sequence: needs a trunk that reads sequences"),
        ({"tied": True, "readout": "tree"}, "--tied: not used by --readout tree"),
        ({"tied": True, "readout": "full", "micro_batches": 2}, "--micro-batches: found 2, expected 1 with --tied"),
    ],
)
def test_what_contradicts(said, message):
    with pytest.raises(ValueError, match=message):
        choose("factors", ratings="-", **said)


@pytest.mark.parametrize(
    ("ratings_an_item", "said", "expected"),
    [
        (6, {}, {"dropout": 0.5, "history": 20, "batch": 20 * 36}),  # 3 windows have 59 targets
        (factors.OFTEN, {}, {"dropout": 0.2, "history": 50, "batch": 50 * 14}),  # 6 have 299
        (6, {"dropout": 0.1, "history": 30}, {"batch": 30 * 24}),  # 2 have 59
        (6, {"history": 5000}, {"dropout": 0.5, "batch": 5000 * 12}),  # 1 has 59
        (6, {"batch": 700}, {"dropout": 0.5, "history": 20}),
    ],
)
def test_sequences_follow_how_often_items_occur(ratings_an_item, said, expected):
    size = 10 * ratings_an_item
    train = Histories(np.arange(size) % 10, np.array([0, size]), ["u"], [str(item) for item in range(10)])
    options = choose("factors", ratings="-", order="sequence", trunk="attention", **said)
    found, line = factors._by_data(options, train)
    assert found == expected
    often = "dense" if ratings_an_item >= factors.OFTEN else "sparse"
    assert line.startswith(f"{ratings_an_item} ratings an item, {often}:")
    assert ("--dropout" in line) == ("dropout" not in said)


def test_short_histories_share_a_batch_with_127_others_and_one_smaller_than_a_sequence_is_refused():
    train = Histories(np.arange(400) % 10, np.arange(0, 401, 2), [str(user) for user in range(200)], list("abcdefghij"))
    options = choose("factors", ratings="-", order="sequence", trunk="attention")
    assert factors._by_data(options, train)[0]["batch"] == 128 * 50
    options = choose("factors", ratings="-", order="sequence", trunk="attention", batch=7)
    with pytest.raises(ValueError, match="--batch: found 7, expected at least 20"):
        factors._by_data(options, train._replace(item=train.item[:10], at=np.array([0, 10]), users=["u"]))
