"""The commands `hybrid eval`, `export`, `neighbours`, `next` and `predict`, and what others share that use a trained run."""

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ... import console
from ...feeds.text import EOS
from ...formats.fasttext import LABEL
from ...formats.vectors import open_vectors
from ...settings import MODELS, fields, number, positive, whole
from ...storage import files
from ...train import runs
from ...train.options import DEVICE, THREADS
from ...train.runs import able, open_run, vectors_of
from ...use.answers import Ranked
from ...use.vectors import Vectors
from ..arguments import CHECKPOINT, Parser, kind_of
from . import Command

SHOWN = 10  # default number of results
TOKENS = 20  # by which a text is continued
TEMPERATURE = 0.7
TEXTS = 1024  # texts per batch


def add_run(command: Parser, name: str = "RUN", help: str = "the folder of a trained run") -> None:
    """Adds options for the run, its checkpoint and the device."""
    command.add_argument("run", metavar=name, help=help)
    command.add_argument("--checkpoint", choices=("last", "best"), help=CHECKPOINT)
    command.add_argument("--device", help=DEVICE)
    command.add_argument("--threads", type=positive, help=THREADS)
    command.add_argument("--json", action="store_true", help="print JSON")


def add_k(command: Parser, what: str) -> None:
    """Adds the option for the number of results."""
    command.add_argument("--k", type=positive, metavar="K", help=f"{what} (default: {SHOWN})")


def at_most(k: int | None, there: int, what: str) -> int:
    """Returns the number of results; prints a note if fewer exist than the user wants."""
    if k and k > there:
        console.note(f"--k {k:,}: there are {there:,} {what}")
    return min(k or SHOWN, there)


def opened(given: argparse.Namespace, method: str, does: str) -> Any:
    """Opens the run for a method; ValueError, before loading, if its model lacks it. See `able`."""
    able(given.run, method, does)
    return open_run(given.run, checkpoint=given.checkpoint, device=given.device, threads=given.threads)


def vectors(given: argparse.Namespace) -> Vectors:
    """Returns the vectors of a run or a file; ValueError for a run whose model has none."""
    if Path(given.run).is_dir():
        return vectors_of(given.run, checkpoint=given.checkpoint, device=given.device or "cpu")
    for option in ("checkpoint", "device"):
        if getattr(given, option):
            raise ValueError(f"--{option}: not used with a file of vectors, {given.run}; leave it out")
    return open_vectors(given.run)


def show(found: Ranked, as_json: bool = False) -> None:
    """Prints the results of each query."""
    if as_json:
        print(json.dumps(records(found), indent=1))
        return
    for at, (asked, pairs) in enumerate(zip(found.asked, found.pairs, strict=True)):
        print("\n" * (at > 0) + asked)
        print(table(pairs))


def records(found: Ranked, asked: str = "name", name: str = "name") -> list[dict[str, Any]]:
    """Returns JSON-able records, one per query; `asked` and `name` are the keys of query and result."""
    return [
        {asked: one, "found": [{name: best, "score": score} for best, score in pairs]}
        for one, pairs in zip(found.asked, found.pairs, strict=True)
    ]


def table(pairs: Sequence[tuple[str, float]]) -> str:
    """Returns names and scores, one per line."""
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"  {name:<{width}}  {score:.4f}" for name, score in pairs)


# hybrid eval: metrics of a trained run on other data


def _add_eval(command: Parser) -> None:
    """Adds the options of the run's model, or of all models if it is unknown."""
    add_run(command)
    folder = next((word for word in (*command.words[:1], *command.words[-1:]) if not word.startswith("-")), None)
    kind = kind_of(folder) if folder else None
    taken: dict[str, Any] = {}
    for name in [kind] if kind else MODELS.names():
        own = {option: field for option, field in fields(MODELS.load(name).Evaluation).items() if option not in taken}
        shown = {option: str(field.default) for option, field in own.items() if field.default not in (None, False)}
        command.add_options(own.values(), shown, title=f"of a run of {name}")
        taken |= own


def _eval(given: argparse.Namespace) -> int:
    figures = runs.evaluate(given.run, vars(given))
    print(json.dumps(figures, indent=1) if given.json else runs.text(figures))
    return 0


# hybrid export: the vectors of a trained run for other programs


def _add_export(command: Parser) -> None:
    command.add_argument("run", metavar="RUN", help="the folder of a trained run")
    command.add_argument("file", metavar="FILE", help="the file to write")
    command.add_argument(
        "--format",
        choices=("text", "binary", "npy", "npz"),
        help="text and binary are word2vec's formats (default: by the suffix .bin, .npy or .npz, else text)",
    )
    command.add_argument(
        "--side",
        choices=("inputs", "outputs", "users"),
        default="inputs",
        help="inputs: the embedding, for similarity; outputs: the vectors of the output layer, whose inner products with a"
        " hidden vector rank the classes; users: the hidden vectors of the users of a factors run (default: inputs)",
    )
    command.add_overwrite()
    command.add_argument("--checkpoint", choices=("last", "best"), help=CHECKPOINT)


