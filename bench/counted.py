"""Next items by counts alone: how often one item came soon after another, weighted by how soon."""

from typing import NamedTuple

import numpy as np

from hybrid.feeds.histories import lasts
from hybrid.feeds.interactions import Histories
from hybrid.feeds.transitions import transitions
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


def table(train: Histories, counts: Counts):
    """A scipy CSR array (V, V): how much item j is expected soon after item i."""
    from scipy import sparse

    came = np.maximum(np.bincount(train.item, minlength=len(train.items)), 1).astype(float)
    found = transitions(train, counts.distances, counts.nearness)
    return sparse.diags_array(came**-counts.source) @ found @ sparse.diags_array(came**counts.popularity)


def scores(train: Histories, seen: Histories, counts: Counts = Counts()) -> ranking.Scores:  # noqa: B008  # immutable
    """Users -> a score for every item; what never came after anything of a user follows by popularity."""
    from scipy import sparse

    soon, size = table(train, counts), len(train.items)
    came = np.bincount(train.item, minlength=size)
    order = (came + np.random.default_rng(0).random(size)) / (came.max() + 1)

    def score(users: np.ndarray) -> np.ndarray:
        ids, at = lasts(seen, users, counts.last)
        age = np.repeat(at[1:], np.diff(at)) - 1 - np.arange(len(ids))
        found = (sparse.csr_array((counts.age**age, ids, at), (len(users), size)) @ soon).toarray()
        return found + TIE * max(found.max(initial=0), 1) * order

    return score
