"""What the twins of the two Predictive Vision Models share: activations, an MLP of any depth, places of square grids."""

from itertools import pairwise

import numpy as np


def logistic(s):
    return 1 / (1 + np.exp(-s))


def logistic_slope(a):
    return a * (1 - a)


def rational(s):
    return s / (2 * (abs(s) + 1)) + s.dtype.type(0.5)


def rational_slope(a):
    return (1 - abs(2 * a - 1)) ** 2 / 2


def rational_slope_2023(a):
    """The kernel's slip of a sign: 1/2 in the middle, as it should be, but 2/9 instead of 0 at the ends."""
    w = abs(2 * a - 1)
    return 1 / (2 * (1 + w / (1 + w)) ** 2)


class Net:
    """An MLP of any depth, rational. Matrices are (inputs + 1, outputs), the bias is the last row."""

    def __init__(self, sizes):
        self.sizes, self.shapes = list(sizes), [(rows + 1, columns) for rows, columns in pairwise(sizes)]

    def take(self, weights):
        """Views into a flat array, from its beginning; what is left over."""
        self.matrices = []
        for rows, columns in self.shapes:
            self.matrices.append(weights[: rows * columns].reshape(rows, columns))
            weights = weights[rows * columns :]
        self.velocities = [np.zeros_like(matrix) for matrix in self.matrices]
        return weights

    def initialise(self, rng):
        for matrix in self.matrices:
            matrix[:] = rng.uniform(-1, 1, matrix.shape) / np.sqrt(len(matrix) - 1)

    def forward(self, x):
        """Vectors of all layers, each with a 1 at its end but the output."""
        record = [np.append(x, 1)]
        for place, matrix in enumerate(self.matrices):
            y = rational(record[-1] @ matrix)
            record.append(np.append(y, 1) if place + 1 < len(self.matrices) else y)
        return record

    def nothing(self):
        """What stands in the queue before anything was predicted: all zero, but the 1 of each bias."""
        record = [np.append(np.zeros(rows - 1), 1) for rows, _ in self.shapes]
        return [*record, np.zeros(self.sizes[-1])]

    def train(self, record, error, rate, momentum):
        """One step of SGD with momentum, from activations that may be old; all deltas before any matrix moves."""
        deltas = [rational_slope(record[-1]) * error]
        for place in range(len(self.matrices) - 1, 0, -1):
            inner = self.matrices[place] @ deltas[0]  # of the bias too: of no use
            deltas.insert(0, (rational_slope(record[place]) * inner)[: self.sizes[place]])
        for x, delta, matrix, velocity in zip(record, deltas, self.matrices, self.velocities, strict=False):
            velocity[:] = momentum * velocity + rate * np.outer(x, delta)
            matrix += velocity


def near(n, x, y, radius, exclude_self):
    """Places of an n x n grid within `radius` of (x, y)."""
    places = [(i, j) for i in range(n) for j in range(n) if (i - x) ** 2 + (j - y) ** 2 <= radius * radius]
    return [place for place in places if not (exclude_self and place == (x, y))]


def below(n_low, n_up, x, y, size, radius):
    """Places of an n_low x n_low grid that (x, y) of an n_up x n_up grid above looks at.

    Rounding comes last and is towards 0: a block larger than the grid (4 on 3: -0.5, 0.5, 1.5, 2.5) has its first row
    and column twice. Then a source is listed twice, too.
    """

    def place(at, offset):
        begin = (n_low - size) / (n_up - 1) * at if n_up > 1 else (n_low - size) / 2
        return int(begin + offset)

    middle = (size - 1) / 2
    offsets = [(i, j) for i in range(size) for j in range(size)]
    block = [(place(x, i), place(y, j)) for i, j in offsets if (i - middle) ** 2 + (j - middle) ** 2 <= radius * radius]
    return [(i, j) for i, j in block if 0 <= i < n_low and 0 <= j < n_low]
