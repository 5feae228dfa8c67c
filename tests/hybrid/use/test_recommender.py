"""Recommending: against scores of all items sorted by NumPy. (hybrid/use/vectors.py too)"""

import numpy as np
import pytest

from hybrid import MLP, Embedding, Engine, FullReadout, HistoryFeed, Recommender, TreeReadout, ratings
from hybrid.use import recommender as module

USERS, ITEMS, LENGTH = 40, 15, 4


@pytest.fixture(scope="module")
def histories():
    """Of uneven length; the last user had all items, items repeat."""
    rng = np.random.default_rng(0)
    user = np.concatenate([np.repeat(np.arange(USERS), rng.integers(1, 9, USERS)), np.full(ITEMS, USERS)])
    item = np.concatenate([rng.integers(0, ITEMS, len(user) - ITEMS), np.arange(ITEMS)])
    named = ratings.from_columns([f"user {u}" for u in user], [f"item {i}" for i in item])
    return ratings.histories(named)


def trained(histories, readout):
    feed = HistoryFeed(histories, length=LENGTH, batch=32, epochs=3)
    made = {"tree": TreeReadout, "full": FullReadout}[readout](feed.counts, 6)
    engine = Engine(Embedding(feed.rows, 5, spread=0.5, bags="mean"), MLP([5, 8, 6]), made, device="cpu", threads=2)
    for _ in engine.run(feed):
        pass
    return engine


@pytest.fixture(scope="module", params=["tree", "full"])
def model(request, histories):
    return Recommender(trained(histories, request.param), histories, length=LENGTH)


def expected(model, had, k, exclude):
    """Ids and scores of the best, by sorting all scores."""
    scores = model.engine.scores(had[-LENGTH:], [0, len(had[-LENGTH:])])[0].astype(np.float64)
    if exclude:
        scores[had] = -np.inf
    order = np.argsort(-scores, kind="stable")[:k]
    return [(int(id), float(scores[id])) for id in order if scores[id] > -np.inf]


@pytest.mark.parametrize("exclude", [True, False])
def test_all_users_get_their_best_items_part_by_part(model, histories, exclude, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 7)
    found = model.recommend(k=6, exclude_seen=exclude)
    assert found.asked == histories.users and found.ids.shape == (USERS + 1, 6)
    for user, pairs in enumerate(found.pairs):
        had = histories.item[histories.at[user] : histories.at[user + 1]]
        best = expected(model, had, 6, exclude)
        assert [name for name, _ in pairs] == [histories.items[id] for id, _ in best]
        np.testing.assert_allclose([score for _, score in pairs], [score for _, score in best], atol=1e-5)
    assert len(found.names[-1]) == (0 if exclude else 6)  # the last user had everything


@pytest.mark.parametrize("exclude", [True, False])
def test_items_that_are_allowed_and_forbidden(model, histories, exclude, monkeypatch):
    monkeypatch.setattr(module, "NUMBERS", 30)  # few users at a time
    some, without = [f"item {id}" for id in (1, 3, 5, 7, 8, 9)], ["item 5", "item 0"]
    found = model.recommend(k=4, exclude_seen=exclude, allowed=some, forbidden=without)
    others = [name for name in some if name != "item 5"]
    assert found.names == model.recommend(k=4, exclude_seen=exclude, allowed=others).names
    for user, names in enumerate(found.names):
        had = histories.item[histories.at[user] : histories.at[user + 1]]
        best = [histories.items[id] for id, _ in expected(model, had, ITEMS, exclude)]
        assert names == [name for name in best if name in some and name not in without][:4]
    new = model.recommend_to([["item 2"]], 2, exclude_seen=exclude, allowed=["item 2", "item 4"])
    assert set(new.names[0]) == ({"item 4"} if exclude else {"item 2", "item 4"})
    for only, message in (({"allowed": ["item x"]}, "item 'item x': not known"), ({"allowed": []}, "expected some to")):
        with pytest.raises(ValueError, match=message):
            model.recommend(k=2, **only)


def test_some_users_and_new_ones(model, histories):
    some = model.recommend(["user 3", "user 0", "user 3"], 4)
    assert some.asked == ["user 3", "user 0", "user 3"] and some.names[0] == some.names[2]
    assert model.recommend("user 3", 4).names == some.names[:1]
    had = histories.item[histories.at[3] : histories.at[4]]
    new = model.recommend_to([[histories.items[id] for id in had]], 4)
    assert new.asked == ["1"] and new.names == model.recommend(histories.users[3], 4).names
    assert model.recommend([], 4).ids.shape == (0, 4) and model.recommend_to([], 4).names == []


def test_other_ratings_are_remembered(histories):
    model = Recommender(trained(histories, "tree"), items=histories.items, length=LENGTH)
    assert model.users == [] and model.recommend(k=3).names == []
    assert Recommender(model.engine, histories, length=1).length == 1
    left_out = model.remember(ratings.from_columns(["new", "new", "old"], ["item 2", "unheard of", "item 5"]))
    assert left_out == 1 and model.users == ["new", "old"]
    assert model.recommend("new", 3).names == model.recommend_to([["item 2"]], 3).names
    weighted = ratings.from_columns(["other"] * 3, ["item 1", "unheard of", "item 2"], [3, 2, 1], weight=[1, 2, 3])
    model.remember(weighted)
    assert model.recommend("other", 3).names == model.recommend_to([["item 2", "item 1"]], 3).names
    model.remember(ratings.from_columns(["other", "other"], ["item 1", "item 2"]))
    assert model.recommend(k=2).asked == ["other"]
    with pytest.raises(ValueError, match="user 'new': not known"):
        model.recommend("new")


def test_similar_items_have_near_rows(model, histories):
    found = model.similar(["item 1", "item 2"], 3)
    table = model.engine.embedding.table
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    for name, names in zip(found.asked, found.names, strict=True):
        id = histories.items.index(name)
        order = np.argsort(-(unit @ unit[id]))
        assert names == [histories.items[other] for other in order if other != id][:3]
    assert model.vectors["item 1"].shape == (5,)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.recommend("user 99"), "user 'user 99': not known; did you mean"),
        (lambda m: m.recommend(k=16), "k: found 16, expected a whole number from 1 to 15"),
        (lambda m: m.recommend_to([["item 1"], ["pear"]]), "item 'pear': not known"),
        (lambda m: m.recommend_to([["item 1"], []]), r"histories\[1\]: found no item"),
        (lambda m: m.remember(ratings.from_columns(["a", "a"], ["b", "c"])), "found no item that the model knows"),
        (lambda m: Recommender(m.engine, items=["a"]), "items: found 1 names, expected 15"),
        (lambda m: Recommender(m.engine, m.histories, length=0), "length: found 0"),
    ],
)
def test_what_is_refused(model, ask, message):
    with pytest.raises((ValueError, IndexError), match=message):
        ask(model)
