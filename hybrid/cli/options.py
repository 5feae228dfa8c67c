"""The list of commands and the top-level parser. A command's own options are in hybrid/cli/commands."""

import argparse
import difflib
from collections.abc import Sequence

from .. import __version__
from . import commands
from .arguments import Parser, kind_of

COMMANDS = {
    "demo": "train a language model under full softmax, tree and sampled softmax, and compare",
    "train": "train a model, or resume a run",
    "sweep": "train a model with many settings and compare them",
    "eval": "measure a trained run on other data",
    "export": "write a run's vectors: word2vec format, .npy or .npz",
    "data": "list public data sets, or download one: WikiText-2, MovieLens-100k and others",
    "recommend": "recommend next items by a trained run of ratings: printed, or written as .csv or .parquet",
    "predict": "label texts of a file or of standard input by a trained run of labels",
    "next": "continue a text, or list its most likely next words, by a trained language model",
    "neighbours": "find the nearest vectors of a run or of a file",
    "pvm": "films, pictures, comparison and import of Predictive Vision Models",
    "launch": "run a command on several ranks, started by MPI",
    "doctor": "print what is installed, what is missing and how to install it",
}


def read(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses a command line; ValueError for unknown arguments. An invalid value exits with code 2, as in argparse."""
    command, rest = _command(arguments)
    top, chosen = parsers(command, rest)
    given, unknown = top.parse_known_args(list(arguments))
    if unknown:
        word = next((one for one in unknown if one.startswith("-")), unknown[0]).partition("=")[0]
        raise ValueError(_unknown(word, given, chosen or top))
    return given


def parsers(command: str | None, rest: Sequence[str] = ()) -> tuple[Parser, Parser | None]:
    """Returns the parser of `hybrid` and that of the command, the only one with its options."""
    top = Parser(
        prog="hybrid",
        description="Train language models, word vectors, recommenders and taggers with very many classes.",
    )
    top.add_argument("--version", action="version", version=f"hybrid-engine {__version__}")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    top.add_quiet(False)
    actions = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    known = {}
    for name, purpose in COMMANDS.items():
        known[name] = actions.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
    if command not in known:
        return top, None
    chosen = known[command]
    chosen.words = rest
    commands.load(command).add(chosen)
    chosen.add_quiet()
    return top, chosen


def _command(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Returns the command's name and the arguments after it."""
    at = next((place for place, word in enumerate(arguments) if not word.startswith("-")), None)
    return (None, []) if at is None else (arguments[at], list(arguments[at + 1 :]))


def _unknown(word: str, given: argparse.Namespace, command: Parser) -> str:
    """Returns the message for an unknown option or argument, with a suggestion."""
    near = _near(word, command.flags())
    hint = f"did you mean {near}?" if near else "leave it out"
    if given.command == "train" and given.kind:
        return f"{word}: not used by `train {given.kind}`; {hint}"
    if given.command == "eval" and (kind := kind_of(given.run)):
        return f"{word}: not used by `eval` of a {kind} run; {hint}"
    return f"unrecognized arguments: {word}; {hint}"


def _near(word: str, flags: Sequence[str]) -> str | None:
    """Returns the flag of similar spelling, without the common dashes."""
    if word == "--exclude-seen":  # the default; the closest spelling is its opposite
        return None
    names = [flag.removeprefix("--") for flag in flags if flag.startswith("--")]
    near = difflib.get_close_matches(word.lstrip("-"), names, 1)
    return f"--{near[0]}" if near else None
