"""The command `hybrid train`: starts or resumes a run of a model."""

import argparse
import itertools
import json
from collections.abc import Sequence

from ... import console
from ...settings import MODELS, fields, flag, positive
from .. import ranks
from ..arguments import OVERWRITE, Parser, kind_of


def add(train: Parser) -> None:
    """Adds the options of the model that the command line names, or of the run it resumes."""
    from ...train.options import Parts, RunOptions
    from ...train.runs import LENGTHS

    names = ", ".join(MODELS.names())
    kind = _named(train.words) or _resumed(train.words)
    train.add_argument("kind", nargs="?", type=_model, metavar="MODEL", help=names)
    for title in ("data", "model", "training", "machine"):  # in this order
        train.group(title)
    life = train.group("the run")
    life.add_argument("--out", metavar="DIR", help=f"folder of the run (default: runs/{kind or 'MODEL'})")
    life.add_argument("--overwrite", action="store_true", help=OVERWRITE)
    life.add_argument(
        "--resume",
        metavar="DIR",
        help="continue the run in DIR with its options; --epochs, --steps or --trees extends a finished run",
    )
    life.add_argument(
        "--previous", action="store_true", help="with --resume: start from the save before the last, if that is damaged"
    )
    train.group("machine").add_argument("--json", action="store_true", help="print the report as JSON")
    if kind is None:
        train.epilog = f"hybrid train MODEL --help lists the options of a model: {names}."
        declared, defaults, shown = fields(RunOptions), {}, set(fields(RunOptions))
    else:
        parts = Parts(kind)
        train.description = (parts.module.__doc__ or "").partition("\n\n")[0]
        options = parts.shown(parts.read(train.words))
        declared = parts.every() | {name: field for name, (field, _) in options.items()}
        defaults, shown = {name: default for name, (_, default) in options.items()}, set(options)
        train.epilog = "".join(
            f"These are the options of {flag(name)} {part}; {flag(name)} NAME --help shows those of another. "
            for name, part in parts.named(parts.read(train.words)).items()
        )
    train.add_options(declared.values(), defaults, hidden=set(declared) - shown)
    for length in {*LENGTHS} - set(declared):  # --resume rejects it with a specific message
        train.add_argument(flag(length), type=positive, help=argparse.SUPPRESS)


def run(given: argparse.Namespace) -> int:
    """Trains and prints the report."""
    from ...train import runs
    from ...train.options import choose
    from ...train.stop import Stopped

    explicit = {name: value for name, value in vars(given).items() if name not in ("command", "debug", "json", "quiet")}
    kind = explicit.pop("kind")
    if not (kind or given.resume):
        raise ValueError(f"train: which model? expected one of {', '.join(MODELS.names())}, or --resume DIR")
    try:
        if given.resume:
            report = runs.resume(given.resume, explicit | {"kind": kind}, ranks=ranks.group())
        else:
            report = runs.start(choose(kind, **explicit), ranks=ranks.group())
    except Stopped as stopped:
        console.say(str(stopped))
        return 128 + stopped.signal
    print(json.dumps(report, indent=1) if given.json else runs.text(report))
    return 0


def _model(text: str) -> str:
    if text not in MODELS.names():
        raise argparse.ArgumentTypeError(f"found {text!r}, expected one of {', '.join(MODELS.names())}")
    return text


def _named(words: Sequence[str]) -> str | None:
    """Returns the model's name: the first argument, or the last."""
    return next((word for word in (*words[:1], *words[-1:]) if word in MODELS.names()), None)


def _resumed(words: Sequence[str]) -> str | None:
    """Returns the model name of the run to resume."""
    for word, after in itertools.zip_longest(words, words[1:]):
        if word == "--resume" and after:
            return kind_of(after)
        if word.startswith("--resume="):
            return kind_of(word.partition("=")[2])
    return None
