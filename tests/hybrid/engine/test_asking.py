"""What an engine is asked with: what it does not take is refused by name."""

import numpy as np
import pytest

from hybrid.engine.embedding import Inputs
from hybrid.engine.engine import question

X = np.zeros((4, 3), np.float32)


class Rows:
    rows, per_example, dense = 10, 2, 0

    def __init__(self, mean=False, weighted=False):
        self.mean, self.weighted, self.per_example = mean, weighted, 1 if mean else 2


def ask(source, whole=1, ids=None, bag_at=None, values=None, x=None):
    return question(source, whole, ids, bag_at, values, x)


@pytest.mark.parametrize(
    "source, given, message",
    [
        (Inputs(3), {}, "x: found NoneType, expected an array float32"),
        (Inputs(3), {"x": X[:, :2]}, r"x: found float32 \(4, 2\), expected float32 \(any, 3\)"),
        (Inputs(3), {"x": X * np.float32("nan")}, r"x\[0\]: found NaN or infinity"),
        (Inputs(3), {"x": X, "ids": [1]}, r"ids: found list, expected None: not used by an engine with Inputs\(3\)"),
        (Inputs(3), {"x": X, "values": X}, "values: found ndarray, expected None"),
        (Inputs(3), {"x": X, "whole": 3}, "found 4 examples, expected a multiple of 3, the sequence of the trunk"),
        (
            Rows(),
            {"ids": [1, 2], "x": X},
            "x: found ndarray, expected None: not used by this engine, which has an embedding",
        ),
        (Rows(), {"ids": [1, 2, 3]}, "ids: found 3, expected a multiple of 2"),
        (Rows(), {"ids": [1, 2], "bag_at": [0, 2]}, "bag_at: not used by this embedding"),
        (Rows(True), {"ids": [1, 2]}, "bag_at: needed by this embedding"),
        (Rows(True), {"ids": [1, 2], "bag_at": [0, 2], "values": X[0]}, "values: not used by this embedding"),
        (Rows(True, True), {"ids": [1, 2], "bag_at": [0, 2]}, "values: needed by this embedding"),
        (Rows(True, True), {"ids": [1, 2], "bag_at": [0, 2], "values": X[0]}, r"values: found float32 \(3,\)"),
    ],
)
def test_what_an_engine_does_not_take_is_refused_by_name(source, given, message):
    with pytest.raises(ValueError, match=message):
        ask(source, **given)


def test_a_question_is_a_batch_whose_targets_say_nothing():
    batch = ask(Rows(True, True), ids=[1, 2], bag_at=[0, 0, 2], values=X[0, :2])
    assert batch.examples == 2 and batch.target.tolist() == [0, 0] and batch.bag_at.tolist() == [0, 0, 2]
    assert ask(Inputs(3), x=X, whole=2).examples == 4
    assert ask(Rows(), ids=[[1, 2], [3, 4]]).ids.tolist() == [1, 2, 3, 4]
