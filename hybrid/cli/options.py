"""The command line: every command and its options. Those of models are read from their files, when a command needs them."""

import argparse
import difflib
from collections.abc import Callable, Sequence
from typing import Any

from .. import __version__
from ..settings import fields, flag, positive, whole
from . import commands
from .arguments import CHECKPOINT, DEVICE, OVERWRITE, THREADS, Parser

COMMANDS = {
    "demo": "train a language model under full softmax, tree and sampled softmax, and compare",
    "train": "train a model, or go on with a run",
    "sweep": "train a model under many options, side by side, and compare",
    "eval": "measure a trained run on other data",
    "export": "write a run's vectors: word2vec format, .npz, .tsv, .parquet",
    "data": "list public data sets, or download one: WikiText-2, MovieLens-100k and others",
    "recommend": "what users take next, by a run that learned ratings: printed, or written as .csv or .parquet",
    "similar": "items or words like others, as a trained run sees them",
    "next": "continue a text, or list its likeliest next words, by a trained language model",
    "neighbours": "nearest vectors, of a run or of a file",
    "analogy": "A is to B as C is to what? by vectors of a run or of a file",
    "pvm": "watch, compare or import trained Predictive Vision Models, let them dream",
    "launch": "run a command on several ranks, which MPI starts",
    "doctor": "what is installed, what is missing and the command that mends it",
}


def read(arguments: Sequence[str]) -> argparse.Namespace:
    """What a command line says.

    Raises ValueError for an option or a word that is not taken; for a value that cannot be read it exits with code 2 and a
    message, as argparse does.
    """
    command, rest = _command(arguments)
    top, chosen = _parser(command, rest)
    given, unknown = top.parse_known_args(list(arguments))
    if unknown:
        said = next((word for word in unknown if word.startswith("-")), unknown[0]).partition("=")[0]
        raise ValueError(_unknown(said, given, chosen or top))
    return given


def parser(command: str | None = None) -> Parser:
    """The parser of `hybrid`, with the options of one command."""
    return _parser(command, [])[0]


def _parser(command: str | None, rest: Sequence[str]) -> tuple[Parser, Parser | None]:
    """The parser of `hybrid`, and that of the command, the only one that has its options."""
    top = Parser(
        prog="hybrid",
        description="Train dense nets under tree, full, sampled and nearest-neighbour readouts; compare them honestly.",
    )
    top.add_argument("--version", action="version", version=f"hybrid-engine {__version__}")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    top.add_quiet(False)
    actions = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers = {
        name: actions.add_parser(name, help=said, description=f"{said[0].upper()}{said[1:]}.")
        for name, said in COMMANDS.items()
    }
    if command not in parsers:
        return top, None
    chosen = parsers[command]
    if command in FILL:
        FILL[command](chosen, rest)
    else:
        commands.load(command).add(chosen)
    chosen.add_quiet()
    return top, chosen


