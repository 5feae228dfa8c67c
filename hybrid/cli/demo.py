"""`hybrid demo`: one language model under a full softmax, a tree and a sampled softmax, everything else the same."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..engine import Engine
from ..feeds.text import documentation, read
from ..feeds.vocabulary import Vocabulary
from ..models import language
from ..schedule import trace
from ..storage import checkpoint, lock
from ..train import plots, store
from ..train.loop import train
from ..train.options import choose
from ..train.progress import CLOCKS

READOUTS = {"full": "full softmax", "tree": "Huffman tree", "sampled": "sampled softmax"}
SHOWN = 3  # contexts continued, words whose neighbours are listed
NEIGHBOURS = 10


@contextlib.contextmanager
def begun(folder: Path, overwrite: bool) -> Iterator[None]:
    """The folder of a demo and those of its models, held. What an earlier demo left in them is replaced, and with `overwrite`
    runs; ValueError where there is something else, as `store.begun` raises it.
    """
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


def run(text: str | None, out: str, epochs: int, device: str | None, threads: int | None, seed: int) -> dict[str, Any]:
    """Train each on eight tenths of the text, write reports and pictures to the folder `out`, and return the report.

    A tenth draws the curves, and another, which nothing was chosen by, is what they are compared on.
    """
    folder = Path(out)
    source = read(text) if text else documentation()
    parts = source.split(valid=0.1, test=0.1, seed=seed)
    reports, engines, job = {}, {}, None
    for readout, label in READOUTS.items():
        settings = {"epochs": epochs, "device": device, "threads": threads, "seed": seed}
        job = language.Language(choose("language", readout=readout, text=source.source, **settings), *parts)
        next(job.make().run(job.feed))  # kernels are compiled here, not on the clock
        engines[readout] = job.make()
        reports[readout] = train(job, folder / readout, engines[readout], label=f"{label:>15}", keep_best=False)
    assert job
    vocabulary = job.vocabulary
    tree = engines["tree"]
    level = max(report["perplexity"] for report in reports.values())
    report = {
        "text": source.source,
        "tokens": {name: sum(map(len, part)) for name, part in parts._asdict().items()},
        "words": len(vocabulary),
        "epochs": epochs,
        "level": level,
        "to_level": {readout: _reached(reports[readout]["curve"], level) for readout in READOUTS},
        "runs": reports,
        "next_words": _next_words(tree, vocabulary, job, seed),
        "neighbours": _neighbours(tree, vocabulary, seed),
        "files": _files(folder, reports, tree),
    }
    store.write_json(folder / "report.json", report)
    return report


def _reached(curve: list[dict[str, Any]], level: float) -> dict[str, float]:
    """What training took, by either clock, until the perplexity was at most `level`; between two points, by a line."""
    before = curve[0]
    for point in curve:
        if point["perplexity"] <= level:
            fall = before["perplexity"] - point["perplexity"]
            share = (before["perplexity"] - level) / fall if fall > 0 else 1.0
            return {clock: before[clock] + share * (point[clock] - before[clock]) for clock in CLOCKS}
        before = point
    return {clock: before[clock] for clock in CLOCKS}


def _next_words(engine: Engine, vocabulary: Vocabulary, job: Any, seed: int) -> list[dict[str, Any]]:
    """What exact tree search holds most likely after a few contexts of the text."""
    corpus, context = job.feed.corpus, job.feed.context
    rng = np.random.default_rng([seed, 3])
    whole = np.flatnonzero(np.diff(corpus.at) > 2 * context)
    found = []
    for sentence in rng.choice(whole, SHOWN) if len(whole) else ():
        first = corpus.at[sentence]
        ids = corpus.ids[first : first + context]
        best, log_probs = engine.best(ids, min(5, len(vocabulary)))
        words = zip(vocabulary.decode(best[0]), np.exp(log_probs[0]).tolist(), strict=True)
        found.append({"context": vocabulary.decode(ids), "next": [[word, round(p, 4)] for word, p in words]})
    return found


def _neighbours(engine: Engine, vocabulary: Vocabulary, seed: int) -> dict[str, Any]:
    """Nearest words of a few frequent ones; where annoy is installed, by it too, and its recall over many."""
    from cpu.search.index import there
    from cpu.search.neighbours import Neighbours

    rows = engine.embedding.table[: len(vocabulary)]
    k = min(NEIGHBOURS, len(vocabulary))
    asked = np.arange(min(1000, len(rows)))  # the most frequent words
    searches, recall = {"exact": Neighbours(rows, index="exact")}, {}
    if there("annoy"):
        annoy = Neighbours(rows, trees=10, search=500, seed=seed, exact_below=0)  # at any size: to show it
        annoy.build()
        searches = {"annoy": annoy, **searches}
        recall = {"recall": annoy.recall(np.ascontiguousarray(rows[asked]), k)}
    shown = [number for number in asked if vocabulary.words[number].isalpha() and len(vocabulary.words[number]) > 3]
    listed = []
    for word in shown[:: max(len(shown) // SHOWN, 1)][:SHOWN]:
        lists = {}
        for name, index in searches.items():
            ids, scores = np.empty((1, k), np.int32), np.empty((1, k), np.float32)
            index.query(ids, scores, rows[word : word + 1])
            lists[name] = vocabulary.decode(ids[0][ids[0] != word])[: k - 1]
        listed.append({"word": vocabulary.words[word]} | lists)
    return {"k": k, "queries": len(asked), "words": listed} | recall


def _files(folder: Path, reports: dict[str, Any], engine: Engine) -> dict[str, str]:
    """Draw the pictures; where everything was written. A run as short as the measuring of its cores has no timeline."""
    files = {"curve": "curve.png", "report": "report.json"}
    if engine.trace.recent:
        files |= {"timeline": "timeline.png", "trace": "timeline.json"}
    paths = {name: str(folder / file) for name, file in files.items()}
    labelled = {READOUTS[readout]: report["curve"] for readout, report in reports.items()}
    plots.curve(Path(paths["curve"]), labelled, "perplexity")
    plots.last_ticks(folder, engine.trace)
    return paths


def _verdict(report: dict[str, Any]) -> list[str]:
    """Who reached the level first by either clock, and who ended lowest."""
    reached, runs = report["to_level"], report["runs"]
    lines = [f"Validation perplexity {report['level']:.1f} is the highest of the three at the end. It was reached"]
    for clock, unit in zip(CLOCKS, ("seconds", "processor seconds"), strict=True):
        order = sorted(READOUTS, key=lambda readout: reached[readout][clock])
        first, *later = (f"{READOUTS[readout]} after {reached[readout][clock]:.1f}" for readout in order)
        lines.append(f"  in {unit}: first by {first}, then {', '.join(later)}")
    best = min(READOUTS, key=lambda readout: runs[readout]["test_perplexity"])
    lowest = runs[best]["test_perplexity"]
    return [*lines, f"On the test text {READOUTS[best]} is the best at the end, with a perplexity of {lowest:.1f}."]


def text(report: dict[str, Any]) -> str:
    """The report for a person."""
    level, tokens = f"{report['level']:.1f}", report["tokens"]
    lines = [
        f"\n{report['text']}: {tokens['train']:,} tokens to learn from, {tokens['valid']:,} to validate, "
        f"{tokens['test']:,} to test; {report['words']:,} words; {report['epochs']} epochs\n",
        f"{'':<16}{'examples/s':>12}{'seconds':>9}{'processor s':>13}{'perplexity':>12}{'tested':>8}"
        f"{'s to ' + level:>12}{'processor s':>13}",
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
    if "recall" in near:
        lines.append(f"\nNearest words; Annoy's recall of the {near['k']} nearest is {near['recall']:.3f}:")
    else:
        lines.append("\nNearest words, by exact search, since annoy is not installed:")
    for entry in near["words"]:
        if "annoy" in entry:
            lines.append(f"  {entry['word']:<12} Annoy: {', '.join(entry['annoy'][:6])}")
        lines.append(f"  {'' if 'annoy' in entry else entry['word']:<12} exact: {', '.join(entry['exact'][:6])}")
    return "\n".join(lines + [""] + [f"{name:<9} {path}" for name, path in report["files"].items()])
