"""The head of a readout: a softmax over slots."""

import numpy as np

from cpu import head
from hybrid.contract import Learned
from tests.support.heads import case, oracle


def test_a_step_is_the_float64_oracle(threads):
    slot, rows, hidden, target, grad = case()
    expected = oracle(slot, rows, hidden, target, grad, 0.1)
    work, loss = head.workspace(20, 5, np.float32), np.empty(12, np.float32)
    before = np.empty(12, np.float32)
    head.log_prob(before, Learned(rows), work, slot, hidden, target)
    head.step(grad, loss, Learned(rows), work, slot, hidden, target, None, 0.1)
    for one, other in zip((grad, loss, rows, -before), (*expected, expected[1]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_what_a_slot_has_goes_to_all_its_classes(threads):
    out = np.arange(6, dtype=np.float32).reshape(2, 3)
    head.spread(out, np.float32([[10, 20], [30, 40]]), np.int32([1, 0, 1]))
    assert out.tolist() == [[20, 11, 22], [43, 34, 45]]
