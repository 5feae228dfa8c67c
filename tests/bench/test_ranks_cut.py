"""What ranks tell each other, counted by hand on a row of units, and held against the graph of a model."""

import numpy as np
import pytest

from bench.ranks_cut import NUMBER, Graph, bands, cut, graph
from hybrid.pvm import presets
from hybrid.pvm.config import Config
from hybrid.pvm.rules import wire
from hybrid.pvm.sizes import parameters

ROW = Graph(  # four units below each other, each reads its neighbours; the last one reads the first, too
    weights=np.array([4, 4, 4, 4]),
    reader=np.array([0, 1, 1, 2, 2, 3, 3]),
    source=np.array([1, 0, 2, 1, 3, 2, 0]),
    hidden=np.array([1, 2, 3, 4]),
    place=np.array([[0.1, 0.5], [0.3, 0.5], [0.6, 0.5], [0.9, 0.5]]),
    frame=10,
)


def test_halves_tell_each_other_what_is_read_across():
    """Unit 1 reads 2 and 2 reads 1; unit 3 reads 0."""
    found = cut(ROW, bands(ROW, 2), 2)
    assert found.shared.tolist() == [8, 4] and found.interior.tolist() == [0, 4]
    assert found.sends == [{1: NUMBER * (1 + 2)}, {0: NUMBER * 3}]


def test_one_rank_tells_nothing():
    found = cut(ROW, bands(ROW, 1), 1)
    assert (found.shared.tolist(), found.interior.tolist(), found.sends) == ([0], [16], [{}])


def test_what_several_units_of_a_rank_read_is_sent_once():
    found = cut(ROW, np.array([0, 1, 1, 1]), 2)  # units 1 and 3 read unit 0
    assert found.sends == [{1: NUMBER * 1}, {0: NUMBER * 2}]


def test_bands_go_by_rows_and_cost():
    heavy = ROW._replace(weights=np.array([12, 1, 1, 2]))
    assert bands(heavy, 2).tolist() == [0, 1, 1, 1]
    assert bands(ROW._replace(place=ROW.place[::-1]), 2).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("ranks", [2, 3, 8, 300])
def test_a_model_on_ranks_has_all_its_weights_once(ranks):
    config = presets.load("small")[0]
    found = graph(config)
    assert found.weights.sum() == parameters(config, wire(config))[0] and found.frame == 60 * 60 * 3
    parts = cut(found, bands(found, ranks), ranks)
    assert parts.weights.sum() == found.weights.sum() and len(parts.sends) == ranks
    assert all(rank not in sends and min(sends.values(), default=1) > 0 for rank, sends in enumerate(parts.sends))


def test_what_is_told_is_what_readers_lack():
    """By sets, unit by unit, of the model with neighbours, feedback and a top that all read."""
    config = presets.load("small")[0]
    wiring, found = wire(config), graph(config)
    owner = bands(found, 4)
    lacks = {(u, s) for u in range(len(owner)) for s in (*wiring.signal[u], *wiring.context[u]) if owner[u] != owner[s]}
    told = {(owner[s], owner[u], s) for u, s in lacks}
    sends = cut(found, owner, 4).sends
    for one in range(4):
        for other in range(4):
            expected = NUMBER * sum(int(wiring.hidden[s]) for a, b, s in told if (a, b) == (one, other))
            assert sends[one].get(other, 0) == expected


def test_other_units_are_refused():
    with pytest.raises(ValueError, match="found 'complex' units, expected simple ones"):
        graph(Config(unit="complex"))
