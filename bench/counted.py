"""Next items by counts alone: how often one item came soon after another, weighted by how soon; and what is alike by that."""

from typing import NamedTuple

import numpy as np

from hybrid.feeds.histories import lasts
from hybrid.feeds.interactions import Histories
from hybrid.judge import ranking

TIE = 1e-6  # of the largest score: what more popular items have more of, and by lot those that are as popular


class Counts(NamedTuple):
    """What a count table counts, and how.

    distances   item j is counted after item i where it is up to so many places behind it
    nearness    a place further away counts so much as the one before it
    popularity  columns are multiplied by how often their item came, raised to this
    source      and rows by how often theirs came, raised to minus this: an item that came often has many after it by chance
    last        so many last items of a history speak
    age         an item speaks so much as the one after it
    """

    distances: int = 10
    nearness: float = 0.8
    popularity: float = 0.3
    source: float = 0.0
    last: int = 30
    age: float = 0.8


def transitions(train: Histories, counts: Counts):
    """A scipy CSR array (V, V): how much item j is expected soon after item i."""
    from scipy import sparse

    size, user = len(train.items), np.repeat(np.arange(len(train.users)), np.diff(train.at))
    table = sparse.csr_array((size, size))
    for distance in range(1, min(counts.distances, len(user) - 1) + 1):
        same = user[distance:] == user[:-distance]
        pairs = train.item[:-distance][same], train.item[distance:][same]
        table += sparse.csr_array((np.full(same.sum(), counts.nearness ** (distance - 1)), pairs), (size, size))
    came = np.maximum(np.bincount(train.item, minlength=size), 1).astype(float)
    return sparse.diags_array(came**-counts.source) @ table @ sparse.diags_array(came**counts.popularity)


def scores(train: Histories, seen: Histories, counts: Counts = Counts()) -> ranking.Scores:  # noqa: B008  # immutable
    """Users -> a score for every item; what never came after anything of a user follows by popularity."""
    from scipy import sparse

    table, size = transitions(train, counts), len(train.items)
    came = np.bincount(train.item, minlength=size)
    order = (came + np.random.default_rng(0).random(size)) / (came.max() + 1)

    def score(users: np.ndarray) -> np.ndarray:
        ids, at = lasts(seen, users, counts.last)
        age = np.repeat(at[1:], np.diff(at)) - 1 - np.arange(len(ids))
        found = (sparse.csr_array((counts.age**age, ids, at), (len(users), size)) @ table).toarray()
        return found + TIE * max(found.max(initial=0), 1) * order

    return score


def vectors(train: Histories, width: int = 64, seed: int = 0) -> np.ndarray:
    """(V, width) float32: items are alike that the same items come after; singular vectors of the logarithm of the table."""
    from scipy.sparse import linalg

    table = transitions(train, Counts(popularity=0.0))
    table = (table + table.T).tocsr()
    table.data = np.log1p(table.data)
    start = np.random.default_rng(seed).normal(size=len(train.items))
    left, values, _ = linalg.svds(table, min(width, min(table.shape) - 1), v0=start)
    return (left * np.sqrt(values)).astype(np.float32)
