"""A readout that is the loss alone: the softmax of what the trunk gives, a number a class; it has nothing to learn."""

import numpy as np

from hybrid.readout.base import Base


class Logits(Base):
    """Where a whole net, its last layer too, is one trunk, which moves as no readout does: with momentum."""

    kind = "logits"

    def __init__(self, classes: int, *, batch: int):
        super().__init__(classes, classes, batch=batch, rate=0.0, seed=0, backend=None)

    def learn(self, grad: np.ndarray, loss: np.ndarray, hidden: np.ndarray, target: np.ndarray) -> None:  # type: ignore[override]
        """The loss of each example, and its gradient by the logits."""
        rows = np.arange(len(hidden))
        np.subtract(hidden, hidden.max(axis=1, keepdims=True), out=grad)
        loss[:] = -grad[rows, target]
        np.exp(grad, out=grad)
        sums = grad.sum(axis=1, keepdims=True)
        loss += np.log(sums[:, 0])
        grad /= sums
        grad[rows, target] -= 1

    def parameters(self) -> dict[str, np.ndarray]:
        """None."""
        return {}

    def _pairs(self) -> list:
        return []
