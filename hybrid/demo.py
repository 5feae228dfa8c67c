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
    for point in curve[1:]:
        if point["perplexity"] <= level:
            share = (before["perplexity"] - level) / max(before["perplexity"] - point["perplexity"], 1e-9)
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
