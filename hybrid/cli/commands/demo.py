"""The command `hybrid demo`: one language model with full softmax, tree and sampled softmax, otherwise identical."""

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ... import console
from ...engine import Engine
from ...feeds.text import Text, documentation, read
from ...models import language
from ...schedule import trace
from ...settings import positive, whole
from ...storage import checkpoint, lock
from ...train import plots, runs, store
from ...train.loop import LoopOptions, train
from ...train.options import DEVICE, THREADS, choose
from ...train.progress import CLOCKS
from ...train.stop import Stopped
from ...use.language import LanguageModel
from ...use.vectors import Vectors
from ..arguments import OVERWRITE, Parser

READOUTS = {"full": "full softmax", "tree": "Huffman tree", "sampled": "sampled softmax"}
SHOWN = 3  # number of contexts continued, and of words with neighbours
NEIGHBOURS = 10


def add(demo: Parser) -> None:
    """Adds the options to the command's parser."""
    demo.add_argument("--text", metavar="FILE", help="train on this text instead of Python's own documentation")
    demo.add_argument("--epochs", type=positive, default=4, help="passes over the text (default: 4)")
    demo.add_argument("--out", metavar="DIR", default="runs/demo", help="where results go (default: runs/demo)")
    demo.add_overwrite(OVERWRITE)
    demo.add_argument("--device", help=DEVICE)
    demo.add_argument("--threads", type=positive, help=THREADS)
    demo.add_argument("--seed", type=whole, default=0, help="seed of everything drawn (default: 0)")
    demo.add_argument("--json", action="store_true", help="print the report as JSON")


def run(given: argparse.Namespace) -> int:
    """Trains the models and prints the report."""
    folder = Path(given.out)
    runs.announce({"kind": "language", "device": given.device})
    try:
        with begun(folder, given.overwrite):
            settings = {name: getattr(given, name) for name in ("epochs", "device", "threads", "seed")}
            report = compare(read(given.text) if given.text else documentation(), folder, settings)
    except Stopped as stopped:
        console.say("stopped; a demo does not go on, begin it again")
        return 128 + stopped.signal
    print(json.dumps(report, indent=1) if given.json else text(report))
    return 0


@contextlib.contextmanager
def begun(folder: Path, overwrite: bool) -> Iterator[None]:
    """A context that locks the folders of a demo and its models, and replaces an earlier demo in them.
    With `overwrite` it also replaces runs; ValueError for other content, as from `store.begun`."""
    places = [folder / readout for readout in READOUTS]
    runs = [place for place in places if (place / store.RUN).exists()]
    again = overwrite or (folder / lock.LOCK).exists()
    for place in runs if again else places:
        store.refuse_taken(place, overwrite)
    with contextlib.ExitStack() as stack:
        stack.enter_context(store.begun(folder, overwrite))
        for place in places:
            if place not in runs:
                checkpoint.erase(place / checkpoint.CHECKPOINT)
            stack.enter_context(store.begun(place, overwrite))
        yield


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
        reports[readout] = train(job, folder / readout, engines[readout], options=LoopOptions(f"{label:>15}"))
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
        "neighbours": _neighbours(model.vectors),
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


def _neighbours(vectors: Vectors) -> dict[str, Any]:
    """Returns nearest words of a few frequent ones; with annoy installed, also by annoy, and its recall."""
    from cpu.search.libraries import there

    k, many = min(NEIGHBOURS, len(vectors)), vectors.words[:1000]  # the most frequent words
    exact = vectors.neighbours(many, k)
    searches, recall = {"exact": exact}, {}
    if there("annoy"):
        annoy = vectors.neighbours(many, k, annoy=True)
        both = [len(set(a) & set(b)) / len(b) for a, b in zip(annoy.names, exact.names, strict=True)]
        searches, recall = {"annoy": annoy, "exact": exact}, {"recall": sum(both) / len(both)}
    shown = [at for at, word in enumerate(many) if word.isalpha() and len(word) > 3]
    words = [
        {"word": many[at]} | {name: answer.names[at] for name, answer in searches.items()}
        for at in shown[:: max(len(shown) // SHOWN, 1)][:SHOWN]
    ]
    return {"k": k, "queries": len(many), "words": words} | recall


def _files(folder: Path, reports: dict[str, Any], engine: Engine) -> dict[str, str]:
    """Draws the pictures; returns all output paths. Runs that end during the overlap measurement have no timeline."""
    files = {"curve": "curve.png", "report": "report.json"}
    if engine.trace.recent:
        files |= {"timeline": "timeline.png", "trace": "timeline.json"}
    paths = {name: str(folder / file) for name, file in files.items()}
    labelled = {READOUTS[readout]: report["curve"] for readout, report in reports.items()}
    plots.curve(Path(paths["curve"]), labelled, "perplexity")
    plots.last_ticks(folder, engine.trace)
    return paths


def _verdict(report: dict[str, Any]) -> list[str]:
    """Returns which model reached the level first, by either clock, and which ended lowest."""
    reached, runs = report["to_level"], report["runs"]
    lines = [f"Validation perplexity {report['level']:.1f} is the highest of the three at the end. It was reached"]
    for clock, unit in zip(CLOCKS, ("seconds", "CPU seconds"), strict=True):
        order = sorted(READOUTS, key=lambda readout: reached[readout][clock])
        first, *later = (f"{READOUTS[readout]} after {reached[readout][clock]:.1f}" for readout in order)
        lines.append(f"  in {unit}: first by {first}, then {', '.join(later)}")
    best = min(READOUTS, key=lambda readout: runs[readout]["test_perplexity"])
    lowest = runs[best]["test_perplexity"]
    return [*lines, f"On the test text {READOUTS[best]} is the best at the end, with a perplexity of {lowest:.1f}."]


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
    lines += ["", *_verdict(report), "", f"Cores: {report['runs']['tree']['pace']}"]
    lines += [f"  {label:<15}  {trace.line(report['runs'][readout]['stages'])}" for readout, label in READOUTS.items()]
    lines.append("\nMost likely next words, by exact search in the tree:")
    for found in report["next_words"]:
        words = ", ".join(f"{word} {share:.0%}" for word, share in found["next"])
        lines.append(f"  {' '.join(found['context'])} ... {words}")
    near = report["neighbours"]
    how = "by exact search, since annoy is not installed"
    if "recall" in near:
        how = f"by Annoy, whose recall of the {near['k']} nearest is {near['recall']:.3f}, and exactly"
    lines.append(f"\nNearest words, {how}:")
    for entry in near["words"]:
        names = [name for name in ("annoy", "exact") if name in entry]
        lines += [f"  {entry['word']:<12} {name}: {', '.join(entry[name][:6])}" for name in names]
    return "\n".join(lines + [""] + [f"{name:<9} {path}" for name, path in report["files"].items()])
