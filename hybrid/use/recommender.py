"""Recommendations to users from their histories, by an engine trained on histories."""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import check, console
from ..baselines import Counts
from ..feeds import histories as feed
from ..feeds.histories import Order
from ..feeds.ratings import Histories, Ratings, load
from ..feeds.ratings import histories as in_order
from .answers import Names, Ranked, joined
from .vectors import Similar

if TYPE_CHECKING:
    from ..engine import Engine

BLOCK = 4096  # users per batch
NUMBERS = 2**24  # maximum number of excluded items per batch, however many items there are


class Recommender(Similar):
    """Next-item recommendations by an engine trained on histories. Takes names, returns names and scores.

    engine     its rows and classes are the items
    histories  each user's items in temporal order, for `recommend`; None: no users
    items      names of the items; None: those of the histories
    length     maximum history length that the model sees: the feed's
    order      "bag" if it was trained on a HistoryFeed, "sequence" if on a SequenceFeed with start=False
    counts     hybrid.baselines.Counts for a mixture, as in a run of factors; None: the engine alone

    Scores are log-probabilities of an item as the next one, among all items; for negative sampling see `Readout.scores`.

    Raises ValueError for names or histories that do not fit the engine.
    """

    columns: Sequence[str] | None = None  # of files for `remember`
    counts: Counts | None = None

    def __init__(
        self,
        engine: "Engine",
        histories: Histories | None = None,
        *,
        items: Sequence[str] | None = None,
        length: int = 5,
        order: str = "bag",
    ):
        if items is None:
            if histories is None:
                raise ValueError("items: found None without histories, expected the names of the items")
            items = histories.items
        if len(items) != engine.readout.classes or len(items) > engine.embedding.rows:
            raise ValueError(f"items: found {len(items):,} names, expected {engine.readout.classes:,}, one per class")
        super().__init__(items, engine.embedding, "item")
        self.engine, self.items, self.length = engine, items, check.whole("length", length, 1)
        self.order = Order(order, length).checked()
        self._items = Names(items, "item")
        if histories is not None:
            self.histories = feed.checked(histories)
            if (found := len(histories.items)) != len(items):
                raise ValueError(f"histories: found {found:,} items, expected {len(items):,}, as in the model")

    @functools.cached_property
    def histories(self) -> Histories:
        """Each user's items in temporal order."""
        return Histories(np.empty(0, np.int32), np.zeros(1, np.int64), [], list(self.items))

    @property
    def users(self) -> list[str]:
        """The names of the users with known histories."""
        return self.histories.users

    def remember(self, ratings: Ratings | str | Path, columns: Sequence[str] | None = None) -> int:
        """Replaces the histories by those of ratings, without items that the model does not know.

        ratings  may be a file
        columns  of the file, see `ratings.load`; None: as in the training ratings, if known

        Returns the number of ratings dropped. Raises ValueError if none is left, and the errors of `ratings.load`.
        """
        had = in_order(load(ratings, columns or self.columns) if isinstance(ratings, str | Path) else ratings)
        of = np.array([self._items.by_name.get(name, -1) for name in had.items], np.int32)
        item = of[had.item]
        known = item >= 0
        if not known.any():
            raise ValueError(f"ratings: found no item that the model knows, expected some of its {len(self.items):,}")
        self.histories = had._replace(item=item, items=list(self.items)).only(known)
        self.__dict__.pop("_users", None)
        return int((~known).sum())

    def recommend(
        self, users: Any = None, k: int = 10, *, exclude_seen: bool = True, allowed: Any = None, forbidden: Any = ()
    ) -> Ranked:
        """Returns the k most likely next items of each user.

        users         a name, or a list of any length; None: all
        exclude_seen  skip items in the user's history
        allowed       names of the only items to recommend; None: all
        forbidden     names of items to skip

        Fewer than k are returned if fewer are left. Memory: 8 k bytes per user; `recommendations` yields them in parts.
        Raises ValueError for unknown users and items, for k outside 1 to V, and if no item is allowed.
        """
        only = {"exclude_seen": exclude_seen, "allowed": allowed, "forbidden": forbidden}
        return joined([*self.recommendations(users, k, **only)], self.items, k)

    def recommend_to(
        self,
        histories: Sequence[Sequence[str]],
        k: int = 10,
        *,
        exclude_seen: bool = True,
        allowed: Any = None,
        forbidden: Any = (),
    ) -> Ranked:
        """Returns the k most likely next items of new users, given their items in temporal order.

        Arguments as of `recommend`. Raises ValueError as it does, and for an empty history.
        """
        ids = [self._items.ids(history) for history in histories]
        for at, history in enumerate(ids):
            if not len(history):
                raise ValueError(f"histories[{at}]: found no item, expected some")
        places = np.cumsum([0, *map(len, ids)], dtype=np.int64)
        numbers = [str(number) for number in range(1, len(ids) + 1)]
        had = Histories(np.concatenate([*ids, np.empty(0, np.int32)]), places, numbers, list(self.items))
        every = np.arange(len(ids), dtype=np.int32)
        return joined([*self._parts(had, every, k, exclude_seen, self._barred(allowed, forbidden))], self.items, k)

    def recommendations(
        self, users: Any = None, k: int = 10, *, exclude_seen: bool = True, allowed: Any = None, forbidden: Any = ()
    ) -> Iterator[Ranked]:
        """Yields the results of `recommend` in parts of some thousand users, so that memory is bounded."""
        check.whole("k", k, 1, len(self.items))
        asked = np.arange(len(self.users), dtype=np.int32) if users is None else self._users.ids(users)
        return self._parts(self.histories, asked, k, exclude_seen, self._barred(allowed, forbidden))

    def _barred(self, allowed: Any, forbidden: Any) -> np.ndarray:
        ids = None if allowed is None else self._items.ids(allowed)
        return barred(len(self.items), ids, self._items.ids(forbidden))

    @functools.cached_property
    def _users(self) -> Names:
        return Names(self.users, "user")

    def _parts(
        self, had: Histories, asked: np.ndarray, k: int, exclude_seen: bool, barred: np.ndarray
    ) -> Iterator[Ranked]:
        numbers = max(len(barred), 1) if not self.counts or not self.counts.share else len(self.items)
        block = max(min(BLOCK, NUMBERS // numbers), 1)
        with console.bar(len(asked), "recommending", "users", passing=True) as bar:
            for first in range(0, len(asked), block):
                users = asked[first : first + block]
                left_out = left_out_of(had, users, barred, exclude_seen)
                best, scores = self._best(had, users, k, left_out)
                yield Ranked([had.users[user] for user in users.tolist()], best, scores, self.items)
                bar.update(len(users))

    def _best(self, had: Histories, users: np.ndarray, k: int, left_out: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k best items of some users, as Engine.best does."""
        if self.counts is None or not self.counts.share:
            return self.engine.best(k=k, exclude=left_out, **self.order.question(had, users))
        table = self.counts.mixed(lambda some: self.engine.scores(**self.order.question(had, some)), had)(users)
        if left_out is not None:
            table[left_out.nonzero()] = -np.inf
        ids = np.argpartition(-table, k - 1, axis=1)[:, :k]
        ids = np.take_along_axis(ids, np.lexsort((ids, -np.take_along_axis(table, ids, 1)), axis=1), 1)
        scores = np.take_along_axis(table, ids, 1)
        return np.where(np.isneginf(scores), -1, ids).astype(np.int32), scores.astype(np.float32)


def barred(items: int, allowed: np.ndarray | None, forbidden: np.ndarray) -> np.ndarray:
    """Returns the ids forbidden or not allowed (None: all are allowed), ascending; ValueError if none is left."""
    out = np.full(items, allowed is not None)
    out[allowed if allowed is not None else []] = False
    out[forbidden] = True
    if out.all():
        raise ValueError(f"allowed, forbidden: found none of {items:,} items left, expected some to recommend")
    return np.flatnonzero(out).astype(np.int32)


def left_out_of(had: Histories, users: np.ndarray, barred: np.ndarray, exclude_seen: bool) -> Any:
    """Returns CSR (users, items) of excluded items: each user's history, and those barred for all; None: nothing."""
    from scipy import sparse

    shape = len(users), len(had.items)
    seen = None
    if exclude_seen:
        ids, bag_at = feed.lasts(had, users)
        seen = sparse.csr_array((np.ones(len(ids), np.int8), ids, bag_at), shape)
    if not len(barred):
        return seen
    ids, bag_at = np.tile(barred, shape[0]), np.arange(shape[0] + 1) * len(barred)
    for_all = sparse.csr_array((np.ones(len(ids), np.int8), ids, bag_at), shape)
    return for_all if seen is None else for_all.astype(bool) + seen.astype(bool)