def _export(given: argparse.Namespace) -> int:
    files.check(given.file, given.overwrite)
    print(runs.export(given.run, given.file, given.format, given.checkpoint, given.side))
    return 0


# hybrid neighbours: words or items with the nearest vectors


def _add_neighbours(command: Parser) -> None:
    add_run(command, "RUN|FILE", "the folder of a trained run, or a file of vectors, as written by hybrid export")
    command.add_argument("words", nargs="+", metavar="WORD", help="words or items")
    add_k(command, "neighbours of each")


def _neighbours(given: argparse.Namespace) -> int:
    """Prints the nearest of each word."""
    among = vectors(given)
    show(among.neighbours(given.words, at_most(given.k, len(among), "names")), given.json)
    return 0


# hybrid next: continues a text or lists its most likely next words


def _add_next(command: Parser) -> None:
    add_run(command)
    command.add_argument("text", nargs="+", metavar="TEXT", help="the text to continue, a string or several words")
    command.add_argument(
        "--tokens", type=positive, metavar="N", help=f"number of words to add (default: {TOKENS}; with --k alone: 0)"
    )
    command.add_argument(
        "--temperature",
        type=number,
        default=TEMPERATURE,
        metavar="T",
        help=f"sampling temperature; 0: always the most likely word (default: {TEMPERATURE})",
    )
    command.add_argument("--seed", type=whole, default=0, help="random seed (default: 0)")
    command.add_argument("--k", type=positive, metavar="K", help="show the K most likely next words")


def _next(given: argparse.Namespace) -> int:
    """Prints the most likely words, the continued text, or both."""
    if given.k and not given.tokens and (given.seed, given.temperature) != (0, TEMPERATURE):
        raise ValueError("--temperature, --seed: used to continue the text, which --k alone does not; add --tokens N")
    model, text = opened(given, "continue_text", "continue a text"), " ".join(given.text)
    if unknown := model.unknown(text):
        console.note(f"not in the vocabulary, read as <unk>: {', '.join(unknown)}")
    report: dict[str, Any] = {"text": text}
    if given.k:
        report["next"] = model.next(text, at_most(given.k, len(model.vocabulary), "words"))
    if given.tokens or not given.k:
        tokens = given.tokens or TOKENS
        report["words"] = model.continue_text(text, tokens, temperature=given.temperature, seed=given.seed)
    print(json.dumps(report, indent=1) if given.json else _continued(report))
    return 0


def _continued(report: dict[str, Any]) -> str:
    """Returns a report as text, with the line ends that the model predicts."""
    lines = [table(report["next"])] if "next" in report else []
    if "words" in report:
        continued = " ".join([report["text"], *report["words"]])
        lines += [line.strip() for line in continued.split(EOS)]
    return "\n".join(lines)


# hybrid predict: labels of texts, one text per line, in fastText's output format


def _add_predict(command: Parser) -> None:
    add_run(command)
    command.add_argument("file", metavar="FILE", help="texts, one per line; -: standard input")
    command.add_argument("--k", type=positive, default=1, metavar="K", help="labels per text (default: 1)")
    command.add_argument("--probabilities", action="store_true", help="print the probability after each label")


def _predict(given: argparse.Namespace) -> int:
    """Prints the most likely labels of every line; an empty line gives an empty line."""
    model = opened(given, "predict", "predict labels")
    k = at_most(given.k, len(model.labels), "labels")
    lines = _texts(given.file)
    while texts := list(itertools.islice(lines, TEXTS)):
        for text, pairs in zip(texts, model.predict(texts, k), strict=True):
            found = pairs if text else []
            if given.json:
                print(json.dumps([{"label": label, "probability": p} for label, p in found]))
                continue
            parts = (f"{LABEL}{label} {p:.6g}" if given.probabilities else LABEL + label for label, p in found)
            print(" ".join(parts))
    return 0


def _texts(path: str) -> Iterator[str]:
    """Yields the texts, without any labels in them."""
    for _, line in enumerate(sys.stdin) if path == "-" else files.numbered_lines(path):
        yield " ".join(token for token in line.split() if not token.startswith(LABEL))


COMMANDS = {
    "eval": Command(_add_eval, _eval),
    "export": Command(_add_export, _export),
    "neighbours": Command(_add_neighbours, _neighbours),
    "next": Command(_add_next, _next),
    "predict": Command(_add_predict, _predict),
}
