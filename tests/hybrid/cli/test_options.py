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
        (["train", "factors", "--qq", "3"], "--qq: not used by `train factors`; leave it out"),
        (["recommend", "run", "--exclude-seen"], "unrecognized arguments: --exclude-seen; leave it out"),
        (["train", "words", "language"], "language: not used by `train words`; leave it out"),
    ],
    ids=str,
)
def test_options_are_not_abbreviated_and_others_are_refused_by_name(capsys, command, message):
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"hybrid: error: {message}") and error.count("\n") == 1


@pytest.mark.parametrize("part", ["rows", "readout"])
def test_a_place_is_named(capsys, part):
    code, said_why = said(capsys, "train", "language", f"--{part}-device", "auto")
    assert code == 2 and f"--{part}-device: found 'auto', expected cpu or cuda:N" in said_why


@pytest.mark.parametrize("command", [["demo"], ["train", "pvm"], ["pvm", "dream", "run"]])
def test_quiet_and_the_model_may_stand_first_or_last(command):
    assert not parsed(*command)["quiet"]
    assert parsed("--quiet", *command)["quiet"] and parsed(*command, "--quiet")["quiet"]
    for line in (["words", "--window", "3"], ["--window", "3", "words"]):
        given = parsed("train", *line)
        assert given["kind"] == "words" and given["window"] == 3


COMPLETED = {  # lines of a command, and defaults that hold beside them
    "language": {"rate": "0.02"},
    "language --readout head": {},
    "language --readout sampled --trunk attention": {"dropout": "0.2", "trunk-rate": "0.001"},
    "factors --order bag": {"rate": "0.093", "width": "64", "start": "drawn"},
    "factors --trunk mlp --readout=tree": {"rate": "0.02", "width": "32", "start": "counts", "history": "3"},
    "factors --trunk attention --order sequence": {"epochs": "12", "width": "128", "dropout": "", "history": ""},
    "labels": {"trees": "3"},
    "pvm": {},
    "words --readout sampled": {"width": "100"},
}


@pytest.mark.parametrize("line", COMPLETED)
def test_help_has_the_options_of_the_parts_named_and_the_defaults_that_hold(capsys, line):
    kind, *words = line.split()
    parts = Parts(kind)
    options = parts.shown(parts.read(words))
    code, printed = said(capsys, "train", kind, *words, "--help")
    assert code == 0
    for name, (field, default) in options.items():
        flag = "--" + name.replace("_", "-")
        assert re.search(rf" {flag}\b", printed), flag
        if default and "(default:" not in field.metadata["help"]:
            assert re.search(rf" {flag} .*?\(default: {re.escape(default)}\)", printed), flag
    for name, default in COMPLETED[line].items():
        assert options[name.replace("-", "_")][1] == default, name
    for name in parts.read(words):  # what the line says is no default
        assert options[name][1] == str(parts.defaults(parts.read(words))[name]), name
    others = {name for other in MODELS for name in Parts(other).every()} - set(options)
    usage = printed.partition(" positional arguments")[0]
    assert [name for name in others if re.search(rf"\[--{name.replace('_', '-')}[ \]]", usage)] == []
    assert all(f"--{part} NAME --help" in printed for part in parts.registries)


def every_action(parser):
    """The actions of a parser, and of those of its own actions."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from every_action(below)


@pytest.mark.parametrize("command", sorted(options.COMMANDS))
def test_a_default_is_the_one_that_the_help_names(command):
    for action in every_action(options.parsers(command)[0]):
        if action.default not in (None, argparse.SUPPRESS) and not isinstance(action.default, bool):
            assert re.search(rf"\(default: {action.default}\b", action.help), action.option_strings


ABSURD = [("--epochs", "0"), ("--epochs", str(10**18)), ("--rate", "inf"), ("--rate", "-1"), ("--width", "٣")]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        *((["train", "language", *one], "argument {}: found '{}', expected".format(*one)) for one in ABSURD),
        (["train", "words", "--text", "x", "--overwrite", "--out", ""], "argument --out: found '', expected a folder"),
        (["train", "words", "--text="], "argument --text: found '', expected a file"),
        (["pvm", "watch", "run", "-o", ""], "argument -o/--out: found '', expected a file"),
        (["train", "pvm", "--video", ""], "argument --video: found '', expected a video"),
        (["train", "langauge"], f"argument MODEL: found 'langauge', expected one of {', '.join(MODELS)}"),
    ],
    ids=str,
)
def test_absurd_numbers_empty_paths_and_other_models_are_refused_by_name(capsys, command, message):
    code, printed = said(capsys, *command)
    assert code == 2 and message in printed
