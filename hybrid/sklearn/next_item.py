"""A next-item recommender, learned from users' item sequences."""

import math
import warnings
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .. import check
from ..engine import Embedding, Engine
from ..engine.route import Pipeline
from ..feeds.baskets import BasketFeed
from ..feeds.histories import HistoryFeed, lasts
from ..feeds.ratings import Histories, usual_columns
from ..models import factors
from ..optimisers import SGD
from ..trunk.mlp import MLP
from ..use.recommender import left_out_of
from . import base

EXPECTED = "expected users x items, a list of items for each user, or hybrid.ratings.histories(...)"
AT = 10  # number of recommendations in which `score` looks for the true item
MOMENTUM = 0.9
NOTHING = np.empty(0, np.int32)  # nothing is excluded
UNKNOWN, NONE = -2, -3  # targets: an unknown item, no item


@dataclass(eq=False, repr=False)
class NextItem(BaseEstimator):
    """A recommender of the next item after a history: the mean of its last items' rows -> MLP -> a distribution over all items.

    readout        the output layer: "tree", "full" or "sampled"
    history        maximum number of items used, the last ones of a history
    width, hidden, readout_width   of an item's row, of the MLP's hidden layer, of the readout's input
    rate, rows_rate, trunk_rate    step sizes of readout, rows and MLP; they decrease linearly to 0
    epochs, batch  passes over the histories, examples per batch
    random_state   of the initial weights and of the order of examples
    n_jobs         threads; results do not depend on it
    verbose        1: progress on stderr

    None stands for the result of a recorded search for this readout on MovieLens-100k.

    Histories are lists of items (names or integers), one per user, in time order; or hybrid.ratings.histories(...). They may
    also be a matrix users x items, sparse or dense, whose nonzeros are unordered sets of items. To learn an item, `history`
    others of its set are drawn; all count in a prediction. Users may differ from those of `fit`, since a model depends only on
    histories. After `fit`:

    items_   the items, which are the classes
    losses_  mean loss of each epoch, in nats; weights count within a batch only, not between batches
    engine_  the Engine

    ValueError if no user has two items, for an invalid history, for an ambiguous table of numbers, and for a matrix if `fit`
    has had lists. Items that are not in the training data are omitted.
    """

    readout: str = "tree"
    _: KW_ONLY
    history: int | None = None
    width: int | None = None
    hidden: int | None = None
    readout_width: int | None = None
    rate: float | None = None
    rows_rate: float | None = None
    trunk_rate: float | None = None
    epochs: int = 5
    batch: int = 512
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    @base.atomic
    def fit(self, X: Any, y: Any = None) -> "NextItem":
        """Learns from histories; y is unused: every item but a history's first is a target, with its weight in Histories."""
        seed, options = base.seed_of(self.random_state), self._options()
        settings = {"length": options["history"], "batch": self.batch, "epochs": self.epochs, "seed": seed}
        feed: BasketFeed | HistoryFeed
        check_table(X)
        if is_matrix(X):
            entries = self._entries(X, reset=True)
            feed, self._length = BasketFeed(entries, **settings), entries.shape[1]
        else:
            item, at = flat(X)
            for name in ("n_features_in_", "feature_names_in_"):  # of an earlier matrix
                self.__dict__.pop(name, None)
            self.items_, self._length = np.unique(item), options["history"]
            weight = X.weight if isinstance(X, Histories) else None
            feed = HistoryFeed(of_lists(item, at, self.items_, weight), **settings)
        self.engine_ = self._untrained(feed, options, seed)
        self.losses_ = base.run(self.engine_, feed, self.verbose)
        return self

    def recommend(self, X: Any, k: int = AT, *, exclude_seen: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k most likely next items after each history, most likely first, and their log-probabilities, both (n, k).

        exclude_seen  True: exclude the items of the history

        If fewer than k are left, items ends with -1 (None, if items have names) and log-probabilities with -inf. With
        readout="neighbours" logits replace log-probabilities.
        """
        check_is_fitted(self)
        check.whole("k", k, 1, len(self.items_))
        ids, log_probs = self._best(self._encoded(X), k, exclude_seen)
        return self._named(ids), log_probs

    def predict(self, X: Any) -> np.ndarray:
        """Returns the most likely next item after each history that is not in it, (n,)."""
        return self.recommend(X, 1)[0][:, 0]

    def score(self, X: Any, y: Any = None) -> float:
        """Returns recall@10: the fraction of next items among ten recommended, of items that are new to their history.

        y  the next item of each history; None: the last item of each is held out; for a matrix, whose rows have no order, a
           drawn one. If no item is new: nan, with a warning
        """
        check_is_fitted(self)
        seen = self._encoded(X)
        if y is None:
            seen, target = _held_out(seen, drawn=is_matrix(X))
        else:
            target = self._targets(y, len(seen.at) - 1)
        ids, _ = self._best(seen, min(AT, len(self.items_)), True)
        users = np.repeat(np.arange(len(target)), np.diff(seen.at))
        had = np.bincount(users[seen.item == target[users]], minlength=len(target)) > 0
        counted = ~had & (target != NONE)
        if not counted.any():
            warnings.warn("no history has a next item that is new to it", UndefinedMetricWarning, stacklevel=2)
            return math.nan
        return float((ids == target[:, None]).any(axis=1)[counted].mean())

    def _options(self) -> dict[str, Any]:
        tuned = factors.TUNED.get(self.readout, factors.TUNED["full"])
        return {name: default if (own := getattr(self, name, None)) is None else own for name, default in tuned.items()}

    def _entries(self, X: Any, *, reset: bool) -> Any:
        """Returns a matrix users x items as CSR."""
        least = 2 if reset else 1  # a model of one item has no choice
        entries = sparse.csr_array(base.validated(self, X, reset=reset, ensure_min_features=least))
        if reset:
            names = getattr(self, "feature_names_in_", None)
            self.items_ = np.arange(entries.shape[1]) if names is None else names
        return entries

    def _encoded(self, X: Any) -> Histories:
        check_table(X)
        if is_matrix(X):
            if not hasattr(self, "n_features_in_"):
                raise ValueError("X: found a matrix users x items, expected lists of items as in fit")
            return of_matrix(self._entries(X, reset=False), self.items_)
        return of_lists(*flat(X), self.items_)

    def _untrained(self, feed: BasketFeed | HistoryFeed, options: dict[str, Any], seed: int) -> Engine:
        width, outputs = options["width"], options["readout_width"]
        rows = Embedding(feed.rows, width, bags="mean", optimiser=SGD(options["rows_rate"]), spread=0.1, seed=seed)
        optimiser = SGD(options["trunk_rate"], momentum=MOMENTUM)
        trunk = MLP([width, options["hidden"], outputs], optimiser=optimiser, seed=seed)
        shape = {name: options[name] for name in ("tree",) if name in options} | {"rate": options["rate"], "seed": seed}
        readout = base.made(self.readout, feed.counts, outputs, batch=feed.batch, **shape)
        threads, way = base.threads_of(self.n_jobs), Pipeline(overlap=False)
        return Engine(rows, trunk, readout, device="cpu", threads=threads, pipeline=way)

    def _best(self, seen: Histories, k: int, exclude_seen: bool) -> tuple[np.ndarray, np.ndarray]:
        users = np.arange(len(seen.at) - 1)
        ids, bag_at = lasts(seen, users, self._length)
        return self.engine_.best(ids, k, bag_at, left_out_of(seen, users, NOTHING, exclude_seen))

    def _named(self, ids: np.ndarray) -> np.ndarray:
        """Returns the items of ids; for -1 itself, or None among names."""
        if self.items_.dtype.kind in "iu":
            return np.where(ids < 0, -1, self.items_[ids])
        names: np.ndarray = self.items_.astype(object)[ids]
        names[ids < 0] = None
        return names

    def _targets(self, y: Any, users: int) -> np.ndarray:
        """Returns the ids of the next items; -2 for unknown ones, which match no recommendation."""
        named = np.asarray(y)
        if named.shape != (users,):
            raise ValueError(f"y: found {named.shape}, expected ({users},): the next item of each history")
        known = of_lists(named, np.arange(users + 1), self.items_)
        target = np.full(users, UNKNOWN, np.int32)
        target[np.diff(known.at) > 0] = known.item
        return target

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags


def check_table(X: Any) -> None:
    """Raises ValueError for a table that is not clearly users x items, such as one of events."""
    if isinstance(X, Histories) or not is_matrix(X) or sparse.issparse(X):
        return
    columns = [X[name] for name in X.columns] if hasattr(X, "columns") else [X]
    numbers = [part for part in map(np.asarray, columns) if part.dtype.kind in "iu" and part.size]
    some = sum(map(np.count_nonzero, numbers)) > sum(part.size for part in numbers) / 2
    low, most = (min(part.min() for part in numbers), max(part.max() for part in numbers)) if numbers else (0, 0)
    if any(usual_columns(X)) or (some and low >= 0 and most >= X.shape[1]):
        raise ValueError(
            f"X: found a table {tuple(X.shape)} that is not clearly users x items; for columns give hybrid.ratings.histories("
            "hybrid.ratings.from_frame(X, user=, item=, time=)), for histories X.tolist(), else scipy.sparse.csr_array(X)"
        )


def is_matrix(X: Any) -> bool:
    """True if X is users x items: a sparse matrix, an array of numbers or a data frame; False if it lists items per user."""
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    return hasattr(X, "shape") and kind not in "UST" and (len(X.shape) == 2 or kind in "biufc")


def of_matrix(X: Any, items: np.ndarray) -> Histories:
    """Returns the histories of the nonzero columns of a CSR array, in storage order."""
    kept = X.data != 0
    at = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    return _histories(X.indices[kept], at, items)


def of_lists(item: np.ndarray, at: np.ndarray, items: np.ndarray, weight: np.ndarray | None = None) -> Histories:
    """Returns the histories of items of `flat`, without those that are not among the sorted `items`; weight: one an item."""
    if not len(item):
        return _histories(np.empty(0, np.int32), at, items)
    if (item.dtype.kind in "US") != (items.dtype.kind in "US") and "O" not in (item.dtype.kind, items.dtype.kind):
        raise ValueError(f"items: found {item.dtype}, expected {items.dtype} as in fit: numbers, or names, in both")
    place = np.minimum(np.searchsorted(items, item), len(items) - 1)
    kept = items[place] == item
    weight = None if weight is None else weight[kept]
    return _histories(place[kept], np.concatenate([[0], np.cumsum(kept)])[at], items)._replace(weight=weight)


def flat(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Returns the concatenated items of all users, and their offsets, (U + 1,)."""
    if isinstance(X, Histories):
        return np.asarray(X.items)[X.item], X.at
    if isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise ValueError(f"X: found {type(X).__name__}, {EXPECTED}")
    lists = []
    for user, row in enumerate(X):
        if isinstance(row, str | bytes) or not isinstance(row, Iterable):
            raise ValueError(f"X[{user}]: found {row!r}, {EXPECTED}")
        lists.append(list(row))
    at = np.cumsum([0, *map(len, lists)])
    items = np.array([item for row in lists for item in row])
    if items.ndim != 1 or (items.dtype.kind not in "iuUO" and len(items)):
        raise ValueError(f"X: found items of {items.dtype} {items.shape}, expected names or whole numbers; {EXPECTED}")
    return items, at


def _histories(item: np.ndarray, at: np.ndarray, items: np.ndarray) -> Histories:
    users: Any = range(len(at) - 1)  # without names
    return Histories(item.astype(np.int32), at.astype(np.int64), users, items)  # type: ignore[arg-type]


def _held_out(seen: Histories, *, drawn: bool) -> tuple[Histories, np.ndarray]:
    """Splits off the last item of each history, or a drawn one; returns the histories and the items, NONE if empty."""
    sizes = np.diff(seen.at)
    some = sizes > 0
    share = np.random.default_rng(0).random(len(sizes)) if drawn else np.ones(len(sizes))
    place = (seen.at[:-1] + np.minimum((share * sizes).astype(np.int64), sizes - 1))[some]
    target = np.full(len(sizes), NONE, np.int32)
    target[some] = seen.item[place]
    at = seen.at - np.concatenate([[0], np.cumsum(some)])
    return seen._replace(item=np.delete(seen.item, place), at=at), target
