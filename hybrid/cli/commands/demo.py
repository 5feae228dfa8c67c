"""The command `hybrid demo`: one language model with full softmax, tree and sampled softmax, otherwise identical."""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ... import console
from ...engine import Engine
from ...feeds.text import Text, documentation, read
from ...models import language
from ...schedule import trace
from ...settings import positive, whole
from ...train import plots, runs, store
from ...train.loop import LoopOptions, train
from ...train.options import DEVICE, THREADS, choose
from ...train.progress import CLOCKS
from ...train.stop import Stopped
from ...use.language import LanguageModel
from ..arguments import OVERWRITE, Parser

READOUTS = {"full": "full softmax", "tree": "Huffman tree", "sampled": "sampled softmax"}
SHOWN = 3  # number of contexts continued


def add(demo: Parser) -> None:
    """Adds the options to the command's parser."""
    demo.add_argument("--text", metavar="FILE", help="train on this text instead of Python's own documentation")
    demo.add_argument("--epochs", type=positive, default=4, help="passes over the text (default: 4)")
    demo.add_argument("--out", metavar="DIR", default="runs/demo", help="folder of the results (default: runs/demo)")
    demo.add_overwrite(OVERWRITE)
    demo.add_argument("--device", help=DEVICE)
    demo.add_argument("--threads", type=positive, help=THREADS)
    demo.add_argument("--seed", type=whole, default=0, help="random seed (default: 0)")
    demo.add_argument("--json", action="store_true", help="print the report as JSON")


def run(given: argparse.Namespace) -> int:
    """Trains the models and prints the report."""
    folder = Path(given.out)
    runs.announce({"kind": "language", "device": given.device})
    try:
        with store.begun(folder, given.overwrite):
            settings = {name: getattr(given, name) for name in ("epochs", "device", "threads", "seed")}
            report = compare(read(given.text) if given.text else documentation(), folder, settings)
    except Stopped as stopped:
        console.say("stopped; a demo cannot be resumed, start it again")
        return 128 + stopped.signal
    print(json.dumps(report, indent=1) if given.json else text(report))
    return 0


def compare(source: Text, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Trains each on 80 % of the text, 10 % for the curves and 10 % for the test; writes and returns the report."""
    seed = settings["seed"]
    parts = source.split(valid=0.1, test=0.1, seed=seed)
    reports, engines = {}, {}
    for readout, label in READOUTS.items():
        job = language.Language(choose("language", readout=readout, text=source.source, **settings), *parts)
        job.watched = None  # keeps no best model
        next(job.make().run(job.feed))  # compiles the kernels before timing
        engines[readout] = job.make()
        with tempfile.TemporaryDirectory() as saved:  # without options and vocabulary, nothing could go on from there
            reports[readout] = train(job, Path(saved), engines[readout], options=LoopOptions(f"{label:>15}"))
    tree = engines["tree"]
    model = LanguageModel(tree, job.vocabulary)
    level = max(report["perplexity"] for report in reports.values())
    report = {
        "text": source.source,
        "tokens": {name: sum(map(len, part)) for name, part in parts._asdict().items()},
        "words": len(model.vocabulary),
        "epochs": settings["epochs"],
        "level": level,
        "to_level": {readout: _reached(reports[readout]["curve"], level) for readout in READOUTS},
        "runs": reports,
        "next_words": _next_words(model, job.feed, seed),
        "files": _files(folder, reports, tree),
    }
    store.write_json(folder / store.REPORT, report)
    return report


def _reached(curve: list[dict[str, Any]], level: float) -> dict[str, float]:
    """Returns the training times, by either clock, until perplexity fell to `level`, interpolated linearly."""
    before = curve[0]
    for point in curve:
        if point["perplexity"] <= level:
            fall = before["perplexity"] - point["perplexity"]
            share = (before["perplexity"] - level) / fall if fall > 0 else 1.0
            return {clock: before[clock] + share * (point[clock] - before[clock]) for clock in CLOCKS}
        before = point
    return {clock: before[clock] for clock in CLOCKS}


def _next_words(model: LanguageModel, feed: Any, seed: int) -> list[dict[str, Any]]:
    """Returns the most likely next words after a few beginnings of paragraphs, of letters if possible, by exact tree search."""
    corpus, vocabulary = feed.corpus, model.vocabulary
    rng = np.random.default_rng([seed, 3])
    long = np.flatnonzero(np.diff(corpus.at) > 2 * feed.context)
    begins = [vocabulary.decode(corpus.ids[at : at + feed.context]) for at in corpus.at[rng.permutation(long)]]
    words = sorted(begins, key=lambda context: not all(word.isalpha() for word in context))[:SHOWN]
    k = min(5, len(vocabulary))
    return [{"context": one, "next": [[word, round(p, 4)] for word, p in model.next(one, k)]} for one in words]


def _files(folder: Path, reports: dict[str, Any], engine: Engine) -> dict[str, str]:
    """Draws the curves and writes the trace of the tree; returns all output paths."""
    files = {"curve": "curve.png", "trace": "timeline.json", "report": "report.json"}
    labelled = {READOUTS[readout]: report["curve"] for readout, report in reports.items()}
    plots.curve(folder / files["curve"], labelled, "perplexity")
    engine.trace.write_chrome(folder / files["trace"])
    return {name: str(folder / file) for name, file in files.items()}


def text(report: dict[str, Any]) -> str:
    """Returns the report as text."""
    level, tokens = f"{report['level']:.1f}", report["tokens"]
    lines = [
        f"\n{report['text']}: {tokens['train']:,} tokens to learn from, {tokens['valid']:,} to validate, "
        f"{tokens['test']:,} to test; {report['words']:,} words; {report['epochs']} epochs\n",
        f"{'':<16}{'examples/s':>12}{'seconds':>9}{'CPU s':>13}{'perplexity':>12}{'test':>8}"
        f"{'s to ' + level:>12}{'CPU s':>13}",
    ]
    for readout, label in READOUTS.items():
        run, reached = report["runs"][readout], report["to_level"][readout]
        lines.append(
            f"{label:<16}{run['examples_per_second']:>12,.0f}{run['seconds']:>9.1f}{run['processor_seconds']:>13.1f}"
            f"{run['perplexity']:>12.1f}{run['test_perplexity']:>8.1f}"
            f"{reached['seconds']:>12.1f}{reached['processor_seconds']:>13.1f}"
        )
    lines += ["", f"Cores: {report['runs']['tree']['pace']}"]
    lines += [f"  {label:<15}  {trace.line(report['runs'][readout]['stages'])}" for readout, label in READOUTS.items()]
    lines.append("\nMost likely next words, by exact search in the tree:")
    for found in report["next_words"]:
        words = ", ".join(f"{word} {share:.0%}" for word, share in found["next"])
        lines.append(f"  {' '.join(found['context'])} ... {words}")
    return "\n".join(lines + [""] + [f"{name:<9} {path}" for name, path in report["files"].items()])
