"""What the section says of planted records: the fall, the speeds, and the bytes of what was impossible."""

import json

import pytest

from bench.sections.billion import section

pytest.importorskip("altair")

COMMON = {"work": "billion.step", "threads": 2, "device": "cpu", "batch": 1024, "interval": [90.0, 110.0]}
PARAMS = {"classes": 10_000_000, "width": 128}
TREE = COMMON | {
    "who": "ours",
    "contender": "tree",
    "params": PARAMS | {"readout": "tree"},
    "value": 1e6,
    "parameters": 1_279_999_872,
    "memory": 6_000_000_000,
    "fall": 1.0,
    "curve": [[0, 0.0, 10.5], [36_000_000, 36.0, 9.25]],
}
DENSE = COMMON | {
    "who": "torch 2 linear_cross_entropy",
    "contender": "torch chunked",
    "params": PARAMS,
    "value": 20.0,
    "parameters": 1_280_000_000,
    "memory": None,
}
IMPOSSIBLE = {
    "work": "billion.impossible",
    "who": "torch chunked",
    "params": PARAMS,
    "quality": {"bytes needed": [15.4e9], "bytes free": [8e9]},
}


def test_what_the_tree_learned_is_told():
    (said,) = section([TREE]).answer
    for part in (
        "**1.28 G parameters**",
        "from 10.500 to 9.250 nats",
        "36,000,000 examples",
        "6.00 GB",
        "1,000,000 examples/s",
    ):
        assert part in said


def test_a_dense_rival_stands_beside_it_and_what_is_worked_out_is_called_so():
    _, said = section([TREE, DENSE]).answer
    assert "1/50,000 of the tree's" in said and "500 hours: worked out of its steps, not measured" in said


def test_what_was_impossible_is_told_by_its_bytes():
    _, said = section([TREE, IMPOSSIBLE]).answer
    assert said.startswith("Torch chunked of the same size was impossible")
    assert "takes 15.4 GB, and 8.0 GB were free" in said


def test_tables_have_the_numbers_and_the_figure_its_data():
    made = section([TREE, DENSE])
    speeds, losses = made.tables
    assert [row[0] for row in speeds.rows] == ["our tree", "torch 2 linear_cross_entropy"]
    assert speeds.rows[0][-1] == 6.0 and speeds.rows[1][-1] is None
    assert losses.rows == [[0, 0.0, 10.5], [36_000_000, 36.0, 9.25]]
    (figure,) = made.figures
    assert figure.table == "billion_loss" and '"nats": 9.25' in json.dumps(figure.chart.to_dict())


def test_gaps_say_what_is_missing():
    assert section([]).gaps == ["Nothing was measured: `python -m bench billion --json results.jsonl` does it."]
    assert section([TREE]).gaps == ["No dense softmax of the same size was tried."] and not section([TREE, DENSE]).gaps
