"""The head of a readout on the device: the oracle that the CPU is held to."""

import numpy as np

from gpu import head
from hybrid.contract import Learned
from tests.support.heads import case
from tests.support.softmaxes import check_step


def test_a_step_is_the_float64_oracle(gpu):
    slot, rows, hidden, target, grad = case(classes=400, slots=300, width=33, batch=65)
    work = gpu.run(head.workspace, 70, 33, np.float32)
    moved, sums, loss, out = gpu.put(rows), gpu.put(grad), gpu.empty(65, np.float32), gpu.empty(65, np.float32)
    given = Learned(moved), work, gpu.put(slot), gpu.put(hidden), gpu.put(target)
    gpu.run(head.log_prob, out, *given)
    gpu.run(head.step, sums, loss, *given, None, 0.1)
    check_step((gpu.get(sums) - 1, gpu.get(loss), gpu.get(moved)), rows, hidden, slot[target])
    np.testing.assert_allclose(gpu.get(out), -gpu.get(loss), atol=1e-4)
