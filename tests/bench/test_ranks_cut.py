"""What ranks tell each other, counted by hand on a row of units, and held against the graph of a model."""

import pytest

from bench.ranks_cut import NUMBER, Graph, cut, graph
from hybrid.pvm import presets
from hybrid.pvm.config import Config
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.rules import wire
from hybrid.pvm.sizes import parameters
from hybrid.pvm.wiring import Unit, custom

# A row of four units of one pixel: each publishes 3 numbers, the second reads the third and the fourth the first
READS = [(), (2,), (), (0,)]
WIRING = custom((1, 4, 1), [Unit(0, 3, (0, x, 1, 1), context=context) for x, context in enumerate(READS)])
ROW = Graph(WIRING, tape_layout(WIRING, Config(grids=((1, 4),), hidden=(3,), readout=None)))


def test_halves_tell_each_other_what_is_read_across():
    """17 weights of a unit that reads none: 3 x (2 + 1) and 2 x (3 + 1); 9 more of one that reads 3 numbers."""
    assert ROW.weights.tolist() == [17, 26, 17, 26]
    found = cut(ROW, 2)
    assert found.shared.tolist() == [17, 17] and found.interior.tolist() == [26, 26]
    assert found.sends == [{1: NUMBER * 3}, {0: NUMBER * 3}] and found.errors == NUMBER * 4


def test_one_rank_tells_nothing():
    found = cut(ROW, 1)
    assert (found.shared.tolist(), found.interior.tolist(), found.sends) == ([0], [86], [{}])


@pytest.mark.parametrize("ranks", [2, 3, 64])
def test_a_model_on_ranks_has_all_its_weights_once(ranks):
    config = presets.load("small")[0]
    found, parts = graph(config), cut(graph(config), ranks)
    assert found.weights.sum() == parameters(config, wire(config))[0]
    assert (parts.shared + parts.interior).sum() == found.weights.sum() and len(parts.sends) == ranks
    assert all(rank not in sends and min(sends.values(), default=1) > 0 for rank, sends in enumerate(parts.sends))


def test_there_are_no_more_ranks_than_units():
    with pytest.raises(ValueError, match="ranks: found 5 for a model of 4 units"):
        cut(ROW, 5)
