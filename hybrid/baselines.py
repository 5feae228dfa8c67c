"""Next-item models without a net, which a trained model should beat: popularity, a count table, EASE.

Each learns from the training histories. Settings are chosen by nDCG@10 on validation items.
"""

import functools
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import check, metrics
from .feeds.histories import Histories
from .feeds.sequences import transitions
from .feeds.splits import HeldOut, Split
from .metrics import Scores
from .storage import files, tables

JUDGED = 2**27  # scores, users by items, that one setting is judged by: on large catalogues not all users
CSR = ("data", "indices", "indptr")
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
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8)  # of counts in a mixture with a model


class Table(NamedTuple):
    """Settings of a table of counts.

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


class Counts(NamedTuple):
    """Scores items by how often they came soon after, or before, the last items of a user; alone, or mixed with a model.

    table  (V, V) scipy CSR float32, what an item of a history is worth for each item
    ties   (V,) float64 above 0, added to all scores: so little of each item's popularity that it decides among equals alone
    decay  see Table
    share  of the counts in a mixture, 0 to 1
    """

    table: Any
    ties: np.ndarray
    decay: float
    share: float = 1.0

    def scores(self, seen: Histories) -> Scores:
        """Of all items for users of these histories."""

        def scores(users: np.ndarray) -> np.ndarray:
            counts = _recent(seen, users, self.decay, len(self.ties)) @ self.table
            table: np.ndarray = counts.astype(np.float64) + self.ties  # in float32 the ties would be lost
            return table

        return scores

    def mixed(self, model: Scores, seen: Histories) -> Scores:
        """log((1 - share) p + share c): p a model's probabilities of items, c the counts' scores as probabilities.

        model  users -> log-probabilities, or logits, which a share of 0 leaves as they are
        """
        if not self.share:
            return model

        def scores(users: np.ndarray) -> np.ndarray:
            logits, counts = np.asarray(model(users)), np.asarray(self.scores(seen)(users))
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            p *= (1 - self.share) / p.sum(axis=1, keepdims=True)
            mixture: np.ndarray = np.log(p + counts * (self.share / counts.sum(axis=1, keepdims=True)))
            return mixture

        return scores

    def save(self, path: Path) -> None:
        """Write all of it; OSError for a file that cannot be written."""
        buffer = io.BytesIO()
        table = {name: getattr(self.table, name) for name in CSR}
        np.savez(buffer, **table, ties=self.ties, decay=np.array(self.decay), share=np.array(self.share))
        files.write(path, [buffer.getbuffer()])

    @classmethod
    def load(cls, path: Path, items: int) -> "Counts":
        """What `save` wrote; OSError for an unreadable file, ValueError for another one and for one of other items."""
        from scipy import sparse

        expected = f"a table of counts of {items:,} items"
        arrays = tables.read(path, expected)
        try:
            table = check.csr(
                "table", sparse.csr_array(tuple(arrays[name] for name in CSR), (items, items)), dtype=np.float32
            )
            ties = check.array("ties", arrays["ties"], (items,), np.float64)
            decay, share = (check.number(name, float(arrays[name]), 0) for name in ("decay", "share"))
        except (KeyError, ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}; expected {expected}") from None
        if not (ties > 0).all() or (table.data < 0).any() or max(decay, share) > 1:
            raise ValueError(f"{path}: found numbers out of range; expected {expected}")
        return cls(table, ties, decay, share)


def popularity(train: Histories) -> Scores:
    """Scores every item by its count in the training histories, for all users alike."""
    counts = _counts(train)
    return lambda users: np.broadcast_to(counts, (len(users), len(counts)))


def counted(train: Histories, settings: Table, pairs: Any = None) -> Counts:
    """The counts of training histories.

    pairs  their `transitions` at this nearness, if there already
    """
    from scipy import sparse

    table = transitions(train, settings.nearness) if pairs is None else pairs
    table = table + settings.reversed * table.T
    often = np.maximum(_counts(train), 1.0)
    table = sparse.diags_array(often**-settings.rows) @ table @ sparse.diags_array(often**-settings.columns)
    return Counts(table.tocsr().astype(np.float32), 1e-9 * often / often.sum(), settings.decay)


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
    train, judged = parts.train, _judged(parts)
    if name == "popularity":
        return lambda seen: popularity(train)
    if name == "EASE":
        penalty = max(PENALTIES, key=lambda one: judged(ease(train, train, one)))
        return lambda seen: ease(train, seen, penalty)
    return counts(parts).scores


def counts(parts: Split) -> Counts:
    """The table of counts with the best settings, see `tuned`."""
    judged, pairs = _judged(parts), functools.lru_cache(1)(functools.partial(transitions, parts.train))
    table = Table()
    for setting, values in GRID.items():  # one after the other
        ways = [table._replace(**{setting: value}) for value in values]
        made = (counted(parts.train, way, pairs(way.nearness)) for way in ways)
        worth = [judged(one.scores(parts.train)) for one in made]
        table = ways[int(np.argmax(worth))]
    return counted(parts.train, table)


def shared(made: Counts, model: Callable[[Histories], Scores], parts: Split) -> Counts:
    """Counts with the share in a mixture with a model that has the best nDCG@10 on parts.valid."""
    judged, scores = _judged(parts), model(parts.train)
    ways = [made._replace(share=share) for share in SHARES]
    return max(ways, key=lambda way: judged(way.mixed(scores, parts.train)))


def _judged(parts: Split) -> Callable[[Scores], float]:
    new = metrics.unseen(parts.train, parts.valid)
    step = -(-len(new.user) * len(parts.train.items) // JUDGED)
    judges = HeldOut(new.user[::step], new.item[::step])

    def judged(scores: Scores) -> float:
        return metrics.measures(metrics.ranks(scores, parts.train, judges), user=judges.user)["ndcg@10"]

    return judged


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
    return sparse.csr_array(((decay**age).astype(np.float32), seen.item[place], at), (len(users), items))


def _had(histories: Histories) -> Any:
    """(users, V) CSR: 1 for each item that a user had."""
    from scipy import sparse

    shape = len(histories.users), len(histories.items)
    had = sparse.csr_array((np.ones(len(histories.item)), histories.item, histories.at), shape, copy=True)
    had.sum_duplicates()
    had.data[:] = 1
    return had
