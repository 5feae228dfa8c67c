"""Baselines of next items, beside sums by hand and another solver."""

import numpy as np
import pytest

from hybrid import baselines
from hybrid.feeds import ratings, splits
from hybrid.feeds.histories import Histories

ITEMS = [[0, 1, 2, 3], [1, 2, 0], [2, 2, 1, 3, 0], [3], [1, 0]]


def _histories(lists):
    at = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
    item = np.concatenate(lists).astype(np.int32)
    return Histories(item, at, [str(user) for user in range(len(lists))], [str(item) for item in range(4)])


@pytest.fixture
def parts(tmp_path):
    """80 users who each walk through 30 items in a circle."""
    rows = [(user, (7 * user + step) % 30, step) for user in range(80) for step in range(9)]
    (tmp_path / "u.data").write_text("".join(f"{user}\t{item}\t4\t{time}\n" for user, item, time in rows))
    return splits.split(ratings.histories(ratings.load(tmp_path / "u.data")))


@pytest.mark.parametrize("settings", [baselines.Table(), baselines.Table(0.2, 1.0, 0.0, 1.0, 0.6)])
def test_a_count_table_is_a_sum_over_pairs(settings):
    train, seen = _histories(ITEMS), _histories([[3, 1], [0, 2, 1]])
    counts = np.bincount(np.concatenate(ITEMS), minlength=4)
    expected = np.zeros((2, 4))
    for user, had in enumerate(([3, 1], [0, 2, 1])):
        for age, item in enumerate(reversed(had)):
            for one in ITEMS:
                for a in range(len(one)):
                    for b in range(a + 1, len(one)):
                        worth = settings.nearness ** (b - a - 1) * settings.decay**age / counts[item] ** settings.rows
                        if one[a] == item:
                            expected[user, one[b]] += worth / counts[one[b]] ** settings.columns
                        if one[b] == item:
                            expected[user, one[a]] += settings.reversed * worth / counts[one[a]] ** settings.columns
    made = baselines.counted(train, settings)
    np.testing.assert_allclose(made.scores(seen)(np.array([1, 0])), expected[[1, 0]], rtol=1e-6, atol=1e-8)
    logits = np.random.default_rng(0).normal(size=(2, 4))
    mixed = made._replace(share=0.25).mixed(lambda users: logits[users], seen)(np.array([0, 1]))
    p, c = np.exp(logits) / np.exp(logits).sum(1, keepdims=True), expected / expected.sum(1, keepdims=True)
    np.testing.assert_allclose(np.exp(mixed), 0.75 * p + 0.25 * c, rtol=1e-5, atol=1e-7)


def test_equal_counts_are_ranked_by_popularity():
    """Equal scores would be ranked as if each target came first."""
    train = _histories([[0, 1], [0, 2], [0, 3], [2], [2], [3]])
    found = baselines.counted(train, baselines.Table(rows=0, columns=0)).scores(_histories([[0]]))(np.array([0]))[0]
    assert np.argsort(-found)[:3].tolist() == [2, 3, 1] and found[2] - found[1] < 1e-8


def test_ease_is_a_ridge_regression_of_each_item_on_the_others():
    train = _histories(ITEMS)
    x = np.zeros((5, 4))
    for user, had in enumerate(ITEMS):
        x[user, had] = 1
    weights = np.zeros((4, 4))
    for item in range(4):
        others = [other for other in range(4) if other != item]
        a = x[:, others]
        weights[others, item] = np.linalg.solve(a.T @ a + 3.0 * np.eye(3), a.T @ x[:, item])
    np.testing.assert_allclose(baselines.ease(train, train, 3.0)(np.arange(5)), x @ weights, atol=1e-12)


def test_what_is_tuned_knows_the_circle_and_popularity_does_not(parts):
    found = {}
    for name in baselines.names(parts.train):
        table = np.array(baselines.tuned(name, parts)(parts.seen)(parts.test.user), float)
        for row, user in enumerate(parts.test.user):
            table[row, parts.seen.item[parts.seen.at[user] : parts.seen.at[user + 1]]] = -np.inf
        found[name] = (table.argmax(axis=1) == parts.test.item).mean()
    assert found["counts"] == 1.0 and found["popularity"] < 0.5 and 0 < found["EASE"]


def test_settings_are_those_that_validate_best_and_never_see_the_test(parts, monkeypatch):
    judged = []
    monkeypatch.setattr(
        baselines, "ease", lambda train, seen, penalty: judged.append((seen, penalty)) or _planted(parts, penalty)
    )
    made = baselines.tuned("EASE", parts)
    assert [penalty for _, penalty in judged] == list(baselines.PENALTIES)
    assert all(seen is parts.train for seen, _ in judged)
    judged.clear()
    made(parts.seen)
    assert judged == [(parts.seen, 300.0)]


def _planted(parts, penalty):
    """Scores that put every user's validation item first where the penalty is 300, and last otherwise."""
    item = dict(zip(parts.valid.user.tolist(), parts.valid.item.tolist(), strict=True))
    right, items = 1.0 if penalty == 300.0 else -1.0, np.arange(len(parts.train.items))
    return lambda users: np.array([right * (items == item[user]) for user in users.tolist()])


def test_what_is_too_large_is_left_out(parts, monkeypatch):
    assert baselines.names(parts.train) == ["popularity", "counts", "EASE"]
    monkeypatch.setattr(baselines, "MOST", 29)
    monkeypatch.setattr(baselines, "COUNTED", 100)
    assert baselines.names(parts.train) == ["popularity"]


def test_the_share_is_the_one_that_validates_best(parts):
    made = baselines.counts(parts)
    poor = lambda seen: lambda users: np.tile(-np.arange(30.0), (len(users), 1))  # noqa: E731  # of what nobody takes next
    assert baselines.shared(made, poor, parts).share > 0
    perfect, poor_counts = _planted(parts, 300.0), made._replace(table=made.table[::-1])
    assert baselines.shared(poor_counts, lambda seen: lambda users: 50 * perfect(users), parts).share == 0


def test_counts_that_were_saved_score_alike_and_others_are_refused(parts, tmp_path):
    made, file = baselines.counts(parts)._replace(share=0.4), tmp_path / "counts.npz"
    made.save(file)
    again = baselines.Counts.load(file, 30)
    assert (again.share, again.decay) == (0.4, made.decay)
    users = parts.test.user
    assert again.scores(parts.seen)(users).tobytes() == made.scores(parts.seen)(users).tobytes()
    with pytest.raises(ValueError, match="expected a table of counts of 29 items"):
        baselines.Counts.load(file, 29)
    for name, value in (("share", 1.5), ("ties", np.zeros(30)), ("indices", np.full(made.table.nnz, 30))):
        with np.load(file) as arrays:
            np.savez(tmp_path / "bad.npz", **dict(arrays) | {name: np.array(value)})
        with pytest.raises(ValueError, match=r"bad\.npz: .*expected a table of counts of 30 items"):
            baselines.Counts.load(tmp_path / "bad.npz", 30)
