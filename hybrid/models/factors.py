"""Prediction of a user's next item: the rows of the last items -> trunk -> a distribution over items.

By default the last item of each user with at least 3 is for test, the one before it for validation; see --split-by.
Training validates on at most VALIDATING users, evenly spaced. The test runs once at the end, and in `hybrid eval`, on all
users; their histories then include the validation items.
"""

import argparse
import dataclasses
import functools
import hashlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from .. import baselines, console, metrics, trees
from ..engine import Engine
from ..feeds import ratings, splits
from ..feeds.histories import BAG, ORDERS, SEQUENCE, Histories, HistoryFeed, Order
from ..feeds.sequences import SequenceFeed, transition_vectors, turned
from ..feeds.splits import HeldOut, Split
from ..readout import registry as readout_kinds
from ..readout.tree import CLUSTERED
from ..settings import flag, names, option, positive, rising
from ..storage import files
from ..train import store
from ..train.job import Watched
from ..train.options import DATA, FILE
from ..train.runs import Trained
from ..trunk import registry as trunk_kinds
from ..use.recommender import BLOCK, Recommender
from . import _engine
from ._engine import DenseOptions, EngineJob, load

__all__ = ["FILES", "RANKS", "TUNED", "Evaluation", "Options", "Use"]
__all__ += ["complete", "evaluate", "load", "outputs", "prepare", "users", "vectors"]

ITEMS, USERS = FILES = store.FILES["factors"]
RANKS = True
VALIDATING = 10_000  # maximum number of users per validation, so that on large data it takes less time than training
TORCH = importlib.util.find_spec("torch") is not None
ATTENTION, MLP = "attention", "mlp"
PATIENCE = 3  # epochs without a better validation figure before a run stops; the best checkpoint is tested
STARTS = ("drawn", "counts")
LAST, TIME = "last", "time"
SPLITS = {
    LAST: "of every user with at least three items, the last is the test item and the one before it validates",
    TIME: "the latest of all ratings are the test items, those before them validate",
}
COLUMNS = "columns of --ratings: names in the header, or numbers from 1 without a header; empty: no time"

# Defaults for sequences: the best of those tried on Amazon's Beauty (docs/results/measurements.md).
SEQUENCES = {"start": "counts", "tree": CLUSTERED, "epochs": 12, "width": 128, "readout_width": 128}
SEQUENCES |= {"rows_optimiser": "adagrad", "readout_optimiser": "adagrad"}
WINDOWS, TARGETS = 128, 700  # maximum number of a batch; short histories leave most of a window empty
SPARSE, DENSE = {"dropout": 0.5, "history": 20}, {"dropout": 0.2, "history": 50}
OFTEN = 30  # minimum mean of training ratings per item in a dense catalogue
ADAGRAD_RATE = 0.03

# Best settings of a search: full and sampled softmax share theirs, the tree has others.
# Trees and heads start from counts: validation nDCG@10 on MovieLens-100k is .105 and .107; from drawn rows .099 and .099.
_SOFTMAX = {"history": 5, "width": 64, "hidden": 256, "readout_width": 32, "rate": 0.093, "rows_rate": 0.18}
_SOFTMAX |= {"trunk_rate": 0.16}
_TREE = {"tree": "balanced", "history": 3, "width": 32, "hidden": 128, "readout_width": 64}
_TREE |= {"rate": 0.02, "rows_rate": 0.34, "trunk_rate": 0.024, "start": "counts"}
TUNED: dict[str, dict[str, Any]] = dict.fromkeys(("full", "sampled", "neighbours"), _SOFTMAX)
TUNED |= {"tree": _TREE, "head": _SOFTMAX | {"start": "counts"}}


def _split_by(text: str) -> str:
    """Validates --split-by; argparse's error for an unknown kind, or for shares outside [0, 1)."""
    kind, *shares = text.split(":")
    if kind not in SPLITS or len(shares) > (2 if kind != LAST else 0):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected last or time, which takes shares")
    try:
        fit = all(0 <= float(share) < 1 for share in shares)
    except ValueError:
        fit = False
    if not fit:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected shares from 0 to below 1, as in time:0.2:0.1")
    return text


