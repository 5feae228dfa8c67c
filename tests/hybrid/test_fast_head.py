import numpy as np
import pytest
from scipy import sparse

from hybrid import FastHead
from tests.support.neighbours import clustered, nearest

WEIGHTS, HIDDEN = clustered(3000, 24), clustered(80, 24, seed=1)
BIAS = np.random.default_rng(2).normal(size=3000).astype(np.float32)
WITH_BIAS = np.column_stack([WEIGHTS, BIAS]), np.column_stack([HIDDEN, np.ones(80, np.float32)])


def test_the_likeliest_of_given_weights_are_exact():
    head = FastHead(WEIGHTS, BIAS, k=7, hidden=HIDDEN)
    assert head.worth.recall == head.worth.agreement == 1 and 0 < head.worth.read <= 1
    ids, logits = head.best(HIDDEN)
    truth, right = nearest(*WITH_BIAS, 7, "dot")
    np.testing.assert_array_equal(ids, truth)
    np.testing.assert_allclose(logits, right, rtol=1e-5)
    np.testing.assert_array_equal(head.best(HIDDEN.astype(np.float64), 3)[0], truth[:, :3])
    left_out = sparse.csr_array((np.ones(80), (np.arange(80), truth[:, 0])), (80, 3000))
    np.testing.assert_array_equal(head.best(HIDDEN, 6, left_out)[0], truth[:, 1:])
    assert head.best(HIDDEN[:0])[0].shape == (0, 7)
    assert head.worth.line().startswith("recall@7 1.0000, agreement@1 1.0000, ")


def test_a_recall_is_reached_where_it_is_chosen_and_measured_elsewhere():
    exact = FastHead(WEIGHTS)
    head = FastHead(WEIGHTS, recall=0.9, hidden=HIDDEN)
    assert 0 < head.share < 1 and exact.weights is WEIGHTS
    truth = nearest(WEIGHTS, HIDDEN, 10, "dot")[0]
    found = np.array([np.isin(a, b).mean() for a, b in zip(truth, head.best(HIDDEN)[0], strict=True)])
    assert found[::2].mean() >= 0.9
    assert head.worth.recall == pytest.approx(found[1::2].mean())
    head.best(HIDDEN)
    exact.best(HIDDEN)
    assert head.read < exact.read and head.worth.agreement > 0.8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": WEIGHTS.astype(float)}, r"weights: found ndarray float64 \(3000, 24\), expected an array"),
        ({"weights": np.full((3, 2), np.inf, np.float32)}, r"weights\[0\]: found NaN or infinity"),
        ({"bias": BIAS[:5]}, r"bias: found \(5,\), expected \(3000,\)"),
        ({"bias": np.full(3000, np.nan)}, r"bias\[0\]: found NaN or infinity"),
        ({"recall": 0}, "recall: found 0, expected a share above 0"),
        ({"recall": 0.9}, "hidden: found none, expected at least two hidden vectors: a recall of 0.9"),
        ({"recall": 0.9, "hidden": HIDDEN[:1]}, "hidden: found 1, expected at least two"),
        ({"hidden": HIDDEN[:, :3]}, r"hidden: found \(80, 3\), expected \(any, 24\)"),
        ({"hidden": HIDDEN[:0]}, "hidden: found no row"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        FastHead(**{"weights": WEIGHTS} | arguments)
