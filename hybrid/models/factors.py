"""What a user takes next: the rows of his last items -> trunk -> a distribution over items.

The last item of every user tests, the one before it validates (users with at least 3 items), the rest is learned from; see
_split.py for other ways. During training only validation is measured, on at most VALIDATING users, evenly taken; the test is
measured once, at the end and by `hybrid eval`, on all, with the validation items among what the user has had.
"""

import dataclasses
import functools
import os
from pathlib import Path
from typing import Any

import numpy as np

from .. import console
from ..engine import Engine
from ..feeds.orders import Order
from ..feeds.ratings import HeldOut, Histories, Split, histories
from ..feeds.ratings import load as read
from ..judge import ranking
from ..readout import registry as readout_kinds
from ..settings import names, option, positive
from ..storage import document
from ..train.job import Watched
from ..train.runs import Trained
from ..train.store import write_json
from ..use.recommender import Recommender
from . import _engine, _history, _split
from ._engine import DenseOptions, EngineJob, load
from ._history import HistoryOptions, order_of
from ._split import SplitOptions

__all__ = ["FILES", "TUNED", "Evaluation", "Options", "Use", "complete", "evaluate", "load", "prepare", "vectors"]

NAMES = "items.json"
USERS = "users.json"
FILES = (NAMES, USERS)
RANKS = True
VALIDATING = 10_000  # users measured during training, so that on large data it does not take longer than to learn
COLUMNS = "which columns of --ratings these are: names of its header, or numbers from 1 where it has none; nothing for no time"


@dataclasses.dataclass(frozen=True)
class Options(HistoryOptions, SplitOptions, DenseOptions):
    """Of `hybrid train factors`."""

    ratings: str | None = option(
        None,
        "MovieLens u.data or ratings.dat, a table of text, Parquet, or scipy .npz",
        group="data",
        needed=True,
        type=os.path.abspath,
        metavar="FILE",
    )
    columns: list[str] | None = option(None, COLUMNS, group="data", type=names, metavar="USER,ITEM[,TIME[,WEIGHT]]")
    readout: str = option("sampled", "the output layer", registry=readout_kinds)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Of `hybrid eval` on a run of factors."""

    k: int = option(10, "recall@K, nDCG@K", type=positive, metavar="K")
    ratings: str | None = option(
        None,
        "where the ratings of the run are now (default: where they were)",
        type=os.path.abspath,
        metavar="FILE",
    )
    columns: list[str] | None = option(None, COLUMNS, type=names, metavar="USER,ITEM[,TIME[,WEIGHT]]")


# The best of bench/results/tune_factors.jsonl: the same under full and sampled softmax, others under the tree.
# Trees and heads begin by counts: validation nDCG@10 on MovieLens-100k .105 and .107, drawn .099 and .099.
_SOFTMAX = {"history": 5, "width": 64, "hidden": 256, "readout_width": 32}
_SOFTMAX_RATES = {"rate": 0.093, "rows_rate": 0.18, "trunk_rate": 0.16}
TUNED: dict[str, dict[str, Any]] = {
    "tree": {"tree": "balanced", "history": 3, "width": 32, "hidden": 128, "readout_width": 64}
    | {"rate": 0.02, "rows_rate": 0.34, "trunk_rate": 0.024, "start": "counts"},
    "full": _SOFTMAX | _SOFTMAX_RATES,
    "sampled": _SOFTMAX | _SOFTMAX_RATES,
    "neighbours": _SOFTMAX | _SOFTMAX_RATES,
    "head": _SOFTMAX | _SOFTMAX_RATES | {"start": "counts"},
}


class Factors(EngineJob):
    """Histories without every user's last two items; validated on the first of the two."""

    evaluations = 1
    rows_are_classes = True

    def __init__(self, options: dict[str, Any]):
        every = histories(read(options["ratings"], options.get("columns")))
        self._parts = parts = _split.parts(every, options)
        _check(options["ratings"], parts)
        new = ranking.unseen(parts.train, parts.valid)
        self._repeats = len(parts.valid.user) - len(new.user)
        self._new = _some_users(new)
        super().__init__(
            options,
            _history.feed(options, parts.train),
            watched=Watched("valid recall@10", lowest=False),
            data=_split.digest(every, options),
            **_history.form(options),
        )

    def make(self) -> Engine:
        """The untrained engine; its input rows may know what comes soon after what."""
        made = super().make()
        _history.begin(self.options, self._parts.train, made)
        return made

    def begin(self, model: Engine, facts: dict[str, Any]) -> None:
        """Say how is measured."""
        super().begin(model, facts)
        console.note(_split.protocol(self.options))

    def keep(self, folder: Path) -> None:
        """Write the names of items and users."""
        write_json(folder / NAMES, self._parts.train.items)
        write_json(folder / USERS, self._parts.train.users)

    def validate(self, model: Engine) -> dict[str, float]:
        """Ranks of the validation items."""
        train = self._parts.train
        ranks = ranking.ranks(scores(model, train, order_of(self.options)), train, self._new)
        return {f"valid {name}": value for name, value in ranking.measures(ranks, user=self._new.user).items()}

    def final(self, model: Engine) -> dict[str, Any]:
        """Figures on test items, and how many users validated."""
        counted = {"valid users": len(np.unique(self._new.user)), "valid repeats": self._repeats}
        return counted | _test(model, self._parts, order_of(self.options))