@dataclasses.dataclass(frozen=True)
class Options(DenseOptions):
    """Options of `hybrid train factors`."""

    ratings: str | None = option(None, "MovieLens' u.data or ratings.dat, CSV, TSV or Parquet", needed=True, **DATA)
    columns: list[str] | None = option(None, COLUMNS, group="data", type=names, metavar="USER,ITEM[,TIME[,WEIGHT]]")
    split_by: str = option(
        LAST,
        "test items: the last of each user, or the latest of all, with shares for test and validation (time:0.2:0.1)",
        group="data",
        type=_split_by,
        metavar="|".join(SPLITS) + "[:TEST[:VALID]]",
    )
    trunk: str = option(
        ATTENTION if TORCH else MLP, "the dense part before the readout", registry=trunk_kinds, by=("order", {BAG: MLP})
    )
    order: str = option(
        SEQUENCE if TORCH else BAG,
        "input of the trunk: mean of the items' rows, or a sequence (--trunk attention or torch) that learns at all positions",
        choices=ORDERS,
        by=("trunk", dict.fromkeys((MLP, "torch"), BAG)),
    )
    history: int = option(5, "maximum number of items of a user's history", type=positive)
    start: str = option(
        "drawn",
        "initial rows: random, or from counts of item-to-item transitions (needed by --tree clustered)",
        choices=STARTS,
    )
    tied: bool = option(False, "share one table between input rows and a full or sampled readout")
    readout: str = option("sampled", "the output layer", registry=readout_kinds)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Options of `hybrid eval` on a run of factors."""

    k: list[int] | None = option(
        None,
        "cut-offs of recall, nDCG, MRR, MAP and coverage, in rising order (default: 10)",
        type=rising,
        metavar="K[,K]",
    )
    ratings: str | None = option(None, "the run's ratings, if the file was moved", **FILE)


def complete(chosen: dict[str, Any], explicit: dict[str, Any]) -> dict[str, Any]:
    """Returns the options with dependent ones filled in; ValueError for contradictory ones."""
    if explicit.get("patience") is None:
        chosen = chosen | {"patience": PATIENCE}
    if chosen["order"] == SEQUENCE:
        chosen = _complete_sequence(chosen, explicit)
    return _engine.complete(_complete_tied(chosen, explicit) if chosen["tied"] else chosen, explicit)


def _complete_sequence(chosen: dict[str, Any], explicit: Mapping[str, Any]) -> dict[str, Any]:
    if chosen["trunk"] == "mlp":
        raise ValueError("--order sequence: needs a trunk that reads sequences, --trunk attention or torch, found mlp")
    usual = SEQUENCES | dict.fromkeys([*SPARSE, "batch"])  # None: chosen from the data, see _by_data
    chosen |= {name: value for name, value in usual.items() if name in chosen and explicit.get(name) is None}
    for rate, optimiser in (("rows_rate", "rows_optimiser"), ("rate", "readout_optimiser")):
        if explicit.get(rate) is None and chosen[optimiser] == "adagrad":
            chosen[rate] = ADAGRAD_RATE
    return chosen


def _by_data(options: Mapping[str, Any], train: Histories) -> tuple[dict[str, Any], str]:
    """Returns unset sequence options, chosen by the data, and a line on them; ValueError for a batch shorter than a window."""
    often = len(train.item) / len(train.items)
    kind, usual = ("dense", DENSE) if often >= OFTEN else ("sparse", SPARSE)
    found = {name: value for name, value in usual.items() if name in options and options[name] is None}
    line = " ".join([f"{often:.0f} ratings an item, {kind}:", *(f"{flag(name)} {found[name]}" for name in found)])
    history = found.get("history", options["history"])
    if options["batch"] is None:
        targets = np.maximum(np.diff(train.at) - 1, 0)
        windows = -(-targets // history)
        found["batch"] = history * min(WINDOWS, max(1, round(TARGETS * windows.sum() / max(targets.sum(), 1))))
    elif options["batch"] < history:
        raise ValueError(f"--batch: found {options['batch']}, expected at least {history}, one sequence (--history)")
    return found, line


def _complete_tied(chosen: dict[str, Any], explicit: Mapping[str, Any]) -> dict[str, Any]:
    if chosen["readout"] not in ("full", "sampled"):
        raise ValueError(f"--tied: not used by --readout {chosen['readout']}, expected full or sampled; leave it out")
    for name, only in (("micro_batches", 1), ("readout_width", chosen["width"])):
        if explicit.get(name) not in (None, only):
            raise ValueError(f"{flag(name)}: found {explicit[name]}, expected {only} with --tied")
    return chosen | {"micro_batches": 1, "readout_width": chosen["width"]}


class Factors(EngineJob):
    """The training on histories without validation and test items; validates nDCG@10."""

    evaluations = 1
    rows_are_classes = True

    def __init__(self, options: dict[str, Any]):
        every = ratings.histories(ratings.load(options["ratings"], options["columns"]))
        if len(every.items) < 2:
            raise ValueError(f"{options['ratings']}: found 1 item, expected at least 2 different ones")
        self._parts = parts = _split(every, options)
        new = metrics.unseen(parts.train, parts.valid)
        _check(options["ratings"], parts, new)
        self._repeats, self._new = len(parts.valid.user) - len(new.user), some_users(new)
        self._by_data, self._line = _by_data(options, parts.train) if options["order"] == SEQUENCE else ({}, "")
        options = options | self._by_data
        self._order, self._counts = _order(options), cast(baselines.Counts | None, None)
        feed, data = _feed(options, self._order, parts.train), _digest(every, options)
        form = self._order.embedding | {"tied": options["tied"]}
        super().__init__(options, feed, watched=Watched("valid ndcg@10", lowest=False), data=data, **form)

    def make(self) -> Engine:
        """Returns the untrained engine; with --start counts rows, a clustered tree and classes begin by item transitions."""
        engine = super().make()
        if self.options["start"] != "counts":
            return engine
        train, embedding, readout = self._parts.train, engine.embedding, cast(Any, engine.readout)
        rows = embedding.parameters()["table"][: len(train.items)]
        rows[:] = turned(rows, transition_vectors(train, embedding.width, self.options["seed"]))
        embedding.send()
        if self.options.get("tree") == CLUSTERED:
            readout.regrow(trees.clustered(rows, readout.counts), counts=readout.counts)
        if readout.width == embedding.width and not engine.tied and hasattr(readout, "begin_with"):
            readout.begin_with(rows)
        return engine

    def chosen(self, model: Engine) -> dict[str, Any]:
        """Returns the options chosen from the data."""
        return self._by_data

    def begin(self, model: Engine, facts: dict[str, Any]) -> None:
        """Prints the evaluation protocol, and options chosen from the data."""
        super().begin(model, facts)
        console.note(_protocol(self.options))
        if self._by_data.keys() & SPARSE.keys():
            console.note(self._line)
        elif not TORCH and self.options["order"] == BAG:
            console.note("no PyTorch: an MLP on the mean of the last items; pip install torch for a sequence model")

    def keep(self, folder: Path) -> None:
        """Writes the names of items and users."""
        store.write_json(folder / ITEMS, self._parts.train.items)
        store.write_json(folder / USERS, self._parts.train.users)

    def validate(self, model: Engine) -> dict[str, float]:
        """Returns the figures on validation items that are new to their users."""
        train = self._parts.train
        ranks = metrics.ranks(scores(model, train, self._order), train, self._new)
        return {f"valid {name}": value for name, value in metrics.measures(ranks, user=self._new.user).items()}

    def final(self, model: Engine) -> dict[str, Any]:
        """Returns figures on test items, alone and mixed with counts, and the number of users that validated."""
        counted = {"valid users": len(np.unique(self._new.user)), "valid repeats": self._repeats}
        self._counts = _counts(model, self._parts, self._order)
        return counted | _test(model, self._parts, self._order, self._counts, coverage=False)

    def draw(self, folder: Path, report: dict[str, Any], model: Engine) -> None:
        """Writes the plots, and the counts that recommendations are mixed with."""
        super().draw(folder, report, model)
        if self._counts is not None:
            self._counts.save(folder / store.COUNTS)


prepare = Factors


def _order(options: Mapping[str, Any]) -> Order:
    return Order(options["order"], options["history"])


def _feed(options: Mapping[str, Any], order: Order, train: Histories) -> HistoryFeed | SequenceFeed:
    """Returns the training feed; padding of sequences has no target for a readout on the CPU, which then skips it."""
    sizes = {"length": order.length, "epochs": options["epochs"], "seed": options["seed"]}
    if order.kind != SEQUENCE:
        return HistoryFeed(train, batch=options["batch"], **sizes)
    here = options["readout_device"] == "cpu"
    return SequenceFeed(train, windows=options["batch"] // order.length, start=False, unlabelled=here, **sizes)


def _kind(options: Mapping[str, Any]) -> str:
    return str(options["split_by"].partition(":")[0])


def _split(every: Histories, options: Mapping[str, Any]) -> Split:
    kind, *shares_given = options["split_by"].split(":")
    shares: dict[str, Any] = dict(zip(("test", "valid"), map(float, shares_given), strict=False))
    if kind == LAST:
        return splits.split(every)
    return splits.split_by_time(every, **shares)


def _protocol(options: Mapping[str, Any]) -> str:
    """Returns the evaluation protocol in words."""
    return f"{SPLITS[_kind(options)]}; all items new to a user are ranked; equal times in the order of the file"


def _digest(every: Histories, options: Mapping[str, Any]) -> str:
    """Returns a digest of all that the split depends on."""
    if _kind(options) != TIME or every.time is None:
        return every.sha256
    return hashlib.sha256(every.sha256.encode() + every.time.tobytes()).hexdigest()


def _check(path: str, parts: Split, new: HeldOut) -> None:
    """Raises ValueError for ratings that leave nothing to validate or test; new: validation items new to their users."""
    users = len(parts.train.users)
    if not len(parts.test.user) and not any(np.diff(parts.seen.at) >= splits.LEAST):
        raise ValueError(
            f"{path}: none of {users} users has 3 items; expected some: the last item is for the test, one for validation"
        )
    tests = metrics.unseen(parts.seen, parts.test)
    for does, held, unseen in (("validates", parts.valid, new), ("tests", parts.test, tests)):
        if not len(held.user):
            raise ValueError(f"{path}: no item {does}; expected some: give --split-by larger shares")
        if not len(unseen.user):
            raise ValueError(f"{path}: every item that {does} was seen before by its user; expected new items")


def some_users(held: HeldOut) -> HeldOut:
    """Returns the held-out items of at most VALIDATING users, evenly spaced."""
    users = np.unique(held.user)
    chosen = np.isin(held.user, users[:: -(-len(users) // VALIDATING) or 1])
    return HeldOut(held.user[chosen], held.item[chosen])


def scores(engine: Engine, seen: Histories, order: Order) -> metrics.Scores:
    """Returns a function from users to the log-probability of every item as their next."""
    return lambda users: engine.scores(**order.question(seen, users))


def _counts(engine: Engine, parts: Split, order: Order) -> baselines.Counts | None:
    """Returns counts with their share in a mixture with the engine; None for too many ratings."""
    if "counts" not in baselines.names(parts.train):
        return None
    return baselines.shared(baselines.counts(parts), lambda seen: scores(engine, seen, order), parts)


def _test(
    engine: Engine, parts: Split, order: Order, counts: baselines.Counts | None, k: Sequence[int] = (10,), **more: Any
) -> dict[str, Any]:
    """Returns test figures of the model, its mixture with counts, and baselines, which also learn from training items only."""
    model = scores(engine, parts.seen, order)
    ours = metrics.figures(model, parts.seen, parts.test, k, **more)
    others = {f"of {name}": baselines.tuned(name, parts) for name in baselines.names(parts.train) if name != "counts"}
    if counts is not None:
        others |= {"of counts": counts.scores, "with counts": lambda seen: counts.mixed(model, seen)}
        ours["share of counts"] = counts.share
    for who, made in others.items():
        theirs = metrics.figures(made(parts.seen), parts.seen, parts.test, k, coverage=False)
        ours |= {f"{name} {who}": theirs[name] for size in k for name in (f"recall@{size}", f"ndcg@{size}")}
    return {f"test {name}": value for name, value in ours.items()}


def evaluate(run: Trained, given: dict[str, Any]) -> dict[str, Any]:
    """Returns figures at every K on the test items, with those of baselines; ValueError for missing or other ratings."""
    folder, options = run.folder, run.options
    path = given["ratings"] or options["ratings"]
    try:
        every = ratings.histories(ratings.load(path, options["columns"]))
    except FileNotFoundError:
        raise ValueError(
            f"{path}: not there, and {folder} was trained on it; if it was moved: hybrid eval {folder} --ratings FILE"
        ) from None
    digest, expected = _digest(every, options)[:12], (options.get("data") or "none kept")[:12]
    if digest != expected:
        raise ValueError(
            f"{path}: not the ratings that {folder} was trained on (digest {digest}, expected {expected}); give those, or"
            " train a new run"
        )
    console.note(_protocol(options))
    model, parts, order = run.load(), _split(every, options), _order(options)
    counts = _kept(run, every.items) or _counts(model, parts, order)
    figures = _test(model, parts, order, counts, given["k"] or (10,))
    return figures | _engine.readout_figures(model)


def _kept(run: Trained, items: Sequence[str]) -> baselines.Counts | None:
    """Returns the counts of a finished run; None if it has none."""
    path = run.folder / store.COUNTS
    return baselines.Counts.load(path, len(items)) if path.exists() else None


def vectors(run: Trained) -> tuple[list[str], np.ndarray]:
    """Returns the items and their input rows."""
    items = _items(run)
    return items, run.load().embedding.vectors()[: len(items)]


def outputs(run: Trained) -> tuple[list[str], np.ndarray]:
    """Returns the items and their class vectors, whose products with the vectors of `users` rank them."""
    return _engine.outputs(run, _items(run))


def users(run: Trained) -> tuple[list[str], np.ndarray]:
    """Returns the users of the run's ratings and the hidden vectors of their histories, test items included."""
    use = Use(run)
    every = np.arange(len(use.users), dtype=np.int32)
    parts = (every[first : first + BLOCK] for first in range(0, len(every), BLOCK))
    asked = (use.order.question(use.histories, part) for part in parts)
    return use.users, _engine.hidden_vectors(use.engine, asked)


def _items(run: Trained) -> list[str]:
    """Returns the item names in the run's folder; ValueError if the file was altered."""
    items = files.read(run.folder / ITEMS)
    if not files.words(items):
        raise ValueError(f"{run.folder / ITEMS}: found no list of names; the file was altered")
    return list(items)


class Use(Recommender):
    """A run of factors in use: recommends to the users of its training ratings, or of others; see Recommender."""

    def __init__(self, run: Trained):
        self._run = run
        items, engine = _items(run), run.load()
        order = _order(run.options)
        with files.named(run.folder / ITEMS):
            super().__init__(engine, items=items, length=order.length, order=order.kind)
        self.columns, self.counts = run.options["columns"], _kept(run, items)

    @functools.cached_property
    def histories(self) -> Histories:
        """The histories of the users of the run's ratings, test items included; read on first use."""
        path = self._run.options["ratings"]
        try:
            self.remember(path)
        except FileNotFoundError:
            raise ValueError(
                f"{path}: not there, and {self._run.folder} knows its users by it; --ratings FILE, or model.remember(FILE)"
            ) from None
        return self.histories
