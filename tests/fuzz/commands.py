"""Command lines with absurd values: every option of a command, given what nobody means; training stops after its first tick."""

import argparse
import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hybrid.cli import main, options
from hybrid.engine import Engine
from hybrid.pvm.model import PVM
from hybrid.settings import flag
from hybrid.train.options import Parts
from tests.support import small_runs

from .subject import Subject

NAME = "words.json"  # of the file that holds a command line
WORDS = (
    *("-1", "3.5", "1e18", "1e-300", "1e300", "nan", "inf", "-inf", "100000", "5000", "4294967296"),
    *(
        "1" + "0" * 400,
        "",
        " ",
        "a",
        "é",
        "\x1b[31m",
        "/",
        ".",
        "../x",
        "/dev/null",
        "/proc/self/mem",
        "cuda:0",
        "cuda:99",
    ),
    *("auto", "x" * 5_000, "1,2,3", "1:2", "{}", "[", "--", "-", "full", "tree"),
)
NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "7",
    "63",
    "64",
    "65",
    "1000",
    "1000000",
    "1000000000",
    "0.5",
    "1e-30",
    "1e30",
    "1,2",
    "2,2",
)
LEFT = ("--help", "--version", "--live", "--tensorboard", "--out", "--debug", "--resume", "--module")
CODES = (0, 1, 2, 130)  # of hybrid/cli/command_line.py


def commands() -> Subject:
    """Read are the words of a file; the file is drawn anew for each case."""
    return Subject(_make, _run, (NAME,), _draw, named=False, share=0.5)


def _good(folder: Path) -> list[list[str]]:
    """Commands that are well, each of one kind; more often such as train."""
    runs = {kind: str(folder / kind) for kind in small_runs.KINDS}
    vectors, small = str(folder / "vectors.txt"), ["--threads", "1", "--device", "cpu"]
    begun = [[*_trains(kind, folder, folder / "out"), *small, "--overwrite"] for kind in (*small_runs.KINDS, "labels")]
    return [
        *begun * 2,
        *(["train", "--resume", run, *small] for run in runs.values()),
        *(["eval", run, *small] for run in runs.values()),
        ["export", runs["words"], str(folder / "exported.txt"), "--overwrite"],
        ["recommend", runs["factors"], "--users", "1"],
        ["recommend", runs["factors"], "--history", "1,2"],
        ["similar", runs["words"], "w1"],
        ["next", runs["language"], "w1 w2"],
        ["neighbours", vectors, "w1"],
        ["analogy", vectors, "w1", "w2", "w3"],
        ["pvm", "watch", runs["pvm"], "--frames", "2"],
        ["data", "list"],
    ]


def _trains(kind: str, folder: Path, out: Path) -> list[str]:
    if kind == "labels":
        return ["train", "labels", "--examples", str(folder / "labels.txt"), "--trees", "1", "--out", str(out)]
    words = small_runs.command(kind, folder, out)
    return [*words, "--min-count", "1"] if kind == "language" else words


def _make(folder: Path) -> Path:
    (folder / "text.txt").write_text("\n".join(" ".join(f"w{i * j % 17}" for j in range(9)) for i in range(80)))
    lines = (f"{user}\t{(user * 7 + n * 3) % 11}\t3\t{n}" for user in range(12) for n in range(6))
    (folder / "u.data").write_text("\n".join(lines))
    (folder / "labels.txt").write_text("__label__a some words\n__label__b other words\n" * 10)
    for kind in small_runs.KINDS:
        assert main([*_trains(kind, folder, folder / kind), "--quiet"]) == 0
    assert main(["export", str(folder / "words"), str(folder / "vectors.txt")]) == 0
    path = folder / NAME
    path.write_text(json.dumps({"good": _good(folder), "words": _good(folder)[0]}))
    return path


def _draw(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    """One of the good commands, of which one option or two have values that nobody expects, or a word is another."""
    known = json.loads(content)["good"]
    words = list(known[int(rng.integers(len(known)))])
    own = _options(words)
    for _ in range(1 + int(rng.random() < 0.3)):
        if own and rng.random() < 0.9:
            option, action = own[int(rng.integers(len(own)))]
            value = [] if action.nargs == 0 else [_value(action, rng)]
            if value and option in words[:-1]:
                words[words.index(option) + 1] = value[0]
            else:
                words += [option, *value]
        else:
            at = int(rng.integers(1, len(words) + 1))
            if words[at - 1] != "--out":  # else it might write anywhere
                words[at : at + 1] = [_of(WORDS, rng)]
    return json.dumps({"good": known, "words": words}).encode()


def _value(action: argparse.Action, rng: np.random.Generator) -> str:
    """Mostly one that the parser lets pass, so that what comes after it is tried."""
    if rng.random() < 0.3:
        return _of(WORDS, rng)
    return _of([str(one) for one in action.choices] if action.choices else NUMBERS, rng)


def _of(values: Sequence[str], rng: np.random.Generator) -> str:
    return values[int(rng.integers(len(values)))]


def _options(words: list[str]) -> list[tuple[str, argparse.Action]]:
    """The options that a command takes, but those that go on for ever or reach beyond the folder."""
    top, chosen = options._parser(words[0], words[1:])
    found = {
        one: action for action in (chosen or top)._actions for one in action.option_strings if one.startswith("--")
    }
    if words[0] == "train" and not words[1].startswith("-"):
        used = {flag(name) for name in Parts(words[1]).every()}
        found = {one: action for one, action in found.items() if one in used}
    return sorted((one, action) for one, action in found.items() if one not in LEFT)


def _run(path: Path) -> None:
    """AssertionError for a code that is none of the documented ones."""
    words = json.loads(path.read_text())["words"]
    with _stopped():
        try:
            code = main(words)
        except SystemExit as stopped:  # argparse
            code = stopped.code
        except argparse.ArgumentError as error:
            raise AssertionError(f"{words}: {error}") from None
    if code not in CODES:
        raise AssertionError(f"{words}: code {code}")


@contextlib.contextmanager
def _stopped() -> Iterator[None]:
    """Training ends after a tick, as by Ctrl-C."""
    runs: list[tuple[Any, Any]] = [(one, one.run) for one in (Engine, PVM)]

    def shortly(run: Any) -> Any:
        def first(self: Any, *feed: Any, **given: Any) -> Iterator[Any]:
            yield next(iter(run(self, *feed, **given)))
            raise KeyboardInterrupt

        return first

    for owner, run in runs:
        owner.run = shortly(run)
    try:
        yield
    finally:
        for owner, run in runs:
            owner.run = run
