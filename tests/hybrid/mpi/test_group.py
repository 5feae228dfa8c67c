"""Arrays come to whom they are sent."""

from tests.support.ranks import ended, started


def test_arrays_come_to_all_ranks():
    assert ended(started("arrays", ranks=3, module="tests.support.rank_group")) == (0, "right\n", "")
