"""`hybrid demo`: one language model trained twice, under a full softmax and under a tree, everything else the same."""

from pathlib import Path

import numpy as np

from . import options as settings
from . import pictures
from .engine import Engine
from .models import language
from .training import train, write_json

READOUTS = {"full": "full softmax", "tree": "Huffman tree"}
SHOWN = 3  # contexts continued, words whose neighbours are listed
NEIGHBOURS = 10


def run(text: str | None, out: str, epochs: int, device: str | None, threads: int | None, seed: int) -> dict:
    """Train both, write reports and pictures to the folder `out`, and return the report."""
    folder = Path(out)
    reports, engines, job = {}, {}, None
    for readout, label in READOUTS.items():
        chosen = _options(readout, text, epochs, device, threads, seed)
        job = language.prepare(chosen)
        (folder / readout).mkdir(parents=True, exist_ok=True)
        next(job.make().run(job.feed))  # kernels are compiled here, not on the clock
        engines[readout] = job.make()
        reports[readout] = train(job, folder / readout, engines[readout], label=f"{label:>12}")
    assert job
    vocabulary = job.feed.corpus.vocabulary  # type: ignore[attr-defined]
    tree = engines["tree"]
    level = max(report["perplexity"] for report in reports.values())
    report = {
        "text": text or "Python's documentation",
        "tokens": len(job.feed.corpus),  # type: ignore[attr-defined]
        "words": len(vocabulary),
        "level": level,
        "seconds_to_level": {readout: _reached(reports[readout]["curve"], level) for readout in READOUTS},
        "runs": reports,
        "next_words": _next_words(tree, vocabulary, job, seed),
        "neighbours": _neighbours(tree, vocabulary, seed),
        "files": _files(folder, reports, tree),
    }
    write_json(folder / "report.json", report)
    return report


def _options(readout, text, epochs, device, threads, seed) -> dict:
    given = vars(settings.parser().parse_args(["train", "language", "--readout", readout, "--text", text or "-"]))
    given |= {"epochs": epochs, "device": device, "threads": threads, "seed": seed}
    return settings.resolve(given) | {"text": text}


def _reached(curve: list[dict], level: float) -> float:
    """Seconds of training after which the perplexity was at most `level`, between two points by the straight line."""
    before = curve[0]
    for point in curve:
        if point["perplexity"] <= level:
            fall = before["perplexity"] - point["perplexity"]
            share = (before["perplexity"] - level) / fall if fall > 0 else 1.0
            return before["seconds"] + share * (point["seconds"] - before["seconds"])
        before = point
    return before["seconds"]


def _next_words(engine: Engine, vocabulary, job, seed: int) -> list[dict]:
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


def _neighbours(engine: Engine, vocabulary, seed: int) -> dict:
    """Nearest words by Annoy beside the exact ones, for a few frequent words, and the recall over many."""
    from cpu.neighbours import EXACT_BELOW, Neighbours

    rows = engine.embedding.table[: len(vocabulary)]
    k = min(NEIGHBOURS, len(vocabulary))
    forest = Neighbours(
        rows, metric="angular", trees=10, search=500, seed=seed, exact_below=0
    )  # at any size: to show it
    forest.build()
    asked = np.arange(min(1000, len(rows)))  # the most frequent words
    exact = Neighbours(rows, metric="angular", exact_below=len(rows) + 1)
    shown = [number for number in asked if vocabulary.words[number].isalpha() and len(vocabulary.words[number]) > 3]
    listed = []
    for word in shown[:: max(len(shown) // SHOWN, 1)][:SHOWN]:
        lists = {}
        for name, index in (("annoy", forest), ("exact", exact)):
            ids, scores = np.empty((1, k), np.int32), np.empty((1, k), np.float32)
            index.query(ids, scores, rows[word : word + 1])
            lists[name] = vocabulary.decode(ids[0][ids[0] != word])[: k - 1]
        listed.append({"word": vocabulary.words[word]} | lists)
    recall = forest.recall(np.ascontiguousarray(rows[asked]), k)
    return {"k": k, "queries": len(asked), "recall": recall, "exact_below": EXACT_BELOW, "words": listed}


def _files(folder: Path, reports: dict, engine: Engine) -> dict[str, str]:
    """Draw the pictures; where everything was written."""
    files = {"curve": "curve.png", "timeline": "timeline.png", "trace": "timeline.json", "report": "report.json"}
    paths = {name: str(folder / file) for name, file in files.items()}
    labelled = {READOUTS[readout]: report["curve"] for readout, report in reports.items()}
    pictures.curve(Path(paths["curve"]), labelled, "perplexity")
    engine.trace.write_chrome(paths["trace"])
    pictures.timeline(Path(paths["timeline"]), engine.trace)
    return paths


def text(report: dict) -> str:
    """The report for a person."""
    level = f"{report['level']:.1f}"
    head = f"{'':<14}{'examples/s':>12}{'seconds':>10}{'perplexity':>12}{'seconds to ' + level:>19}{'parameters':>13}"
    lines = [f"\n{report['text']}: {report['tokens']:,} tokens to learn from, {report['words']:,} words\n", head]
    for readout, label in READOUTS.items():
        run, reached = report["runs"][readout], report["seconds_to_level"][readout]
        speed, seconds = f"{run['examples_per_second']:,.0f}", f"{run['seconds']:.1f}"
        lines.append(
            f"{label:<14}{speed:>12}{seconds:>10}{run['perplexity']:>12.1f}{reached:>19.1f}{run['parameters']:>13,}"
        )
    faster = report["seconds_to_level"]["full"] / report["seconds_to_level"]["tree"]
    verdict = (
        f"the tree is {faster:.1f} x as fast" if faster > 1 else f"brute force wins here, {1 / faster:.1f} x as fast"
    )
    lines.append(f"\nTo perplexity {level} {verdict}. Cores: {report['runs']['tree']['pace']}")
    lines.append("\nMost likely next words, by exact search in the tree:")
    for found in report["next_words"]:
        words = ", ".join(f"{word} {share:.0%}" for word, share in found["next"])
        lines.append(f"  {' '.join(found['context'])} ... {words}")
    near = report["neighbours"]
    lines.append(f"\nNearest words; Annoy's recall of the {near['k']} nearest is {near['recall']:.3f}:")
    for entry in near["words"]:
        lines.append(f"  {entry['word']:<12} Annoy: {', '.join(entry['annoy'][:6])}")
        lines.append(f"  {'':<12} exact: {', '.join(entry['exact'][:6])}")
    return "\n".join(lines + [""] + [f"{name:<9} {path}" for name, path in report["files"].items()])
