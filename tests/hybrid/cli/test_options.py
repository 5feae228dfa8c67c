"""What the command line takes, of which model, and what its help says of defaults."""

import re

import pytest

from hybrid.cli import options
from hybrid.cli.arguments import MOST
from hybrid.pvm import command as pvm


def parsed(*arguments):
    return vars(options.parser().parse_args([*arguments]))


def said(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        options.parser().parse_args([*arguments])
    printed = capsys.readouterr()
    return stop.value.code, re.sub(r"\s+", " ", printed.out + printed.err)


@pytest.mark.parametrize(
    "command",
    [["train", "language", "--epoch", "3"], ["demo", "--thread", "1"], ["train pvm", "--step", "3"],
     ["pvm", "watch", "run", "--frame", "3"], ["--vers"]],
    ids=" ".join,
)  # fmt: skip
def test_options_are_not_abbreviated(capsys, command):
    code, message = said(capsys, *command)
    assert code == 2 and ("unrecognized arguments" in message or "required: COMMAND" in message)


def test_version(capsys):
    import hybrid

    assert said(capsys, "--version") == (0, f"hybrid-engine {hybrid.__version__} ")


@pytest.mark.parametrize("command", [["demo"], ["train"], ["train pvm"], ["eval", "run"], ["pvm", "dream", "run"]])
def test_quiet_is_taken_before_the_command_and_after_it(command):
    assert not parsed(*command)["quiet"]
    assert parsed("--quiet", *command)["quiet"] and parsed(*command, "--quiet")["quiet"]


def test_help_says_the_defaults_of_each_model_that_apply(capsys):
    _, printed = said(capsys, "train", "--help")
    tables = options.DEFAULTS
    epochs = ", ".join(f"{kind} {table['epochs']}" for kind, table in tables.items())
    assert f"passes over the data (default: {epochs})" in printed
    assert "seed of everything drawn (default: 0)" in printed
    assert f"language: words before the target (default: {tables['language']['context']})" in printed
    rates = [f"{readout} {options.RATES['factors', readout]['rate']}" for readout in ("tree", "full")]
    assert re.search(rf"learning rate of the readout \(default: language .*, factors {' or '.join(rates)}", printed)
    assert "tree readout: how rows learn (default: language deterministic, words grouped, factors det" in printed
    hidden = [name for table in tables.values() for name, value in table.items() if value is not None]
    for name in hidden:
        flag = "--" + name.replace("_", "-")
        assert re.search(rf" {flag} [^()]*(\([^()]*\)[^()]*)*\(default", printed), flag


def test_help_of_a_pvm_says_its_defaults(capsys):
    _, printed = said(capsys, "train pvm", "--help")
    for name, value in pvm.DEFAULTS.items():
        assert re.search(rf" --{name.replace('_', '-')} .*?\(default: {value}\)", printed), name


@pytest.mark.parametrize(
    "option, value",
    [("--epochs", "0"), ("--epochs", str(10**18)), ("--epochs", "1e18"), ("--batch", str(MOST + 1)),
     ("--seed", "-3"), ("--rate", "inf"), ("--rate", "nan"), ("--rate", "-1"), ("--momentum", "much"), ("--width", "٣")],
)  # fmt: skip
def test_absurd_numbers_are_refused_by_name(capsys, option, value):
    code, message = said(capsys, "train", "language", "--text", "x", option, value)
    assert code == 2 and f"argument {option}: found '{value}', expected" in message


def test_more_micro_batches_than_examples_are_refused_and_the_default_gives_way():
    given = parsed("train", "language", "--text", "x", "--batch", "64", "--micro-batches", "65")
    with pytest.raises(ValueError, match=r"--micro-batches: found 65, expected 1 to 64, the examples of a batch"):
        options.resolve(given)
    few = options.resolve(parsed("train", "language", "--text", "x", "--batch", "1"))
    assert few["micro_batches"] == 1


@pytest.mark.parametrize(
    "kind, given, refused",
    [("language", ["--similarity", "x"], "--similarity"), ("words", ["--text", "x"], "--text"),
     ("factors", ["--steps", "3"], "--steps"), ("language", ["--at", "10"], "--at"), ("pvm", ["--text", "x"], "--text")],
)  # fmt: skip
def test_eval_refuses_what_a_run_of_another_kind_would_take(kind, given, refused):
    with pytest.raises(ValueError, match=f"{refused}: not used by `eval` of a {kind} run; leave it out"):
        options.for_eval(parsed("eval", "run", *given), kind)


def test_eval_takes_what_is_its_own_and_fills_in_defaults():
    assert options.for_eval(parsed("eval", "run"), "factors")["at"] == 10
    assert options.for_eval(parsed("eval", "run", "--at", "5"), "factors")["at"] == 5
    assert options.for_eval(parsed("eval", "run", "--analogies", "x"), "words")["analogies"] == "x"
