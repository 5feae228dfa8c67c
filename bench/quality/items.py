"""Next items: every output layer under one sequence model, against counts and published figures, by the command line."""

import functools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.quality import quality
from bench.quality.contender import Contender, Figures, Problem, Run, there
from bench.report.section import drawn
from hybrid import baselines, metrics
from hybrid.feeds.ratings import HeldOut, Histories, Split, histories, load, split
from hybrid.models.factors import some_users
from hybrid.train.job import Watched

COMMAND = (sys.executable, "-m", "hybrid", "train", "factors")
PROTOCOL = "the last item of each user tests, the one before it validates; all items but those taken before are ranked"
JUDGED = Watched("ndcg@10", lowest=False)
EPOCHS = 12
MIXED = " with counts"
LAYERS = {  # rows of the table, with options added to `hybrid train factors --ratings FILE`
    "full softmax": ("--readout", "full"),
    "sampled softmax": ("--readout", "sampled"),
    "gBCE": ("--readout", "sampled", "--loss", "gbce"),
    "clustered head": ("--readout", "head"),
    "clustered tree": ("--readout", "tree"),
    "mixture of trees": ("--readout", "mixture"),
}
DATA: dict[str, tuple[str, list[str] | None]] = {
    "beauty": ("beauty.txt", ["1", "2"]),
    "sports": ("sports.txt", ["1", "2"]),
    "ml-100k": ("ml-100k/u.data", None),
}
ONLY = tuple(DATA)
PUBLISHED = {  # nDCG@10 under the same protocol
    "beauty": {"SASRec, full cross-entropy (arXiv:2309.07602)": 0.0327, "BERT4Rec (arXiv:2309.07602)": 0.0187},
    "sports": {"SASRec, sampled softmax (arXiv:2508.06450)": 0.0314, "eSASRec (arXiv:2508.06450)": 0.0323},
}


def run(arguments: Any) -> int:
    """Trains contenders without a record, then prints a table for each data set; returns the exit code."""
    book = quality.Book(arguments.json, arguments.threads)
    for name, path, columns in _files(arguments):
        problem = of_ratings(arguments, name, path, columns)
        if code := quality.compare_all(name, problem, arguments, book):
            return code
        print(board(name, book.having(data=problem.data)), flush=True)
    return 0


def _files(arguments: Any) -> list[tuple[str, Path, list[str] | None]]:
    if arguments.ratings:
        path = Path(arguments.ratings)
        return [(path.stem, path, None)]
    found = [(name, there(DATA[name][0]), DATA[name][1]) for name in arguments.only or DATA]
    return [(name, path, columns) for name, path, columns in found if path]


def of_ratings(arguments: Any, name: str, path: Path, columns: list[str] | None) -> Problem:
    """Returns the problem of a file of ratings, with its `--columns`, or None if it declares them itself."""
    words = ["--ratings", str(path), "--threads", str(arguments.threads), "--device", "cpu"]
    words += ["--columns", ",".join(columns)] if columns else []
    layers = {row: Contender(functools.partial(_trained, [*words, *more]), {}, {}) for row, more in LAYERS.items()}
    parts = split(histories(load(path, columns)))
    others = {
        row: Contender(functools.partial(_baseline, parts, row), {}, {}, once=True)
        for row in baselines.names(parts.train)
    }
    size = f"{len(parts.train.users):,} users, {len(parts.train.items):,} items"
    return Problem(f"{name}, {size}: {PROTOCOL}", JUDGED, layers | others, (EPOCHS,), ())


def _trained(words: Sequence[str], settings: Mapping[str, Any], seed: int, epochs: float) -> Run:
    """Runs the command line in a separate process, which has its own peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        more = ["--seed", str(seed), "--epochs", str(max(round(epochs), 1)), "--out", f"{folder}/run", "--json"]
        done = subprocess.run([*COMMAND, *words, *more], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
    report = json.loads(done.stdout)
    best = max(report["curve"], key=lambda point: point["valid ndcg@10"])  # the checkpoint that was tested
    return Run(
        lambda: _ten("valid ", best),
        lambda: _ten("test ", report) | {name + MIXED: value for name, value in _ten("test ", report, MIXED).items()},
        epochs=len(report["curve"]),
        seconds=report["seconds"],
        examples=report["examples"],
        parameters=report["parameters"],
        memory=report["peak_memory_bytes"],
    )


def _ten(part: str, figures: Mapping[str, Any], more: str = "") -> Figures:
    names = ("recall@10", "ndcg@10")
    return {name: figures[f"{part}{name}{more}"] for name in names if f"{part}{name}{more}" in figures}


def _baseline(parts: Split, row: str, settings: Mapping[str, Any], seed: int, epochs: float) -> Run:
    """Fits one of hybrid.baselines, with the settings that validate best."""
    start = time.perf_counter()
    scores, some = baselines.tuned(row, parts), some_users(metrics.unseen(parts.train, parts.valid))

    def figures(seen: Histories, held: HeldOut) -> Figures:
        return _ten("", metrics.figures(scores(seen), seen, held, coverage=False))

    return Run(
        lambda: figures(parts.train, some),
        lambda: figures(parts.seen, parts.test),
        epochs=1.0,
        examples=len(parts.train.item),
        parameters=0,
        seconds=time.perf_counter() - start,
    )


def board(name: str, records: Sequence[Mapping[str, Any]]) -> str:
    """Returns a table of the records of a data set, followed by published figures."""
    lines = [
        ["output layer", "recall@10", "nDCG@10", "nDCG@10 mixed with counts", "valid nDCG@10", "seconds", "memory"]
    ]
    for row in dict.fromkeys(one["who"] for one in records):
        seeds = [one for one in records if one["who"] == row]

        def mean(part: str, figure: str, seeds: Sequence[Mapping[str, Any]] = seeds) -> str:
            values = [one[part][figure] for one in seeds if figure in one[part]]
            if not values:
                return "-"
            middle = f"{sum(values) / len(values):.4f}"
            return f"{middle} ({min(values):.4f} to {max(values):.4f})" if len(values) > 1 else middle

        seconds = f"{sum(one['seconds'] for one in seeds) / len(seeds):,.0f}"
        memory = max(one["memory"] or 0 for one in seeds)
        tested = [mean("test", figure) for figure in ("recall@10", "ndcg@10", f"ndcg@10{MIXED}")]
        held = f"{memory / 2**20:,.0f} MiB" if memory else "-"
        lines.append([row, *tested, mean("valid", "ndcg@10"), seconds, held])
    lines += [[row, "-", f"{value:.4f}", *"----"] for row, value in PUBLISHED.get(name, {}).items()]
    trained = "; ".join(f"{row} `{' '.join(more)}`" for row, more in LAYERS.items())
    how = f"Trained by `hybrid train factors --ratings FILE`: {trained}. Mean (lowest to highest) of seeds."
    return "\n".join([f"\n### {records[0]['data']}\n", *drawn(lines), "", how])