def _command(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The command's name and what follows it."""
    at = next((place for place, word in enumerate(arguments) if not word.startswith("-")), None)
    return (None, []) if at is None else (arguments[at], list(arguments[at + 1 :]))


def _unknown(said: str, given: argparse.Namespace, command: Parser) -> str:
    """Why an option, or a word, is not taken, and what was meant perhaps."""
    near = difflib.get_close_matches(said, command.flags(), 1)
    hint = f"did you mean {near[0]}?" if near else "leave it out"
    if given.command == "train" and given.kind:
        return f"{said}: not used by `train {given.kind}`; {hint}"
    if given.command == "eval" and (kind := _kind_of(given.run)):
        return f"{said}: not used by `eval` of a {kind} run; {hint}"
    return f"unrecognized arguments: {said}; {hint}"


def _demo(demo: Parser, rest: Sequence[str]) -> None:
    demo.add_argument("--text", metavar="FILE", help="train on this text instead of Python's own documentation")
    demo.add_argument("--epochs", type=positive, default=4, help="passes over the text (default: 4)")
    demo.add_argument("--out", metavar="DIR", default="runs/demo", help="where results go (default: runs/demo)")
    demo.add_overwrite(OVERWRITE)
    demo.add_argument("--device", help=DEVICE)
    demo.add_argument("--threads", type=positive, help=THREADS)
    demo.add_argument("--seed", type=whole, default=0, help="seed of everything drawn (default: 0)")
    demo.add_argument("--json", action="store_true", help="print the report as JSON")


def _train(train: Parser, rest: Sequence[str]) -> None:
    from ..models import MODELS
    from ..train.options import Parts, RunOptions

    kind = _named(rest, MODELS.names()) or _resumed(rest)
    train.add_argument("kind", nargs="?", type=_model, metavar="MODEL", help=", ".join(MODELS.names()))
    for title in ("data", "model", "training", "machine"):  # in this order
        train.group(title)
    life = train.group("the run")
    life.add_argument("--out", metavar="DIR", help=f"where it goes (default: runs/{kind or 'MODEL'})")
    life.add_argument("--overwrite", action="store_true", help=OVERWRITE)
    life.add_argument(
        "--resume",
        metavar="DIR",
        help="go on with the run in DIR, with its own options and to the same bytes; with a greater number of"
        " epochs, steps or trees, further than it was begun for",
    )
    life.add_argument(
        "--previous", action="store_true", help="with --resume: go on from the save before the last, if that is damaged"
    )
    train.group("machine").add_argument("--json", action="store_true", help="print the report as JSON")
    if kind is None:
        names = ", ".join(MODELS.names())
        train.epilog = f"hybrid train MODEL --help lists the options of a model: {names}."
        train.add_options(fields(RunOptions).values(), {})
        declared = set(fields(RunOptions))
    else:
        parts = Parts(kind)
        train.description = (parts.module.__doc__ or "").partition("\n\n")[0]
        declared = set(parts.every())
        train.add_options(parts.every().values(), {name: parts.default_said(name) for name in declared})
    for length in {"epochs", "steps", "trees"} - declared:  # --resume refuses it by name, knowing how its run counts
        train.add_argument(flag(length), type=positive, help=argparse.SUPPRESS)


def _eval(command: Parser, rest: Sequence[str]) -> None:
    from ..models import MODELS

    command.add_argument("run", metavar="RUN", help="the folder of a trained run")
    command.add_argument("--checkpoint", choices=("last", "best"), help=CHECKPOINT)
    command.add_argument("--device", help=DEVICE)
    command.add_argument("--threads", type=positive, help=THREADS)
    command.add_argument("--json", action="store_true", help="print JSON")
    folder = next((word for word in (*rest[:1], *rest[-1:]) if not word.startswith("-")), None)
    kind = _kind_of(folder) if folder else None
    taken: set[str] = set()
    for name in [kind] if kind else MODELS.names():
        own = {option: field for option, field in fields(MODELS.load(name).Evaluation).items() if option not in taken}
        command.add_options(own.values(), _shown(own), title=f"of a run of {name}")
        taken |= set(own)


def _export(command: Parser, rest: Sequence[str]) -> None:
    command.add_argument("run", metavar="RUN", help="the folder of a trained run")
    command.add_argument("file", metavar="FILE", help="the file to write")
    command.add_argument(
        "--format",
        choices=("text", "binary", "npz", "tsv", "parquet"),
        help="text and binary are word2vec's (default: by the end of FILE: .npz, .tsv, .parquet, else text)",
    )
    command.add_overwrite()
    command.add_argument("--checkpoint", choices=("last", "best"), help=CHECKPOINT)


def _doctor(doctor: Parser, rest: Sequence[str]) -> None:
    doctor.add_argument("--json", action="store_true", help="print JSON")


FILL: dict[str, Callable[[Parser, Sequence[str]], None]] = {
    "demo": _demo,
    "train": _train,
    "eval": _eval,
    "export": _export,
    "doctor": _doctor,
}


def _model(text: str) -> str:
    from ..models import MODELS

    if text not in MODELS.names():
        raise argparse.ArgumentTypeError(f"found {text!r}, expected one of {', '.join(MODELS.names())}")
    return text


def _named(rest: Sequence[str], names: Sequence[str]) -> str | None:
    """The model's name: the first word after the command, or the last."""
    return next((word for word in (*rest[:1], *rest[-1:]) if word in names), None)


def _resumed(rest: Sequence[str]) -> str | None:
    """The name of the model whose run is to go on."""
    for place, word in enumerate(rest):
        if word == "--resume" and place + 1 < len(rest):
            return _kind_of(rest[place + 1])
        if word.startswith("--resume="):
            return _kind_of(word.partition("=")[2])
    return None


def _kind_of(folder: str) -> str | None:
    from pathlib import Path

    from ..train.store import kind_of

    return kind_of(Path(folder))


def _shown(own: dict[str, Any]) -> dict[str, str]:
    return {name: str(field.default) for name, field in own.items() if field.default not in (None, False)}
