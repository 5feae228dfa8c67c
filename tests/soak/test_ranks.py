"""Ranks in one process tell each other what ranks of MPI do, by turns that a seed repeats, and say so where none goes on."""

import numpy as np
import pytest

from tests.soak import ranks

SIZE = 3


def told(group):
    most = np.array([group.rank, -group.rank])
    group.most(most)
    shared = np.full(2, group.rank)
    group.share(shared, 1)
    whole = np.zeros(6)
    whole[[0, 1, 3][group.rank] : [1, 3, 6][group.rank]] = group.rank
    group.join(whole, [1, 2, 3])
    come = {rank: np.zeros(2) for rank in group.others}
    group.exchange({to: np.full(2, 10.0 * group.rank + to) for to in group.others}, come).run()
    return (
        most.tolist(),
        shared.tolist(),
        whole.tolist(),
        {rank: one[0] for rank, one in come.items()},
        group.once(lambda: group.rank),
        group.greatest(group.rank, 5),
    )


def test_each_rank_is_told_what_the_others_say():
    for seed in range(5):
        for rank, found in enumerate(ranks.run(SIZE, str(seed), told)):
            come = {other: 10 * other + rank for other in range(SIZE) if other != rank}
            assert found == ([2, 0], [1, 1], [0, 1, 1, 2, 2, 2], come, 0, (2, 5))


def test_what_comes_is_poison_until_it_is_waited_for_and_what_goes_is_read_late():
    def work(group):
        came, goes = np.zeros(1), np.full(1, 1.0)
        exchange = group.exchange({1 - group.rank: goes}, {1 - group.rank: came})
        exchange.start()
        poison, goes[:] = np.isnan(came[0]), 2.0  # which MPI does not allow
        exchange.wait()
        return poison, came[0]

    assert ranks.run(2, "seed", work) == [(True, 2.0)] * 2


def test_an_error_of_together_is_everybodys_and_any_other_ends_all():
    def told_by_one(group):
        with pytest.raises(ValueError, match="of rank 1"), group.together():
            if group.rank == 1:
                raise ValueError("of rank 1")

    ranks.run(SIZE, "seed", told_by_one)
    with pytest.raises(TypeError, match="of rank 2"):
        ranks.run(SIZE, "seed", lambda group: _fail() if group.rank == 2 else group.barrier())


def _fail():
    raise TypeError("of rank 2")


def test_ranks_that_wait_for_what_nobody_tells_are_named():
    with pytest.raises(RuntimeError, match=r"ranks \[1, 2\]: all wait"):
        ranks.run(SIZE, "seed", lambda group: group.rank and group.barrier())
