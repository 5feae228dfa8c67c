"""Which rank has which units: all of them once, of equal cost, near each other."""

import numpy as np
import pytest

from hybrid.mpi.pvm import CUTS, divide
from hybrid.pvm import presets
from hybrid.pvm.config import Config
from hybrid.pvm.layout import tape_layout, weights_at
from hybrid.pvm.rules import wire
from hybrid.pvm.wiring import Unit, custom

# A row of four units, of 26, 26, 26 and 17 parameters, and one of 62 above the first two
ROW = custom(
    (1, 4, 1),
    [Unit(0, 3, (0, x, 1, 1), context=context) for x, context in enumerate([(1,), (3,), (3,), ()])]
    + [Unit(1, 2, signal=(0, 1))],
)
ROW_CONFIG = Config(grids=((1, 4), (1, 1)), hidden=(3, 2), readout=None)


def shared(ranks, cut="blocks", config=None):
    config = config or presets.load("small")[0]
    wiring = wire(config)
    layout = tape_layout(wiring, config)
    return wiring, np.diff(weights_at(layout)), divide(wiring, layout, ranks, cut)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("ranks", [1, 3, 16])
def test_each_unit_has_one_rank_and_ranks_have_equal_costs(ranks, cut):
    wiring, cost, found = shared(ranks, cut)
    assert sorted(np.concatenate(found.units)) == list(range(len(wiring.hidden)))
    costs = np.array([cost[units].sum() for units in found.units])
    assert abs(costs - cost.sum() / ranks).max() <= cost.max() * (1 + np.log2(ranks)) / 2
    assert len(found.edge) == ranks and (ranks > 1 or (found.edge == [0] and not found.reads))


def as_lists(found):
    return (
        [units.tolist() for units in found.units],
        found.edge,
        {pair: ids.tolist() for pair, ids in found.reads.items()},
    )


def test_by_hand():
    layout = tape_layout(ROW, ROW_CONFIG)
    assert np.diff(weights_at(layout)).tolist() == [26, 26, 26, 17, 62]
    assert as_lists(divide(ROW, layout, 2, "cost")) == ([[0, 1, 2], [3, 4]], [2, 1], {(0, 1): [3], (1, 0): [0, 1]})
    # the unit above is over the middle of the frame; unit 3, which unit 1 reads, comes first
    assert as_lists(divide(ROW, layout, 2, "blocks")) == ([[0, 1], [3, 2, 4]], [2, 1], {(0, 1): [3], (1, 0): [0, 1]})


def test_any_number_of_ranks_up_to_that_of_the_units():
    layout = tape_layout(ROW, ROW_CONFIG)
    for cut in CUTS:
        assert sorted(len(units) for units in divide(ROW, layout, 5, cut).units) == [1] * 5
    with pytest.raises(ValueError, match="ranks: found 6 for a model of 5 units, expected at most 5; start fewer"):
        divide(ROW, layout, 6, "cost")
    with pytest.raises(ValueError, match="cut: found 'rows', expected one of blocks, cost"):
        divide(ROW, layout, 2, "rows")
