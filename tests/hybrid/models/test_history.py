"""Orders of histories by option: trained, measured, asked."""

import json

import numpy as np
import pytest

from hybrid import open_run
from hybrid.cli import main
from hybrid.train.options import choose

SMALL = ["--width", "8", "--readout-width", "8", "--threads", "1", "--readout", "full"]
SEQUENCE = "--start counts --order sequence --trunk attention --history 6 --tied --micro-batches 1".split()
RATES = ["--rows-rate", "0.05", "--rate", "0.02", "--trunk-rate", "0.01", "--dropout", "0"]
ORDERS = {
    "decay": ["--order", "decay", "--hidden", "12", "--epochs", "1"],
    "concatenated": ["--order", "concatenated", "--history", "2", "--hidden", "12", "--epochs", "1"],
    "sequence": [*SEQUENCE, *RATES, "--batch", "96", "--epochs", "8"],
}


@pytest.fixture
def train(tmp_path, capsys):
    """Train on 60 users who walk through 25 items in a circle; the report and what was said beside it."""
    table = [(user, (3 * user + t) % 25, t) for user in range(60) for t in range(12)]
    (tmp_path / "u.csv").write_text("user,item,time\n" + "".join(f"{u},i{i},{t}\n" for u, i, t in table))

    def run(*more):
        command = ["train", "factors", "--ratings", str(tmp_path / "u.csv"), "--out", str(tmp_path / "run"), "--json"]
        assert main([*command, *SMALL, *more]) == 0
        out, err = capsys.readouterr()
        return json.loads(out), err

    return run


@pytest.mark.parametrize("readout", [["head"], ["tree", "--tree", "clustered"]])
def test_a_readout_that_is_as_wide_begins_as_the_rows_do(readout, train, tmp_path):
    still = ["--rate", "0", "--rows-rate", "0", "--trunk-rate", "0"]
    train("--start", "counts", "--order", "decay", "--hidden", "12", "--epochs", "1", *still, "--readout", *readout)
    model = open_run(str(tmp_path / "run")).engine
    rows, found = model.embedding.table[:25], model.readout.vectors()
    np.testing.assert_allclose(found - found[0], rows - rows[0], atol=1e-5)


@pytest.mark.parametrize("order", list(ORDERS))
def test_a_run_is_trained_evaluated_and_recommends(order, train, tmp_path, capsys):
    if order == "sequence":
        pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
    report, said = train(*ORDERS[order])
    run = str(tmp_path / "run")
    assert "the last item of every user with three tests, the one before it validates; all items are ranked" in said
    assert main(["eval", run, "--json"]) == 0
    out, said = capsys.readouterr()
    assert json.loads(out)["test ndcg@10"] == report["test ndcg@10"] and "all items are ranked" in said
    model = open_run(run)
    known, new = model.recommend("3", 4), model.recommend_to([[f"i{(9 + t) % 25}" for t in range(12)]], 4)
    assert known.names == new.names
    if order == "sequence":
        assert report["test ndcg@10"] > 0.8  # what comes next in a circle is certain


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"order": "sequence"}, "--order sequence: needs a trunk that reads sequences"),
        ({"order": "sequence", "trunk": "attention", "batch": 7}, "--batch: found 7, expected at least 20"),
        ({"tied": True, "readout": "tree"}, "--tied: not used by --readout tree"),
        ({"tied": True, "readout": "full", "delay": 1}, "--delay: found 1, expected 0 with --tied"),
    ],
)
def test_what_contradicts(said, message):
    with pytest.raises(ValueError, match=message):
        choose("factors", ratings="-", **said)


def test_defaults_follow_the_order():
    lengths = {"bag": 5, "decay": 10, "concatenated": 3}
    assert {order: choose("factors", ratings="-", order=order)["history"] for order in lengths} == lengths
    found = choose("factors", ratings="-", order="sequence", trunk="attention", readout="full")
    assert (found["history"], found["batch"], found["micro_batches"]) == (20, 2560, 2)
    assert found["readout_width"] == found["width"]
