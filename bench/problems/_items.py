"""Next items that contend: orders of a history under every readout, and what counts or factorises."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import als, counted
from bench.contender import Contender, Figures, Problem, Run
from bench.draws import ADAGRAD, TRUNK, Among, By, Log, Space, drawn, sparse
from bench.peers import peer
from bench.training import Peak, contender
from hybrid.engine import Engine
from hybrid.feeds.ratings import HeldOut, Histories, Split, histories, load, split
from hybrid.judge import ranking
from hybrid.models import factors
from hybrid.train.job import Watched

PROTOCOL = "last item tests, the one before validates, items had are left out, all others ranked"
COUNTS_TRIED, ALS_TRIED = 12, 4  # settings of what is counted, and of what is solved, which takes a minute on Beauty
JUDGED = Watched("ndcg@10", lowest=False)
READOUTS: dict[str, dict[str, Any]] = {
    "full": {"readout": "full"},
    "sampled 1024": {"readout": "sampled", "negatives": 1024},
    "head": {"readout": "head"},
    "tree balanced": {"readout": "tree", "tree": "balanced"},
    "tree huffman": {"readout": "tree", "tree": "huffman"},
}
CLUSTERED: dict[str, dict[str, Any]] = {"tree clustered": {"readout": "tree", "tree": "clustered"}}
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
COUNTED: Space = {
    "nearness": Among((0.5, 0.8, 0.9)),
    "popularity": Among((0.0, 0.1, 0.3)),
    "source": Among((0.0, 0.3, 0.5)),
    "age": Among((0.5, 0.8, 0.9)),
}
ALS: Space = {"width": Among((32, 64)), "weight": Log(0.5, 20), "ridge": Log(0.01, 10), "passes": Among((5, 10))}


class Job(factors.Factors):
    """Its validation figures by their own names."""

    def validate(self, model: Engine) -> Figures:
        """recall@10 and nDCG@10 of the validation items."""
        return {name.removeprefix("valid "): value for name, value in super().validate(model).items()}


def problem(
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
        readouts = READOUTS | (CLUSTERED if order == "sequence" else {})
        for readout, options in readouts.items():
            found[f"{order} {readout}"] = _learning(data | ORDERS[order] | options)
    parts = split(histories(load(path, columns)))
    return Problem(f"{name}: {PROTOCOL}", JUDGED, found | _others(parts), tuple(lengths))


def _learning(options: Mapping[str, Any]) -> Contender:
    space = ATTENTION if options.get("trunk") == "attention" else sparse(options["readout"], Log(0.02, 0.5)) | TRUNK
    return contender("factors", options, space, Job, _tested)


def _tested(job: Job, model: Engine) -> Figures:
    figures = {name.removeprefix("test "): value for name, value in job.final(model).items()}
    return {name: figures[name] for name in ("recall@10", "ndcg@10")}


def _others(parts: Split) -> dict[str, Contender]:
    """Those that are counted or solved."""
    return {
        "count table": _other(parts, counted.scores, [counted.Counts()]),
        "count table searched": _other(parts, counted.scores, _forms(counted.Counts, COUNTED, COUNTS_TRIED)),
        "ALS": _other(parts, als.scores, _forms(als.Setting, ALS, ALS_TRIED)),
        "popularity": _other(parts, lambda train, seen, form: ranking.popularity(train), [None]),
    }


def _forms(kind: Callable[..., Any], space: Space, tries: int) -> list[Any]:
    """The default of a kind of settings, and others drawn."""
    return [kind(), *(kind(**drawn(space, number)) for number in range(1, tries))]


def _other(parts: Split, scores: Callable[..., ranking.Scores], forms: Sequence[Any]) -> Contender:
    """scores(train, seen, form) -> Scores; which form, validation data say, and its search is on the clock."""

    def train(settings: Mapping[str, Any], seed: int, epochs: float) -> Run:
        peak, start = Peak(), time.perf_counter()
        tried = [scores(parts.train, parts.train, form) for form in forms]
        held = _some(parts.valid)
        figures = [_figures(found, parts.train, held) for found in tried] if len(tried) > 1 else [{JUDGED.name: 0.0}]
        best = max(range(len(tried)), key=lambda number: figures[number][JUDGED.name])
        seconds, memory = time.perf_counter() - start, peak.bytes()
        print(f"  {forms[best]}", flush=True)
        return Run(
            lambda: _figures(tried[best], parts.train, held),
            lambda: _figures(scores(parts.train, parts.seen, forms[best]), parts.seen, parts.test),
            epochs=1.0,
            examples=len(parts.train.item),
            parameters=0,
            seconds=seconds,
            memory=memory,
        )

    return Contender(train, {}, {}, once=True)


def _some(held: HeldOut) -> HeldOut:
    """Of 10,000 users at most, evenly taken, as while models learn."""
    step = -(-len(held.user) // factors.VALIDATING)
    return HeldOut(held.user[::step], held.item[::step])


def _figures(found: ranking.Scores, seen: Histories, held: HeldOut) -> Figures:
    given = ranking.figures(found, seen, held)
    return {name: given[name] for name in ("recall@10", "ndcg@10")}
