"""Table 7: networks have the published sizes, every rival the same losses, figures of small ones stand beside nothing."""

import numpy as np
import pytest

from bench.harness import report
from bench.oracles.tree import path
from bench.report.sections.table7 import section
from bench.step.table7 import BATCHES, FIRST, FULL, NETS, Feed, Rival, Row, Task, expected, first_weights, rows
from cpu.tree.tree import huffman


def test_the_parameters_of_nets_of_pytorch_are_those_published():
    torch = pytest.importorskip("torch")
    for row in FULL:
        if row.net in NETS:
            with torch.device("meta"):
                body, width = NETS[row.net](row.sizes)
            words = row.sizes[0] * row.classes if row.net == "lstm" else 0
            assert sum(own.numel() for own in body.parameters()) + (width + 1) * row.classes + words == row.parameters


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_oracle_s_losses_are_those_of_gradients_by_differences(momentum):
    row = Row("tiny", "dense", (3, 4, 5, 2), 6, 0.3, momentum, None)
    feed, weights = Feed(row), first_weights(row.sizes).astype(float)

    def loss(at, tick):
        return expected(row._replace(rate=0.0, momentum=0.0), feed, at)[tick]

    losses, at, speed = [], weights.copy(), 0.0
    for tick in range(FIRST):
        losses.append(loss(at, tick))
        tiny = 1e-5 * np.eye(at.size)
        speed = momentum * speed + np.array([loss(at + one, tick) - loss(at - one, tick) for one in tiny]) / 2e-5
        at = at - row.rate * speed
    np.testing.assert_allclose(expected(row, feed, weights), losses, rtol=1e-7)
    assert losses[0] != pytest.approx(losses[BATCHES], rel=1e-3)


def test_a_wrong_loss_or_number_of_parameters_is_not_timed():
    task = Task(next(row for row in rows(quick=True) if row.name == "FCN-R"))
    right, parameters = list(task.losses), 1174
    task.check(Rival("ours", lambda: 0.0, parameters), right)
    with pytest.raises(AssertionError, match="torch: 1175 parameters, expected 1174"):
        task.check(Rival("torch", lambda: 0.0, parameters + 1), right)
    changed = right[BATCHES] - right[0]
    for place in range(FIRST):
        wrong = [*right[:place], right[place] + 0.02 * changed, *right[place + 1 :]]
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            task.check(Rival("torch", lambda: 0.0, parameters), wrong)


def test_a_tree_that_does_not_learn_is_not_timed():
    task = Task(next(row for row in rows(quick=True) if row.net == "tree"))
    tree = huffman(task.feed.counts)
    first = np.log(2) * np.mean([len(path(tree, leaf)) for leaf in task.feed.targets[0]])
    with pytest.raises(AssertionError, match="does not fall"):
        task.check(Rival("ours", lambda: 0.0, 5), [first, first, first, first])


def record(who, threads, value, device="cpu", net="FCN-R", parameters=14_205_962, **more):
    made = {"work": "table7.step", "who": who, "threads": threads, "device": device, "value": value, "spread": 0.1}
    made |= {"params": {"net": net, "batch": 1024, "parameters": parameters}, "interval": [value / 2, value * 2]}
    return made | {"env": {"cpu": "Chip"}, "commit": "abc"} | more


def listed(records):
    *_, table = section(records).tables
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


def test_the_table_has_the_published_figures_beside():
    found = listed([record("ours", 2, 4.0), record("torch 9", 2, 5.0), record("ours", 2, 100.0, device="GPU 9")])
    at = {(row["who"], row["where"], row["threads"]): row["seconds"] for row in found}
    assert at["ours", "Chip", 2] == 0.25 and at["torch 9", "Chip", 2] == 0.2 and at["ours", "GPU 9", None] == 0.01
    assert at["Caffe, 2016", "Intel i7-3820", 1] == 2.476 and at["Caffe, 2016", "K80", None] == 0.055
    assert found[0]["lowest of 95 %"] == 0.125 and found[0]["source"] == "measured here"
    text = report.tables([record("ours", 2, 4.0)])
    assert "| FCN-R | 14,205,962 | 1,024 | 0.25 |" in text and "| 2.48 |" in text


@pytest.mark.parametrize(
    "more", [{"parameters": 1174}, {"net": "LSTM"}, {"work": "table7.tree", "net": "FCN-S with a tree"}]
)
def test_other_sizes_and_the_tree_stand_beside_no_published_figure(more):
    records = [record("ours", 2, 4.0, **more)]
    assert [row["who"] for row in listed(records)] == ["ours"]
    assert section(records).figures == []
