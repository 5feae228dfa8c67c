"""What every readout refuses, and that nothing has moved then."""

import numpy as np
import pytest
from scipy import sparse

from hybrid import GBCE, Batched, SampledSoftmax
from hybrid.readout import FullReadout, NeighbourReadout, SampledReadout, TreeReadout
from hybrid.readout.sampled import loss_named
from tests.support.readouts import CLASSES, MAKE, batch, changed, frozen, train


@pytest.mark.parametrize("entry", [CLASSES, -1])
def test_a_bad_exclude_is_refused(entry):
    exclude = sparse.csr_array(([1.0], ([3], [5])), (16, CLASSES))
    with pytest.raises(ValueError, match=r"exclude: found \(16, 6\), expected .*\(16, 37\)"):
        MAKE["full"]().best(batch()[1], 3, exclude[:, :6])
    exclude.indices[0] = entry
    message = rf"exclude\.indices\[0\]: found {entry}, expected 0 to 36; build it by"
    with pytest.raises(ValueError, match=message):
        MAKE["full"]().best(batch()[1], 3, exclude)


def overlapping(hidden, target):
    """grad begins within hidden."""
    memory = np.concatenate([hidden, hidden[:1]])
    return memory[1:], memory[:-1], target


BAD = {
    "shape of hidden": (lambda g, h, t: (g, h[:, :5].copy(), t), ValueError, r"hidden: found float32 \(16, 5\), exp"),
    "a list": (lambda g, h, t: (g, h.tolist(), t), ValueError, "hidden: found list, expected an array"),
    "no target": (lambda g, h, t: (g, h, None), ValueError, "target: found NoneType, expected an array"),
    "shape of grad": (lambda g, h, t: (g[:3], h, t), ValueError, r"grad: found float32 \(3, 6\)"),
    "short target": (lambda g, h, t: (g, h, t[:3]), ValueError, r"target: found int32 \(3,\), expected int32 \(16,\)"),
    "negative id": (lambda g, h, t: (g, h, changed(t, 4, -1)), IndexError, r"target\[4\]: found -1, expected 0 to 36"),
    "large id": (lambda g, h, t: (g, h, changed(t, 15, 37)), IndexError, r"target\[15\]: found 37, expected 0 to 36"),
    "NaN": (lambda g, h, t: (g, changed(h, (3, 1), np.nan), t), ValueError, r"hidden\[3\]: found NaN or infinity"),
    "too many": (lambda g, h, t: batch(rows=17), ValueError, "hidden: found 17 rows, expected at most 16"),
    "one memory": (lambda g, h, t: overlapping(h, t), ValueError, "grad: found the memory of hidden"),
}


def refused(kind, bad):
    readout = MAKE[kind](rate=0.1)
    before = frozen(readout)
    spoil, error, message = BAD[bad]
    with pytest.raises(error, match=message):
        readout.step(*spoil(*batch()))
    assert frozen(readout) == before


@pytest.mark.parametrize("bad", BAD)
def test_bad_input_is_refused_and_nothing_moves(bad):
    refused("huffman", bad)


@pytest.mark.parametrize("kind", MAKE)
def test_every_kind_refuses(kind):
    """One thing of each sort: the checks are those of Base."""
    refused(kind, "large id")
    readout, (grad, hidden, target) = MAKE[kind](), batch()
    with pytest.raises(ValueError, match="exclude: found ndarray"):
        readout.best(hidden, 3, np.zeros((16, CLASSES)))
    with pytest.raises(ValueError, match="k: found 0, expected a whole number from 1 to 37"):
        readout.best(hidden, 0)
    with pytest.raises(IndexError, match=r"target\[0\]: found 99"):
        readout.log_prob(hidden, changed(target, 0, 99))
    with pytest.raises(ValueError, match=r"hidden\[2\]: found NaN"):
        readout.best(changed(hidden, (2, 0), np.nan), 3)
    grad.flags.writeable = False
    with pytest.raises(ValueError, match="grad: found a read-only array"):
        readout.step(grad, hidden, target)


def test_large_finite_numbers_are_not_refused():
    readout = MAKE["full"](rate=0.0)
    grad, hidden, target = batch()
    hidden[0] = 1e30  # squares overflow
    assert readout.step(grad, hidden, target) == pytest.approx(np.log(CLASSES), abs=1e-5)


def test_a_loss_that_is_not_finite_names_its_row():
    readout = MAKE["full"]()
    readout.weights[:] = np.nan
    with pytest.raises(FloatingPointError, match=r"loss\[0\]: found nan"):
        train(readout, 1)


BAD_CONSTRUCTION = [
    (lambda: FullReadout(1, 4), "classes: found 1, at least 2 needed"),
    (lambda: FullReadout([], 4), "classes: found 0, at least 2 needed|counts: found"),
    (lambda: FullReadout([1, -2], 4), r"counts\[1\]: found -2"),
    (lambda: FullReadout([[1, 2]], 4), r"counts: found int64 \(1, 2\)"),
    (lambda: TreeReadout(3, 4), "counts: found only the number of classes"),
    (lambda: TreeReadout([1, 2], 4, tree="oak"), "tree: found 'oak', expected one of huffman, balanced"),
    (lambda: TreeReadout([1, 2], 4, mode="fast"), "mode: found 'fast', expected one of deterministic, batch"),
    (lambda: TreeReadout([1, 2], 4, mode=Batched(0)), "together: found 0, expected a whole number of at least 1"),
    (lambda: SampledReadout(3, 4, loss="hinge"), "loss: found 'hinge', expected one of softmax, logistic"),
    (lambda: SampledReadout(3, 4, loss=SampledSoftmax(draws="unigram")), "draws: unigram needs class counts"),
    (lambda: loss_named("gbce", "unigram"), "draws: found 'unigram', expected 'uniform'"),
    (lambda: SampledReadout(3, 4, loss=GBCE(calibration=1.5)), "calibration: found 1.5, expected a number from 0 to 1"),
    (lambda: NeighbourReadout(TreeReadout([1, 2], 4)), "readout: found TreeReadout, expected a FullReadout or a"),
]


@pytest.mark.parametrize("make_bad, message", BAD_CONSTRUCTION)
def test_bad_construction(make_bad, message):
    with pytest.raises(ValueError, match=message):
        make_bad()
