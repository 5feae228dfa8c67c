"""Operations and bytes of a stage, by formula from its sizes. An operation is an addition or a multiplication of float32.

Bytes are those that memory must move at least: every number that a stage uses is read once, and written once where it changes.
What caches cannot keep is moved more often, so the true intensity is at most this one.
"""

from typing import NamedTuple

FLOAT = 4


class Count(NamedTuple):
    """Of one run of a stage."""

    operations: float
    moved: float

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.operations / self.moved

    def attainable(self, peak: float, bandwidth: float) -> float:
        """Operations a second under the roof of a machine: `peak` operations, `bandwidth` bytes a second."""
        return min(peak, self.intensity * bandwidth)


def forward(batch: int, inputs: int, outputs: int) -> Count:
    """A dense layer: x (B, K) times a matrix (N, K)."""
    return Count(2.0 * batch * inputs * outputs, FLOAT * (batch * inputs + inputs * outputs + batch * outputs))


def backward(batch: int, inputs: int, outputs: int) -> Count:
    """Its gradients of x and of the matrix: two products; x and the matrix are read, both gradients written."""
    numbers = batch * outputs + 2 * batch * inputs + 2 * inputs * outputs
    return Count(4.0 * batch * inputs * outputs, FLOAT * numbers)


def full(batch: int, width: int, classes: int) -> Count:
    """A step of a full softmax: logits, gradient of hidden vectors, gradient of rows; B V exponentials are not counted."""
    return Count(6.0 * batch * width * classes, FLOAT * (2 * classes * width + 2 * batch * width))


def sampled(batch: int, width: int, negatives: int, rows: int) -> Count:
    """The same over the target and shared negatives; rows: different ones that are met."""
    return Count(6.0 * batch * width * (negatives + 1), FLOAT * (2 * rows * width + 2 * batch * width))


def tree(batch: int, width: int, visits: int, nodes: int) -> Count:
    """A step of a tree: each visit of a node is a product, a part of a gradient and a move; nodes: different ones."""
    return Count(6.0 * visits * width, FLOAT * (2 * nodes * width + 2 * batch * width))


def gather(bags: int, width: int, ids: int, rows: int) -> Count:
    """The means of bags of rows."""
    return Count(float(ids * width), FLOAT * (rows * width + bags * width))


def scatter(bags: int, width: int, ids: int, rows: int) -> Count:
    """Rows move against the gradients of such means."""
    return Count(2.0 * ids * width, FLOAT * (2 * rows * width + bags * width))


def frame(parameters: int, streams: int, moved: int) -> Count:
    """A tick of a Predictive Vision Model: a weight is multiplied and moved. What flows back adds to it: so at least this."""
    return Count(4.0 * parameters * streams, moved)
