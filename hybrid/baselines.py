"""Next-item models without a net, which a trained model should beat: popularity, a count table, EASE.

Each learns from the training histories. Settings are chosen by nDCG@10 on validation items.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import metrics
from .feeds.histories import Histories
from .feeds.sequences import transitions
from .feeds.splits import HeldOut, Split
from .metrics import Scores

JUDGED = 2**27  # scores, users by items, that one setting is judged by: on large catalogues not all users
LENGTH = 20  # last items of a user that the count table sees
COUNTED = 5_000_000  # items to learn from, of which a count table is made in seconds
GRID = {  # of a count table, see Table
    "decay": (0.2, 0.4, 0.6, 0.8, 0.95),
    "nearness": (0.3, 0.6, 0.8, 1.0),
    "reversed": (0.0, 0.3, 1.0),
    "rows": (0.0, 0.5, 1.0),
    "columns": (0.0, 0.2, 0.4, 0.6),
}
PENALTIES = (30.0, 100.0, 300.0, 1000.0)  # of EASE
MOST = 6_000  # items of EASE, whose matrix of all pairs is inverted


class Table(NamedTuple):
    """Settings of a count table.

    decay      an item of a history counts so much of the one after it
    nearness   a pair of items counts so much for each place between them
    reversed   the weight of pairs the other way round
    rows       counts of an item are divided by its own frequency to this power
    columns    those for an item by that item's frequency to this power
    """

    decay: float = 0.6
    nearness: float = 0.8
    reversed: float = 0.3
    rows: float = 0.5
    columns: float = 0.2


def popularity(train: Histories) -> Scores:
    """Scores every item by its count in the training histories, for all users alike."""
    counts = _counts(train)
    return lambda users: np.broadcast_to(counts, (len(users), len(counts)))


def count_table(train: Histories, seen: Histories, settings: Table, pairs: Any = None) -> Scores:
    """Scores items by how often they came soon after, or before, the last items of a user; ties by popularity.

    train  histories that are counted
    seen   of the users that are asked about
    pairs  `transitions` of the training histories at this nearness, if there already
    """
    from scipy import sparse

    table = transitions(train, settings.nearness) if pairs is None else pairs
    table = (table + settings.reversed * table.T).tocsr()
    counts = np.maximum(_counts(train), 1.0)
    table = (sparse.diags_array(counts**-settings.rows) @ table @ sparse.diags_array(counts**-settings.columns)).tocsr()
    ties = 1e-9 * counts / counts.sum()

    def scores(users: np.ndarray) -> np.ndarray:
        return _recent(seen, users, settings.decay, len(counts)) @ table + ties

    return scores


def ease(train: Histories, seen: Histories, penalty: float) -> Scores:
    """Scores items by EASE: the linear item-to-item model with a zero diagonal that restores users' items (Steck 2019).

    Its matrix has V * V float64; the order of items plays no part.
    """
    x = _had(train)
    gram = (x.T @ x).toarray()
    gram[np.diag_indices_from(gram)] += penalty
    weights = np.linalg.inv(gram)
    weights /= -np.diag(weights)
    np.fill_diagonal(weights, 0)
    known = _had(seen)
    return lambda users: known[users] @ weights


Baseline = Callable[[Histories], Scores]  # takes the histories of the users that it answers for


def names(train: Histories) -> list[str]:
    """Those that these training histories are not too large for: "popularity", "counts" and "EASE"."""
    return ["popularity"] + ["counts"] * (len(train.item) <= COUNTED) + ["EASE"] * (len(train.items) <= MOST)


def tuned(name: str, parts: Split) -> Baseline:
    """A baseline by name, learned from parts.train, with the settings that have the best nDCG@10 on parts.valid."""
    train, new = parts.train, metrics.unseen(parts.train, parts.valid)
    step = -(-len(new.user) * len(train.items) // JUDGED)
    judges = HeldOut(new.user[::step], new.item[::step])

    def judged(scores: Scores) -> float:
        return metrics.measures(metrics.ranks(scores, train, judges), user=judges.user)["ndcg@10"]

    if name == "popularity":
        return lambda seen: popularity(train)
    if name == "EASE":
        penalty = max(PENALTIES, key=lambda one: judged(ease(train, train, one)))
        return lambda seen: ease(train, seen, penalty)
    table, pairs = Table(), functools.lru_cache(1)(functools.partial(transitions, train))
    for setting, values in GRID.items():  # one after the other
        ways = [table._replace(**{setting: value}) for value in values]
        table = max(ways, key=lambda way: judged(count_table(train, train, way, pairs(way.nearness))))
    return lambda seen: count_table(train, seen, table)


def _counts(train: Histories) -> np.ndarray:
    return np.bincount(train.item, minlength=len(train.items))


def _recent(seen: Histories, users: np.ndarray, decay: float, items: int) -> Any:
    """(n, V) CSR: the last items of users, each with its weight."""
    from scipy import sparse

    first, last = seen.at[:-1][users], seen.at[1:][users]
    first = np.maximum(first, last - LENGTH)
    sizes = last - first
    at = np.concatenate([[0], np.cumsum(sizes)])
    place = np.arange(at[-1]) + np.repeat(first - at[:-1], sizes)
    age = np.repeat(last, sizes) - 1 - place
    return sparse.csr_array((decay**age, seen.item[place], at), (len(users), items))


def _had(histories: Histories) -> Any:
    """(users, V) CSR: 1 for each item that a user had."""
    from scipy import sparse

    shape = len(histories.users), len(histories.items)
    had = sparse.csr_array((np.ones(len(histories.item)), histories.item, histories.at), shape, copy=True)
    had.sum_duplicates()
    had.data[:] = 1
    return had
