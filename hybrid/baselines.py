"""Next-item baselines without a network, which a trained model should beat: popularity, item counts, EASE.

Each learns from the training histories. Settings are selected by nDCG@10 on validation items.
"""

import functools
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import check, metrics
from .feeds.histories import Histories, lasts
from .feeds.sequences import transitions
from .feeds.splits import HeldOut, Split
from .metrics import Scores
from .storage import files, tables

JUDGED = 2**27  # maximum scores, users x items, per setting: large catalogues are evaluated on a sample of users
CSR = ("data", "indices", "indptr")
LENGTH = 20  # last items of a user that the count table uses
COUNTED = 5_000_000  # maximum training items for a count table, which then takes seconds
GRID = {  # of a count table, see Table
    "decay": (0.2, 0.4, 0.6, 0.8, 0.95),
    "nearness": (0.3, 0.6, 0.8, 1.0),
    "reversed": (0.0, 0.3, 1.0),
    "rows": (0.0, 0.5, 1.0),
    "columns": (0.0, 0.2, 0.4, 0.6),
}
PENALTIES = (30.0, 100.0, 300.0, 1000.0)  # of EASE
MOST = 6_000  # maximum items for EASE, which inverts an items x items matrix
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)  # weights of the counts in a mixture with a model


class Table(NamedTuple):
    """Settings of a count table.

    decay      weight of a history item relative to the item after it
    nearness   factor on a pair's weight per position between its items
    reversed   weight of pairs in reverse order
    rows       counts of an item are divided by its own frequency to this power
    columns    counts for an item are divided by that item's frequency to this power
    """

    decay: float = 0.6
    nearness: float = 0.8
    reversed: float = 0.3
    rows: float = 0.5
    columns: float = 0.2


class Counts(NamedTuple):
    """Item scores from counts of items that occur soon after, or before, a user's last items; optionally mixed with a model.

    table  (V, V) scipy CSR float32: the score that a history item adds to each item
    ties   (V,) float64 above 0, added to all scores: each item's popularity, scaled so small that it only breaks ties
    decay  see Table
    share  weight of the counts in a mixture, 0 to 1
    """

    table: Any
    ties: np.ndarray
    decay: float
    share: float = 1.0

    def scores(self, seen: Histories) -> Scores:
        """Returns a scorer of all items for the users of these histories."""

        def scores(users: np.ndarray) -> np.ndarray:
            counts = _recent(seen, users, self.decay, len(self.ties)) @ self.table
            return counts.astype(np.float64) + self.ties  # float32 would round the ties away

        return scores

    def mixed(self, model: Scores, seen: Histories) -> Scores:
        """Returns a scorer of log((1 - share) p + share c): p model probabilities, c normalised count scores.

        model  users -> log-probabilities or logits; a share of 0 returns the model itself
        """
        if not self.share:
            return model

        def scores(users: np.ndarray) -> np.ndarray:
            logits, counts = np.asarray(model(users)), np.asarray(self.scores(seen)(users))
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            p *= (1 - self.share) / p.sum(axis=1, keepdims=True)
            return np.log(p + counts * (self.share / counts.sum(axis=1, keepdims=True)))

        return scores

    def save(self, path: Path) -> None:
        """Writes table, ties, decay and share; OSError if the file cannot be written."""
        buffer = io.BytesIO()
        table = {name: getattr(self.table, name) for name in CSR}
        np.savez(buffer, **table, ties=self.ties, decay=np.array(self.decay), share=np.array(self.share))
        files.write(path, [buffer.getbuffer()])

    @classmethod
    def load(cls, path: Path, items: int) -> "Counts":
        """Loads a file written by `save`; OSError if unreadable, ValueError for another format or number of items."""
        from scipy import sparse

        expected = f"a table of counts of {items:,} items"
        arrays = tables.read(path, expected)
        try:
            table = sparse.csr_array(tuple(arrays[name] for name in CSR), (items, items))
            table = check.csr("table", table, dtype=np.float32)
            ties = check.array("ties", arrays["ties"], (items,), np.float64)
            decay, share = (check.number(name, float(arrays[name]), 0) for name in ("decay", "share"))
        except (KeyError, ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}; expected {expected}") from None
        if not (ties > 0).all() or (table.data < 0).any() or max(decay, share) > 1:
            raise ValueError(f"{path}: found numbers out of range; expected {expected}")
        return cls(table, ties, decay, share)


