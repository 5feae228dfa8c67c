"""Rows that move once a batch, against the gradient summed over it, which is a matrix product. See cpu/rule.py.

Plain SGD is the product itself, added to the rows. Otherwise the gradient is written down first.
"""

from cpu.blas import gemm
from cpu.compiled import called
from cpu.rule import descend, square_of


@called()
def pull_biases(out, biases, misses):
    """out[j] = the sum of misses[b, j] over b: the gradient of the biases, if there are any."""
    if biases is not None:
        out[:] = 0
        for b in range(misses.shape[0]):
            for j in range(misses.shape[1]):
                out[j] += misses[b, j]


@called()
def move_together(rows, biases, squares, bias_squares, begin, end, pulls, bias_pulls, misses, hidden, sign, rate):
    """Move rows begin:end against sign * misses @ hidden, and their biases against sign * bias_pulls.

    misses (end - begin, B); pulls (end - begin or more, D) is scratch.
    """
    if squares is None:
        gemm(rows[begin:end], misses, hidden, -sign * rate, 1.0)
        if biases is not None:
            for j in range(end - begin):
                biases[begin + j] -= sign * rate * bias_pulls[j]
    else:
        gemm(pulls[: end - begin], misses, hidden, sign, 0.0)
        move_by(rows, biases, squares, bias_squares, begin, end, pulls, bias_pulls, sign, rate)


@called()
def move_by(rows, biases, squares, bias_squares, begin, end, pulls, bias_pulls, sign, rate):
    """Move rows begin:end against pulls (end - begin or more, D), and their biases against sign * bias_pulls."""
    for j in range(end - begin):
        pull = pulls.dtype.type(_pull(biases, bias_pulls, j) * sign)
        square = square_of(pulls, j, pull, biases, squares)
        one = pulls.dtype.type(1)
        descend(rows, biases, squares, bias_squares, begin + j, pulls, j, pull, square, one, rate)


@called()
def _pull(biases, bias_pulls, j):
    """The gradient of a bias; 0 where there is none."""
    if biases is None:
        return 0.0
    return bias_pulls[j]
