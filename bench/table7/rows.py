"""The networks of Table 7 of Shi et al. 2016, as their configurations have them, and what they learn from here.

Data are drawn and lie in memory: images and features normal, the pixels of FCN-R uniform, classes and words uniform.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np

from hybrid.feeds import Batch

BATCHES = 2  # different ones, in turn: what is learned of the first one shows at its second visit
FIRST = 4  # losses that are compared before anything is timed


class Row(NamedTuple):
    """A network.

    name        as published
    net         "dense", "tree" (its last layer is a tree), or a function of table7_nets.py
    sizes       dense: all widths; of images their side and how many classes; of the LSTM its width and how many words
    batch       examples, or sequences of so many `steps`
    rate, momentum, decay  of SGD
    parameters  that it must have; None: small sizes
    """

    name: str
    net: str
    sizes: tuple[int, ...]
    batch: int
    rate: float
    momentum: float
    parameters: int | None
    decay: float = 0.0
    steps: int = 1

    @property
    def classes(self) -> int:
        return self.sizes[-1]

    @property
    def examples(self) -> int:
        """Targets of a batch."""
        return self.batch * self.steps

    @property
    def inputs(self) -> int:
        """Numbers of an example; of the LSTM those of a word's vector."""
        return 3 * self.sizes[0] ** 2 if self.net not in ("dense", "tree", "lstm") else self.sizes[0]


WIDE, TREE = (26_752, 2048, 2048, 2048, 26_752), "FCN-S with a tree"
FULL = (
    Row("FCN-S", "dense", WIDE, 64, 0.01, 0.0, 117_997_696),
    Row(TREE, "tree", WIDE, 64, 0.01, 0.0, 63_182_848 + 26_751 * 2048),
    Row("FCN-R", "dense", (784, 2048, 4096, 1024, 10), 1024, 0.05, 0.9, 14_205_962),
    Row("AlexNet-S", "alexnet_s", (224, 1000), 16, 0.01, 0.0, 62_378_344),
    # of its published step nothing moves; so little that rounding, which its batch norms make larger, stays small
    Row("ResNet-50", "resnet50", (224, 1000), 16, 1e-5, 0.0, 25_557_032),
    Row("AlexNet-R", "alexnet_r", (32, 10), 1024, 0.01, 0.9, 85_098),
    Row("ResNet-56", "resnet56", (32, 10), 128, 0.01, 0.9, 853_018, decay=1e-4),
    # 6,180,624 as published, and a second bias of each gate, which PyTorch's has
    Row("LSTM", "lstm", (256, 10_000), 128, 0.1, 0.0, 6_180_624 + 2 * 4 * 256, steps=32),
)
SMALL = {  # sizes and batches that show that it runs
    "FCN-S": ((300, 24, 24, 24, 300), 8),
    TREE: ((300, 24, 24, 24, 300), 8),
    "FCN-R": ((20, 16, 24, 12, 10), 16),
    "AlexNet-S": ((63, 20), 2),
    "ResNet-50": ((64, 20), 8),
    "AlexNet-R": ((32, 10), 8),
    "ResNet-56": ((32, 10), 8),
    "LSTM": ((16, 100), 4),
}


def rows(quick: bool) -> list[Row]:
    """All networks; small ones for a quick look."""
    if not quick:
        return list(FULL)
    return [row._replace(sizes=SMALL[row.name][0], batch=SMALL[row.name][1], parameters=None) for row in FULL]


class Feed:
    """Batches of a row, the same ones again and again, as an engine takes them."""

    epochs, ticks_per_epoch = 1, 10**6

    def __init__(self, row: Row):
        rng = np.random.default_rng(0)
        self.batch, self.classes = row.examples, row.classes
        self.counts = np.ones(row.classes, np.int64)
        self.targets = rng.integers(0, row.classes, (BATCHES, row.examples)).astype(np.int32)
        words = row.net == "lstm"
        self.rows = row.classes if words else 0
        self.most_ids, self.width = (row.examples, 0) if words else (0, row.inputs)
        self.inputs = self._drawn(rng, row)
        self._batches = [
            Batch(given if words else None, None, target, x=None if words else given)
            for given, target in zip(self.inputs, self.targets, strict=True)
        ]

    def __len__(self) -> int:
        return self.ticks_per_epoch

    def __getitem__(self, tick: int) -> Batch:
        return self._batches[tick % BATCHES]

    def describe(self) -> dict[str, Any]:
        return {"kind": "drawn"}

    def _drawn(self, rng: np.random.Generator, row: Row) -> np.ndarray:
        """(BATCHES, examples, width) float32, or (BATCHES, examples) int32 words."""
        if row.net == "lstm":
            return rng.integers(0, row.classes, (BATCHES, row.examples)).astype(np.int32)
        shape = (BATCHES, row.examples, row.inputs)
        return rng.random(shape, np.float32) if row.name == "FCN-R" else rng.standard_normal(shape, np.float32)


def first_weights(sizes: tuple[int, ...]) -> np.ndarray:
    """Of a dense net, layer by layer: its matrix (outputs, inputs), uniform within 1 / sqrt(inputs), and biases of 0."""
    rng, parts = np.random.default_rng(1), []
    for inputs, outputs in itertools.pairwise(sizes):
        matrix = rng.random(outputs * inputs, np.float32)
        matrix -= np.float32(0.5)
        matrix *= np.float32(2 / np.sqrt(inputs))
        parts += [matrix, np.zeros(outputs, np.float32)]
    return np.concatenate(parts)


def layers(sizes: tuple[int, ...], weights: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Matrix and bias of each layer, views of such weights."""
    found, at = [], 0
    for inputs, outputs in itertools.pairwise(sizes):
        end = at + outputs * inputs
        found.append((weights[at:end].reshape(outputs, inputs), weights[end : end + outputs]))
        at = end + outputs
    return found


def expected(row: Row, feed: Feed, weights: np.ndarray) -> list[float]:
    """The first losses of a dense net in float64: logistic layers, softmax, SGD on the mean loss."""
    weights = weights.astype(float)
    parts = layers(row.sizes, weights)
    speeds = layers(row.sizes, np.zeros_like(weights)) if row.momentum else None
    losses, some = [], np.arange(row.batch)
    for tick in range(FIRST):
        values, target = [feed.inputs[tick % BATCHES].astype(float)], feed.targets[tick % BATCHES]
        for matrix, bias in parts:
            if values[1:]:
                values[-1] = 1 / (1 + np.exp(-values[-1]))
            values.append(values[-1] @ matrix.T + bias)
        delta = np.exp(values[-1] - values[-1].max(1, keepdims=True))
        delta /= delta.sum(1, keepdims=True)
        losses.append(float(-np.log(delta[some, target]).mean()))
        delta[some, target] -= 1
        delta /= row.batch
        for place in reversed(range(len(parts))):
            matrix, bias = parts[place]
            grads = delta.T @ values[place], delta.sum(0)
            if place:
                delta = delta @ matrix * values[place] * (1 - values[place])
            for number, (array, grad) in enumerate(zip((matrix, bias), grads, strict=True)):
                if speeds:
                    grad += row.momentum * speeds[place][number]
                    speeds[place][number][:] = grad
                array -= row.rate * grad
    return losses