def popularity(train: Histories) -> Scores:
    """Returns a scorer that ranks items by their count in the training histories, the same for all users."""
    counts = _counts(train)
    return lambda users: np.broadcast_to(counts, (len(users), len(counts)))


def counted(train: Histories, settings: Table, pairs: Any = None) -> Counts:
    """Returns the counts of training histories; pairs: their `transitions` at this nearness, if already computed."""
    from scipy import sparse

    table = transitions(train, settings.nearness) if pairs is None else pairs
    table = table + settings.reversed * table.T
    often = np.maximum(_counts(train), 1.0)
    table = sparse.diags_array(often**-settings.rows) @ table @ sparse.diags_array(often**-settings.columns)
    return Counts(table.tocsr().astype(np.float32), 1e-9 * often / often.sum(), settings.decay)


def ease(train: Histories, seen: Histories, penalty: float) -> Scores:
    """Returns a scorer by EASE, a linear item-to-item model with a zero diagonal that reconstructs user items (Steck 2019).

    It ignores the order of items and holds a (V, V) float64 matrix.
    """
    x = _had(train)
    gram = (x.T @ x).toarray()
    gram[np.diag_indices_from(gram)] += penalty
    weights = np.linalg.inv(gram)
    weights /= -np.diag(weights)
    np.fill_diagonal(weights, 0)
    known = _had(seen)
    return lambda users: known[users] @ weights


Baseline = Callable[[Histories], Scores]  # takes the histories of the users to score


def names(train: Histories) -> list[str]:
    """Returns the baselines that fit training histories of this size: "popularity", "counts" and "EASE"."""
    return ["popularity"] + ["counts"] * (len(train.item) <= COUNTED) + ["EASE"] * (len(train.items) <= MOST)


def tuned(name: str, parts: Split) -> Baseline:
    """Returns a baseline trained on parts.train, with the settings of the best nDCG@10 on parts.valid."""
    train, judged = parts.train, _judged(parts)
    if name == "popularity":
        return lambda seen: popularity(train)
    if name == "EASE":
        penalty = max(PENALTIES, key=lambda one: judged(ease(train, train, one)))
        return lambda seen: ease(train, seen, penalty)
    return counts(parts).scores


def counts(parts: Split) -> Counts:
    """Returns the count table with the best settings, see `tuned`."""
    judged, pairs = _judged(parts), functools.lru_cache(1)(functools.partial(transitions, parts.train))
    table = Table()
    for setting, values in GRID.items():  # coordinate search
        ways = [table._replace(**{setting: value}) for value in values]
        made = (counted(parts.train, way, pairs(way.nearness)) for way in ways)
        worth = [judged(one.scores(parts.train)) for one in made]
        table = ways[int(np.argmax(worth))]
    return counted(parts.train, table)


def shared(made: Counts, model: Callable[[Histories], Scores], parts: Split) -> Counts:
    """Returns the counts with the mixture weight of the best nDCG@10 on parts.valid."""
    judged, scores = _judged(parts), model(parts.train)
    ways = [made._replace(share=share) for share in SHARES]
    return max(ways, key=lambda way: judged(way.mixed(scores, parts.train)))


def _judged(parts: Split) -> Callable[[Scores], float]:
    new = metrics.unseen(parts.train, parts.valid)
    if not len(new.user):
        raise ValueError("parts.valid: found no item that is new to its user; expected some")
    step = -(-len(new.user) * len(parts.train.items) // JUDGED)
    judges = HeldOut(new.user[::step], new.item[::step])

    def judged(scores: Scores) -> float:
        return metrics.measures(metrics.ranks(scores, parts.train, judges), user=judges.user)["ndcg@10"]

    return judged


def _counts(train: Histories) -> np.ndarray:
    return np.bincount(train.item, minlength=len(train.items))


def _recent(seen: Histories, users: np.ndarray, decay: float, items: int) -> Any:
    """Returns (n, V) CSR of each user's last items, weighted by decay."""
    from scipy import sparse

    ids, at = lasts(seen, users, LENGTH)
    age = np.repeat(at[1:], np.diff(at)) - 1 - np.arange(len(ids))
    return sparse.csr_array(((decay**age).astype(np.float32), ids, at), (len(users), items))


def _had(histories: Histories) -> Any:
    """Returns (users, V) CSR with 1 for each item in a user's history."""
    from scipy import sparse

    shape = len(histories.users), len(histories.items)
    had = sparse.csr_array((np.ones(len(histories.item)), histories.item, histories.at), shape, copy=True)
    had.sum_duplicates()
    had.data[:] = 1
    return had