def prepare(options: dict[str, Any]) -> Factors:
    """Ratings -> histories."""
    return Factors(options)


def complete(chosen: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """Options that follow from others; ValueError for those that contradict each other."""
    return _engine.complete(_history.complete(chosen, said), said)


def scores(engine: Engine, seen: Histories, order: Order) -> ranking.Scores:
    """Users -> log probability of every item as their next."""
    return lambda users: engine.scores(**order.question(seen, users))


def evaluate(run: Trained, given: dict[str, Any]) -> dict[str, Any]:
    """recall@K and nDCG@K of every user's last item, beside those of popularity."""
    folder, options = run.folder, run.options
    path = given["ratings"] or options["ratings"]
    try:
        every = histories(read(path, given["columns"] or options.get("columns")))
    except FileNotFoundError:
        raise ValueError(
            f"{path}: not there, and {folder} was trained on it; where it was moved, hybrid eval {folder} --ratings FILE"
        ) from None
    found, expected = _split.digest(every, options)[:12], (options.get("data") or "none kept")[:12]
    if found != expected:
        raise ValueError(
            f"{path}: not the ratings that {folder} was trained on (digest {found}, expected {expected}): give them as "
            "they were, --ratings FILE, or train a new run"
        )
    console.note(_split.protocol(options))
    model = run.load()
    figures = _test(model, _split.parts(every, options), order_of(options), given["k"])
    return figures | _engine.readout_figures(model)


def vectors(run: Trained) -> tuple[list[str], np.ndarray]:
    """The items and their input rows."""
    items = _items(run)
    return items, run.load().embedding.vectors()[: len(items)]


def _items(run: Trained) -> list[str]:
    """The names of the items, of the run's folder."""
    found = document.read(run.folder / NAMES)
    if not document.words(found):
        raise ValueError(f"{run.folder / NAMES}: found no list of names; the file was altered")
    return list(found)


class Use(Recommender):
    """A run of factors: recommends to the users of the ratings that it was trained on, or of others; see Recommender."""

    def __init__(self, run: Trained):
        self._run = run
        items, engine = _items(run), run.load()
        kind, length, decay = order_of(run.options)
        with document.named(run.folder / NAMES):
            super().__init__(engine, items=items, length=length, order=kind, decay=decay)
        self.columns = run.options.get("columns")

    @functools.cached_property
    def histories(self) -> Histories:
        """What each user of the run's ratings had, test items too; read when they are first asked for."""
        path = self._run.options["ratings"]
        try:
            self.remember(path)
        except FileNotFoundError:
            raise ValueError(
                f"{path}: not there, and {self._run.folder} knows its users by it; where it was moved, --ratings FILE, or"
                " model.remember(FILE) in Python"
            ) from None
        return self.histories


def _test(engine: Engine, parts: Split, order: Order, k: int = 10) -> dict[str, Any]:
    """Figures on the users' last items, beside popularity, which as the model knows only what was learned from."""
    ours = ranking.figures(scores(engine, parts.seen, order), parts.seen, parts.test, k)
    popular = ranking.figures(ranking.popularity(parts.train), parts.seen, parts.test, k)
    beside = {f"test {name} of popularity": popular[name] for name in (f"recall@{k}", f"ndcg@{k}")}
    return {f"test {name}": value for name, value in ours.items()} | beside


def _some_users(held: HeldOut) -> HeldOut:
    """What is held out of at most VALIDATING users, evenly taken."""
    users = np.unique(held.user)
    chosen = np.isin(held.user, users[:: -(-len(users) // VALIDATING) or 1])
    return HeldOut(held.user[chosen], held.item[chosen])


def _check(path: str, parts: Split) -> None:
    pairs = {"validates": (parts.train, parts.valid), "tests": (parts.seen, parts.test)}
    _split.check(path, parts, {does: len(ranking.unseen(*pair).user) for does, pair in pairs.items()})
