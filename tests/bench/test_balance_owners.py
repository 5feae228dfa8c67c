"""How evenly owners share the rows of a step: visits dealt by hand, and what holds for any number of threads."""

import numpy as np
import pytest

from bench import balance, balance_owners
from cpu.logistic_rows import OWNERS


@pytest.mark.parametrize(("threads", "share"), [(1, 1.0), (2, (5 + 6) / 16), (4, (4 + 5) / 16), (64, (4 + 5) / 16)])
def test_owners_are_dealt_in_runs_and_batches_wait_for_the_last(threads, share):
    assert balance_owners.largest(np.array([[1, 4, 2, 1], [1, 1, 1, 5]]), threads) == share


def test_more_owners_are_never_less_even_and_nobody_has_less_than_the_mean():
    for one in balance_owners.steps(balance.THREADS):
        few, many = one[1::2], one[2::2]
        assert min(one[1:]) >= 1 / one.threads
        if one.threads <= OWNERS:
            assert few == many
        else:
            assert all(own < share for share, own in zip(few, many, strict=True))
            assert min(few) >= 1 / OWNERS
