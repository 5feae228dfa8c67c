"""One step of a tree on a device."""

import numpy as np

from gpu import tree_softmax
from hybrid.contract import Learned


def run(gpu, tree, nodes, hidden, target, rate, work=None):
    """grad, loss and the moved nodes."""
    plan, there = gpu.run(tree_softmax.plan, tree), gpu.put(nodes)
    grad, loss = gpu.empty(hidden.shape, np.float32), gpu.empty(len(hidden), np.float32)
    work = work or gpu.run(tree_softmax.workspace, *hidden.shape, tree.depth, np.float32)
    given = gpu.put(hidden), gpu.put(target), None, rate
    gpu.run(tree_softmax.step, grad, loss, Learned(there), work, plan, *given)
    return gpu.get(grad), gpu.get(loss), gpu.get(there)


def close(found, wanted, atol=3e-5):
    """Gradients, losses and nodes."""
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)


def same(found, wanted):
    """Their bytes."""
    for one, other in zip(found, wanted, strict=True):
        assert one.tobytes() == other.tobytes()
