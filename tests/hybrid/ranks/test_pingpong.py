"""Messages are timed by those who send them, and clocks that are apart are found to be."""

import pytest

from hybrid.ranks.pingpong import Messages
from tests.support.ranks import ended, started


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_time_their_messages(ranks):
    assert ended(started(ranks=ranks, module="tests.support.rank_pingpong")) == (0, "right\n", "")


def test_one_rank_sends_nothing():
    with pytest.raises(ValueError, match="found one rank, expected two at least; start them by hybrid launch"):
        Messages()
