"""Messages are timed by those who send them, and clocks that are apart are found to be."""

import pytest

from hybrid.mpi.pingpong import Messages
from tests.support.ranks import ended, started


def test_ranks_time_their_messages():
    assert ended(started(ranks=2, module="tests.support.rank_pingpong")) == (0, "right\n", "")


def test_one_rank_sends_nothing():
    with pytest.raises(ValueError, match="found one rank, expected two at least; start them by hybrid launch"):
        Messages()
