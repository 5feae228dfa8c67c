"""What classifiers share: the engine that their parameters make."""

import numpy as np
import pytest
from scipy import sparse

from hybrid.sklearn import TreeClassifier

X, Y = np.random.default_rng(0).normal(size=(30, 5)), np.arange(30) % 3


def engine(X=X, **parameters):
    return TreeClassifier(epochs=1, random_state=0, **{"hidden_layers": ()} | parameters).fit(X, Y).engine_


def test_dense_numbers_go_straight_to_the_readout():
    made = engine()
    assert (made.trunk, made.embedding.dense, made.readout.width) == (None, 5, 5)


def test_sparse_numbers_have_rows_unless_they_are_to_stay_numbers():
    made = engine(sparse.csr_array(X), width=8)
    assert (made.embedding.rows, made.embedding.width, made.embedding.weighted, made.readout.width) == (5, 8, True, 8)
    assert engine(sparse.csr_array(X), width=None).embedding.dense == 5


def test_hidden_layers_are_a_trunk():
    made = engine(hidden_layers=(16, 4))
    assert (made.trunk.inputs, made.trunk.outputs, made.readout.width) == (5, 4, 4)
    with pytest.raises(ValueError, match="hidden_layers: found 0"):
        engine(hidden_layers=(0,))


def test_each_pass_has_an_order_of_its_own():
    """Three partial fits are not three times the same order; a fit begins anew."""
    model = TreeClassifier(random_state=0, batch=30)
    losses = [model.partial_fit(X, Y, classes=[0, 1, 2]).losses_[0] for _ in range(3)]
    assert len(set(losses)) == 3
    assert model.fit(X, Y).losses_ == model.fit(X, Y).losses_
