"""Units that ranks share: who has which, and the numbers of one process, bit for bit; see tests/support/rank_pvm.py."""

import numpy as np
import pytest

from hybrid.mpi.pvm import divide
from hybrid.pvm import presets
from hybrid.pvm.config import Config
from hybrid.pvm.layout import tape_layout, weights_at
from hybrid.pvm.model import PVM
from hybrid.pvm.wiring import Unit, custom, wire
from tests.support.rank_pvm import CASES, made
from tests.support.ranks import succeed
from tests.support.small_pvm import Scene, bytes_of, walk

# A row of four units, of 26, 26, 26 and 17 parameters, and one of 62 above the first two
ROW = custom(
    (1, 4, 1),
    [Unit(0, 3, (0, x, 1, 1), context=context) for x, context in enumerate([(1,), (3,), (3,), ()])]
    + [Unit(1, 2, signal=(0, 1))],
)
ROW_CONFIG = Config(grids=((1, 4), (1, 1)), hidden=(3, 2), readout=None)


@pytest.mark.parametrize("ranks", [1, 3, 16])
def test_each_unit_has_one_rank_and_ranks_have_equal_costs(ranks):
    config = presets.load("small")[0]
    wiring = wire(config)
    layout = tape_layout(wiring, config)
    cost, found = np.diff(weights_at(layout)), divide(wiring, layout, ranks)
    assert sorted(np.concatenate(found.units)) == list(range(len(wiring.hidden)))
    costs = np.array([cost[units].sum() for units in found.units])
    assert abs(costs - cost.sum() / ranks).max() <= cost.max() * (1 + np.log2(ranks)) / 2
    assert len(found.edge) == ranks and (ranks > 1 or (found.edge == [0] and not found.reads))


def test_by_hand():
    layout = tape_layout(ROW, ROW_CONFIG)
    assert np.diff(weights_at(layout)).tolist() == [26, 26, 26, 17, 62]
    # the unit above is over the middle of the frame; unit 3, which unit 1 reads, comes first
    found = divide(ROW, layout, 2)
    assert [units.tolist() for units in found.units] == [[0, 1], [3, 2, 4]] and found.edge == [2, 1]
    assert {pair: ids.tolist() for pair, ids in found.reads.items()} == {(0, 1): [3], (1, 0): [0, 1]}


def test_any_number_of_ranks_up_to_that_of_the_units():
    layout = tape_layout(ROW, ROW_CONFIG)
    assert sorted(len(units) for units in divide(ROW, layout, 5).units) == [1] * 5
    with pytest.raises(ValueError, match="ranks: found 6 for a model of 5 units, expected at most 5; start fewer"):
        divide(ROW, layout, 6)


MODULE = "tests.support.rank_pvm"


@pytest.mark.parametrize("ranks", [2, 4])
def test_results_and_checkpoints_are_those_of_one_process(tmp_path, ranks):
    succeed(MODULE, "equal", tmp_path, "cpu", *CASES, ranks=ranks)


def test_divergence_is_the_same_on_all_ranks(tmp_path):
    succeed(MODULE, "diverges", tmp_path, "cpu", ranks=2)


def test_a_checkpoint_goes_on_on_other_numbers_of_ranks(tmp_path):
    case = "readouts"
    alone = made(case, "cpu", None)
    for ranks, until in ((4, 5), (1, 7), (3, 12)):
        succeed("tests.support.rank_pvm", "goes_on", tmp_path / "saved", "cpu", case, until, ranks=ranks)
        walk(alone, Scene(until, alone.streams))
        assert bytes_of(PVM.load(tmp_path / "saved")[0]) == bytes_of(alone)


def test_a_full_disk_is_told_to_all_ranks_and_nothing_is_lost(tmp_path):
    succeed("tests.support.rank_pvm", "full", tmp_path, "cpu", ranks=2)
