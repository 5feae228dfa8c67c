"""Count tables against lists of Python; ALS against its own optimum; the problem that they contend at."""

import itertools
import types

import numpy as np
import pytest
from scipy import sparse

from bench import als, counted
from bench.problems import _items
from hybrid.feeds import ratings

LISTS = [[0, 1, 2, 1], [3, 2], [1], [2, 1, 0, 3, 1]]


@pytest.fixture
def histories():
    rows = [(user, item) for user, items in enumerate(LISTS) for item in items]
    made = ratings.histories(ratings.from_columns(*zip(*rows, strict=True)))
    return made, [made.items.index(str(item)) for item in range(4)]


def test_transitions_are_counted_by_distance_and_weighted(histories):
    made, place = histories
    counts = counted.Counts(distances=2, nearness=0.5, popularity=0.3, source=0.7)
    expected, came = np.zeros((4, 4)), np.array([2, 5, 3, 2])
    for items in LISTS:
        for first, second in itertools.combinations(range(len(items)), 2):
            if second - first <= 2:
                expected[items[first], items[second]] += 0.5 ** (second - first - 1)
    expected *= came[:, None] ** -0.7 * came**0.3
    table = counted.table(made, counts).toarray()
    np.testing.assert_allclose(table[np.ix_(place, place)], expected)
    scores = counted.scores(made, made, counts._replace(last=2, age=0.5))(np.array([3, 0]))
    want = [0.5 * expected[3] + expected[1], 0.5 * expected[2] + expected[1]]
    np.testing.assert_allclose(scores[:, place], want, atol=1e-4)
    assert len(np.unique(counted.scores(made, made)(np.array([1]))[0])) == 4  # no ties are left


def test_als_solves_the_least_squares_of_its_authors(histories):
    made, _ = histories
    setting = als.Setting(width=2, weight=3.0, ridge=0.5)
    other = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    had = sparse.csr_array(als._matrix(made))
    assert had.toarray().max() == 1
    rows = als.solved(had, other, setting).astype(float)
    miss = rows @ other.T - had.toarray()
    slope = (miss * (1 + 3.0 * had.toarray())) @ other + 0.5 * rows
    np.testing.assert_allclose(slope, 0, atol=1e-4)
    assert als.scores(made, made, setting)(np.arange(4)).shape == (4, 4)


def test_the_problem_lists_who_contends_and_the_table_wins_where_order_is_all(tmp_path):
    rows = [(u, (5 * u + t) % 12) for u in range(40) for t in range(8)]
    (tmp_path / "u.csv").write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in rows))
    given = types.SimpleNamespace(threads=1)
    made = _items.problem(given, "circles", tmp_path / "u.csv", None, (1,), ("bag", "sequence"))
    assert {"bag tree balanced", "sequence full", "count table", "ALS"} < set(made.contenders)
    found = made.contenders["count table searched"].train({}, 0, 1)
    assert found.valid() == found.test() == {"recall@10": 1.0, "ndcg@10": 1.0}
    assert found.examples == 40 * 6
