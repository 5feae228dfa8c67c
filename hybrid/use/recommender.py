"""Recommending: to users by what they had, from an engine that has learned histories."""

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

BLOCK = 4096  # users asked about at a time
NUMBERS = 2**24  # items left out of the answers to them, at most, however many items there are


class Recommender(Similar):
    """What users take next, by an engine that learned from their histories. Names in, names and scores out.

    engine     its rows and classes are the items
    histories  what each user had, in the order of time: whom `recommend` knows; None: nobody
    items      names of the items; None: those of the histories
    length     most items of a history that the model sees: the feed's
    order, decay  in what form: as of its HistoryFeed, or "sequence" where it learned from a SequenceFeed with start=False

    counts     hybrid.baselines.Counts that answers are mixed with, as a run of factors has them; None: the engine alone

    Scores are log-probabilities of the item as the next one, among all items; see `Readout.scores` for what they are under
    negative sampling.

    Raises ValueError for names or histories that do not fit the engine.
    """

    columns: Sequence[str] | None = None  # of files that `remember` reads
    counts: Counts | None = None

    def __init__(
        self,
        engine: "Engine",
        histories: Histories | None = None,
        *,
        items: Sequence[str] | None = None,
        length: int = 5,
        order: str = "bag",
        decay: float = 0.8,
    ):
        if items is None:
            if histories is None:
                raise ValueError("items: found None without histories, expected the names of the items")
            items = histories.items
        if len(items) != engine.readout.classes or len(items) > engine.embedding.rows:
            raise ValueError(
                f"items: found {len(items):,} names, expected {engine.readout.classes:,}, one a class of the engine"
            )
        super().__init__(items, engine.embedding, "item")
        self.engine, self.items, self.length = engine, items, check.whole("length", length, 1)
        self.order = Order(order, length, decay).checked()
        self._items = Names(items, "item")
        if histories is not None:
            self.histories = self._fitting(histories)

    @functools.cached_property
    def histories(self) -> Histories:
        """What each user had, in the order of time."""
        return Histories(np.empty(0, np.int32), np.zeros(1, np.int64), [], list(self.items))

    @property
    def users(self) -> list[str]:
        """The names of the users whose histories are known."""
        return self.histories.users

    def remember(self, ratings: Ratings | str | Path, columns: Sequence[str] | None = None) -> int:
        """Take the histories of users from these ratings, from here on, without those of items that the model does not know.

        ratings  a file of them, too
        columns  of the file, see `ratings.load`; None: as in the ratings that the model was trained on, where that is known

        Returns how many ratings were left out. Raises ValueError where none is left, and what `ratings.load` raises.
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
        """The k items that each user most likely takes next.

        users         names, a list of any length or one; None: all
        exclude_seen  without what the user had
        allowed       names of the only items that may be recommended; None: all
        forbidden     names of items that may not

        Where fewer than k are left, there are fewer. Memory: 8 k bytes a user; `recommendations` gives them part by part.
        Raises ValueError for users and items that are not known, for k outside 1 to V, and where no item is allowed.
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
        """The k items that new users most likely take next, by the items that each had, in the order of time.

        Arguments as of `recommend`. Raises ValueError as it does, and for a history without items.
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
        """What `recommend` gives, in parts of some thousand users, so that memory does not grow with their number."""
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
        """The k best items of some users, as Engine.best gives them."""
        if self.counts is None or not self.counts.share:
            return self.engine.best(k=k, exclude=left_out, **self.order.question(had, users))
        table = self.counts.mixed(lambda some: self.engine.scores(**self.order.question(had, some)), had)(users)
        if left_out is not None:
            table[left_out.nonzero()] = -np.inf
        ids = np.argpartition(-table, k - 1, axis=1)[:, :k]
        ids = np.take_along_axis(ids, np.lexsort((ids, -np.take_along_axis(table, ids, 1)), axis=1), 1)
        scores = np.take_along_axis(table, ids, 1)
        return np.where(np.isneginf(scores), -1, ids).astype(np.int32), scores.astype(np.float32)

    def _fitting(self, histories: Histories) -> Histories:
        """The histories; ValueError for those of other items, IndexError for ids out of range."""
        histories = feed.checked(histories)
        if len(histories.items) != len(self.items):
            raise ValueError(
                f"histories: found {len(histories.items):,} items, expected {len(self.items):,}, as in the model"
            )
        return histories


def barred(items: int, allowed: np.ndarray | None, forbidden: np.ndarray) -> np.ndarray:
    """The ids that no answer may have, rising: all that are not allowed (None: all are), and those forbidden.

    ValueError where none is left.
    """
    out = np.full(items, allowed is not None)
    out[allowed if allowed is not None else []] = False
    out[forbidden] = True
    if out.all():
        raise ValueError(f"allowed, forbidden: found none of {items:,} items left, expected some to recommend")
    return np.flatnonzero(out).astype(np.int32)


def left_out_of(had: Histories, users: np.ndarray, barred: np.ndarray, exclude_seen: bool) -> Any:
    """CSR (users, items) of what answers to some users leave out: what each had, and what all may not have; None: nothing."""
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
