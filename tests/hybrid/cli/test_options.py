"""What the command line takes, of which model, and what its help says of defaults (hybrid/cli/arguments.py too)."""

import argparse
import re

import pytest

from hybrid.cli import main, options
from hybrid.train.options import Parts

MODELS = ("factors", "labels", "language", "pvm", "words")


def parsed(*arguments):
    return vars(options.read([*arguments]))


def said(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        options.read([*arguments])
    printed = capsys.readouterr()
    return stop.value.code, re.sub(r"\s+", " ", printed.out + printed.err)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["train", "language", "--epoch", "3"], "--epoch: not used by `train language`; did you mean --epochs?"),
        (["train", "pvm", "--text=x"], "--text: not used by `train pvm`; "),
        (["demo", "--thread", "1"], "unrecognized arguments: --thread; did you mean --threads?"),
        (["train", "words", "language"], "language: not used by `train words`; leave it out"),
    ],
    ids=str,
)
def test_options_are_not_abbreviated_and_others_are_refused_by_name(capsys, command, message):
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"hybrid: error: {message}") and error.count("\n") == 1


@pytest.mark.parametrize("command", [["demo"], ["train", "pvm"], ["pvm", "dream", "run"]])
def test_quiet_is_taken_before_the_command_and_after_it(command):
    assert not parsed(*command)["quiet"]
    assert parsed("--quiet", *command)["quiet"] and parsed(*command, "--quiet")["quiet"]


def test_the_model_may_stand_first_or_last():
    assert parsed("train", "words", "--window", "3")["kind"] == "words"
    given = parsed("train", "--window", "3", "words")
    assert given["kind"] == "words" and given["window"] == 3


@pytest.mark.parametrize("kind", MODELS)
def test_help_of_a_model_says_its_options_their_defaults_and_no_others(capsys, kind):
    parts = Parts(kind)
    code, printed = said(capsys, "train", kind, "--help")
    assert code == 0
    for name in parts.every():
        flag, default = "--" + name.replace("_", "-"), parts.default_said(name)
        assert re.search(rf" {flag}\b", printed), flag
        if default:
            assert re.search(rf" {flag} .*?\(default: {re.escape(default)}\)", printed), flag
    others = {name for other in MODELS for name in Parts(other).every()} - set(parts.every())
    assert [name for name in others if f" --{name.replace('_', '-')} " in printed] == []


def every_action(parser):
    """The actions of a parser, and of those of its own actions."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from every_action(below)


@pytest.mark.parametrize("command", sorted(options.COMMANDS))
def test_a_default_is_the_one_that_the_help_names(command):
    for action in every_action(options.parser(command)):
        if action.default not in (None, argparse.SUPPRESS) and not isinstance(action.default, bool):
            assert re.search(rf"\(default: {action.default}\b", action.help), action.option_strings


@pytest.mark.parametrize(
    "option, value",
    [("--epochs", "0"), ("--epochs", str(10**18)), ("--rate", "inf"), ("--rate", "-1"), ("--width", "٣")],
)  # fmt: skip
def test_absurd_numbers_are_refused_by_name(capsys, option, value):
    code, message = said(capsys, "train", "language", "--text", "x", option, value)
    assert code == 2 and f"argument {option}: found '{value}', expected" in message


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["train", "words", "--text", "x", "--overwrite", "--out", ""], "argument --out: found '', expected a folder"),
        (["train", "words", "--text="], "argument --text: found '', expected a file"),
        (["pvm", "watch", "run", "-o", ""], "argument -o/--out: found '', expected a file"),
        (["train", "pvm", "--video", ""], "argument --video: found '', expected a video"),
    ],
    ids=str,
)
def test_an_empty_path_is_refused(capsys, command, message):
    code, printed = said(capsys, *command)
    assert code == 2 and message in printed


def test_a_model_that_is_not_known_is_refused_by_name(capsys):
    code, message = said(capsys, "train", "langauge")
    assert (
        code == 2
        and "argument MODEL: found 'langauge', expected one of factors, labels, language, pvm, words" in message
    )
