"""NextItem as an estimator of scikit-learn."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import UndefinedMetricWarning

from hybrid import ratings
from hybrid.sklearn import NextItem, next_item

SMALL = {"width": 8, "hidden": 16, "readout_width": 8, "epochs": 1, "random_state": 0}


def walks(users=300, items=20, length=8, seed=0):
    """Everybody walks around a circle of items: the next one is known."""
    starts = np.random.default_rng(seed).integers(0, items, users)
    return [[f"item {(start + step) % items:02}" for step in range(length)] for start in starts]


@pytest.fixture(scope="module")
def learned():
    return NextItem(epochs=20, random_state=0).fit(walks())


def test_it_learns_what_comes_next(learned):
    assert learned.losses_[-1] < 0.5 * learned.losses_[0]
    model = NextItem("sampled", epochs=20, batch=64, random_state=0).fit(walks())
    assert model.predict([["item 03", "item 04", "item 05"], ["item 18", "item 19"]]).tolist() == ["item 06", "item 00"]


def test_recommendations_leave_out_what_was_had_and_fall(learned):
    items, log_probs = learned.recommend([["item 01", "item 02"], ["nobody knows it"], []], k=19)
    assert items.shape == log_probs.shape == (3, 19)
    assert not {"item 01", "item 02"} & set(items[0]) and set(items[1]) <= set(learned.items_)
    assert items[0][-1] is None and np.isneginf(log_probs[0][-1])  # 18 are left
    numbers, _ = NextItem(epochs=1, random_state=0).fit([[5, 7, 9], [7, 9, 5]]).recommend([[5, 7]], k=3)
    assert numbers.tolist() == [[9, -1, -1]]
    assert (np.diff(log_probs[1]) <= 0).all()
    with_all, _ = learned.recommend([["item 01", "item 02"]], k=20, exclude_seen=False)
    assert set(with_all[0]) == set(learned.items_)


def test_score_is_recall_of_the_next_item(learned):
    X = walks(seed=1)
    first, last = [walk[:-1] for walk in X], [walk[-1] for walk in X]
    ids = learned.recommend(first)[0]
    assert learned.score(first, last) == np.mean([item in row for item, row in zip(last, ids, strict=True)]) > 0.9
    assert learned.score(X) == learned.score(first, last)
    assert learned.score(first, ["unknown"] * len(first)) == 0
    with pytest.warns(UndefinedMetricWarning, match="no history has a next item that is new"):
        assert np.isnan(learned.score([["item 01", "item 01"]]))
    with pytest.raises(ValueError, match=r"y: found \(1,\), expected \(300,\)"):
        learned.score(first, ["item 01"])


def test_a_matrix_has_sets_of_items():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 400)  # everybody takes items of one half
    dense = (rng.random((400, 12)) < 0.7) & (np.arange(12) // 6 == group[:, None])
    X = sparse.csr_array(dense, dtype=np.int64)
    model = NextItem(epochs=30, random_state=0).fit(X)
    assert model.n_features_in_ == 12
    new = dense[:50].sum(axis=1) < 6  # some have all of their half
    for given in (X[:50], dense[:50]):
        ids, _ = model.recommend(given, 2)
        assert (ids[new, 0] // 6 == group[:50][new]).mean() > 0.9
    assert not dense[np.arange(50), model.predict(X[:50])].any()
    assert 0 < model.score(X) <= 1


def test_who_had_nothing_has_nothing_held_out():
    items = np.array([4, 5, 6], np.int32)
    seen = ratings.Histories(items, np.array([0, 0, 2, 2, 3]), list("uvwx"), list("abcdefg"))
    for drawn in (False, True):
        rest, target = next_item._held_out(seen, drawn=drawn)
        assert target[[0, 2, 3]].tolist() == [next_item.NONE, next_item.NONE, 6] and target[1] in (4, 5)
        assert rest.at.tolist() == [0, 0, 1, 1, 1] and rest.item.tolist() == [9 - target[1]]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("abc", "X: found str, expected users x items, a list"),
        (["abc", "def"], r"X\[0\]: found 'abc', expected"),
        ([[1.5, 2.5]], "X: found items of float64"),
        ([["a"], ["b"]], "none of 2 users has 2 items"),
    ],
)
def test_what_is_no_history_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        NextItem(**SMALL).fit(X)


def test_targets_of_histories_count_by_their_weights():
    user, item = np.repeat(np.arange(40), 2), np.tile(["a", "b", "a", "c"], 20)
    weight = np.where(item == "c", 0, 1)
    weighted = ratings.histories(ratings.from_columns(user, item, weight=weight))
    model = NextItem("full", **SMALL | {"epochs": 30}).fit(weighted)
    assert model.items_.tolist() == ["a", "b", "c"]
    items, log_probs = model.recommend([["a"]], k=2)
    of = dict(zip(items[0], log_probs[0], strict=True))
    assert of["b"] > of["c"] + 0.5  # they are met equally often


# The forms of histories


def table(walks, columns):
    """Who took what and when, in an order of its own."""
    rows = [(user, int(item[-2:]), step) for user, walk in enumerate(walks) for step, item in enumerate(walk)]
    order = np.random.default_rng(0).permutation(len(rows))
    return {name: np.array([rows[row][place] for row in order]) for place, name in enumerate(columns)}


@pytest.mark.parametrize(
    "columns",
    [("customer", "article", "when"), ("user", "article", "when"), ("who", "item", "t"), ("user", "item", "time")],
)
def test_a_table_that_may_be_anything_is_refused(columns):
    pandas = pytest.importorskip("pandas")
    given = table(walks(60), columns)
    for X in (pandas.DataFrame(given), np.stack(list(given.values()), axis=1), np.full((4, 3), 7)):
        with pytest.raises(ValueError, match=r"not clearly users x items.*from_frame.*tolist.*csr_array"):
            NextItem(**SMALL).fit(X)
    pairs = pandas.DataFrame(np.eye(6, dtype=int) + np.eye(6, k=1, dtype=int), columns=list("abcdef"))
    assert NextItem(**SMALL).fit(pairs).items_.tolist() == list("abcdef")


def test_what_is_asked_has_the_form_of_what_was_learned():
    model = NextItem(**SMALL).fit([[1, 2, 3], [2, 3, 4]])
    for X, message in ((np.eye(4), "found a matrix"), ([["1", "2"]], "items: found <U1, expected int64")):
        with pytest.raises(ValueError, match=message):
            model.recommend(X, 1)
    names = np.array([["a", "b"], ["b", "c"]])
    assert model.fit(names).items_.tolist() == ["a", "b", "c"]
    assert model.fit(np.array([[1], [2, 3]], object)).items_.tolist() == [1, 2, 3]
    assert not hasattr(NextItem(**SMALL).fit(np.eye(3) + np.eye(3, k=1)).fit([[1, 2]]), "n_features_in_")


def test_a_matrix_without_its_zeros():
    matrix = sparse.csr_array(([1.0, 0.0, 2.0, 3.0], [4, 1, 0, 2], [0, 3, 3, 4]), (3, 5))
    found = next_item.of_matrix(matrix, np.arange(5))
    assert found.item.tolist() == [4, 0, 2] and found.at.tolist() == [0, 2, 2, 3]
    assert (found.item.dtype, found.at.dtype) == (np.int32, np.int64)


def test_lists_and_what_is_not_known():
    item, at = next_item.flat([["b", "x"], [], ("a",)])
    found = next_item.of_lists(item, at, np.array(["a", "b"]))
    assert found.item.tolist() == [1, 0] and found.at.tolist() == [0, 1, 1, 2]
    weight = np.array([0.5, 1, 2], np.float32)
    assert next_item.of_lists(item, at, np.array(["a", "b"]), weight).weight.tolist() == [0.5, 2]
    empty = next_item.of_lists(*next_item.flat([[], []]), np.array(["a", "b"]))
    assert empty.item.size == 0 and empty.at.tolist() == [0, 0, 0]
