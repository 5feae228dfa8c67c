"""Next items that contend: orders of a history under every readout, and models without a net."""

import functools
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.harness.measure import peer
from bench.quality.contender import (
    ADAGRAD,
    TRUNK,
    Among,
    By,
    Contender,
    Figures,
    Log,
    Problem,
    Run,
    Space,
    contender,
    sparse,
    there,
)
from hybrid import baselines, metrics
from hybrid.engine import Engine
from hybrid.feeds.ratings import HeldOut, Histories, Split, histories, load, split
from hybrid.models import factors
from hybrid.train.job import Watched

PROTOCOL = "last item tests, the one before validates, items had are left out, all others ranked"
JUDGED = Watched("ndcg@10", lowest=False)
READOUTS: dict[str, dict[str, Any]] = {
    "full": {"readout": "full"},
    "sampled 1024": {"readout": "sampled", "negatives": 1024},
    "head": {"readout": "head"},
    "tree balanced": {"readout": "tree", "tree": "balanced"},
    "tree huffman": {"readout": "tree", "tree": "huffman"},
}
CLUSTERED: dict[str, dict[str, Any]] = {"tree clustered": {"readout": "tree", "tree": "clustered"}}
TIED = {f"{name} tied": READOUTS[name] | {"tied": True} for name in ("full", "sampled 1024")}
ORDERS: dict[str, dict[str, Any]] = {
    "bag": {},
    "decay": {"order": "decay", "history": 30},
    "concatenated": {"order": "concatenated", "history": 3},
    "sequence": {"order": "sequence", "trunk": "attention"},
}
ATTENTION: Space = {
    "trunk_rate": Log(3e-4, 3e-3),
    "dropout": Among((0.1, 0.2, 0.3, 0.5)),
    "rows_optimiser": Among(("row-adagrad", "adagrad")),
    "rows_rate": By("rows_optimiser", ADAGRAD),
    "readout_optimiser": Among(("row-adagrad", "adagrad")),
    "rate": By("readout_optimiser", ADAGRAD),
}


class Job(factors.Factors):
    """Its validation figures by their own names."""

    def validate(self, model: Engine) -> Figures:
        """recall@10 and nDCG@10 of the validation items."""
        return {name.removeprefix("valid "): value for name, value in super().validate(model).items()}

    def tested(self, model: Engine) -> Figures:
        """The same of the test items."""
        parts = self._parts
        return _figures(factors.scores(model, parts.seen, self._order), parts.seen, parts.test)


def of_ratings(
    arguments: Any, name: str, path: Path, columns: list[str] | None, lengths: Iterable[float], orders: Iterable[str]
) -> Problem:
    """Of a file of ratings.

    columns  of the file; None: it tells them itself
    lengths  epochs at which all are compared
    orders   of ORDERS, those that contend
    """
    data = {"ratings": str(path), "columns": columns, "device": "cpu", "threads": arguments.threads}
    found: dict[str, Contender] = {}
    for order in orders:
        if ORDERS[order].get("trunk") == "attention" and not peer("torch"):
            continue
        readouts = READOUTS | (CLUSTERED | TIED if order == "sequence" else {})
        for readout, options in readouts.items():
            found[f"{order} {readout}"] = _learning(data | ORDERS[order] | options)
    parts = split(histories(load(path, columns)))
    for who in baselines.names(parts.train):
        found[who] = Contender(functools.partial(_baseline, parts, who), {}, {}, once=True)
    return Problem(f"{name}: {PROTOCOL}", JUDGED, found, tuple(lengths))


def _learning(options: Mapping[str, Any]) -> Contender:
    space = ATTENTION if options.get("trunk") == "attention" else sparse(options["readout"], Log(0.02, 0.5)) | TRUNK
    return contender("factors", options, space, Job, Job.tested)


def _baseline(parts: Split, who: str, settings: Mapping[str, Any], seed: int, epochs: float) -> Run:
    """One of hybrid.baselines, with the settings that validate best."""
    start = time.perf_counter()
    scores, valid = baselines.tuned(who, parts), parts.valid
    step = -(-len(valid.user) // factors.VALIDATING)  # users at most, evenly taken, as while models learn
    some = HeldOut(valid.user[::step], valid.item[::step])
    return Run(
        lambda: _figures(scores(parts.train), parts.train, some),
        lambda: _figures(scores(parts.seen), parts.seen, parts.test),
        epochs=1.0,
        examples=len(parts.train.item),
        parameters=0,
        seconds=time.perf_counter() - start,
    )


def _figures(found: metrics.Scores, seen: Histories, held: HeldOut) -> Figures:
    given = metrics.figures(found, seen, held, coverage=False)
    return {name: given[name] for name in ("recall@10", "ndcg@10")}


# The next item of Amazon's Beauty, 40,226 users and 54,542 items, as `user item` a line, in the order of time.


def make_beauty(arguments: Any) -> Problem | None:
    """Weighted bags and sequences."""
    path = there("beauty.txt")
    return (
        None if path is None else of_ratings(arguments, "Beauty", path, ["1", "2"], (5, 10, 20), ("decay", "sequence"))
    )


# The next item of MovieLens-100k: 943 users, 1,682 items; validation and test are small, so seeds differ much.


def make_items(arguments: Any) -> Problem | None:
    """Every order of a history."""
    path = there("ml-100k/u.data")
    return None if path is None else of_ratings(arguments, "ml-100k", path, None, (5, 10, 20), ORDERS)
