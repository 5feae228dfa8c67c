"""Command lines with absurd values: every option of a command, given what nobody means; training stops after its first tick."""

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hybrid.cli import main, options
from hybrid.engine import Engine
from hybrid.pvm.model import PVM
from tests.hybrid.pvm import tiny

from .subject import Subject

NAME = "words.json"  # of the file that holds a command line
WORDS = (
    *("-1", "0", "1", "2", "3.5", "1e18", "1e-300", "1e300", "nan", "inf", "-inf", "100000", "5000", "4294967296"),
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
CODES = (0, 1, 2, 130)  # of hybrid/cli/command_line.py


def commands() -> Subject:
    """Read are the words of a file; the file is drawn anew for each case."""
    return Subject(_make, _run, (NAME,), _draw, named=False, share=0.5)


def _good(folder: Path) -> list[list[str]]:
    """Commands that are well, each of one kind."""
    text, ratings, out = str(folder / "text.txt"), str(folder / "u.data"), str(folder / "out")
    small = ["--width", "4", "--threads", "1", "--out", out, "--epochs", "1", "--device", "cpu"]
    return [
        ["train", "language", "--text", text, "--min-count", "1", "--hidden", "6", "--batch", "64", *small],
        ["train", "words", "--text", text, "--min-count", "1", *small],
        ["train", "factors", "--ratings", ratings, "--hidden", "6", "--batch", "64", *small],
        ["train", "labels", "--examples", str(folder / "labels.txt"), *small],
        tiny.command(folder, folder / "out", "--steps", "8"),
        ["eval", out],
        ["export", out, str(folder / "vectors.txt")],
        ["recommend", out, "--user", "1"],
        ["similar", out, "w1"],
        ["next", out, "w1 w2"],
        ["neighbours", str(folder / "vectors.txt"), "w1"],
        ["analogy", str(folder / "vectors.txt"), "w1", "w2", "w3"],
        ["sweep", str(folder / "sweep.toml")],
        ["pvm", "watch", out],
        ["launch", "-n", "1", "eval", out],
        ["data"],
        ["doctor"],
    ]


def _make(folder: Path) -> Path:
    (folder / "text.txt").write_text("\n".join(" ".join(f"w{i * j % 17}" for j in range(9)) for i in range(40)))
    (folder / "u.data").write_text("\n".join(f"{n % 9}\t{n % 7}\t3\t{n}" for n in range(60)))
    (folder / "labels.txt").write_text("__label__a some words\n__label__b other words\n" * 10)
    path = folder / NAME
    path.write_text(json.dumps({"good": _good(folder), "words": _good(folder)[0]}))
    return path


def _draw(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    """One of the good commands, of which some options have absurd values."""
    known = json.loads(content)["good"]
    words = list(known[int(rng.integers(len(known)))])
    own = _options(words)
    for _ in range(1 + int(rng.integers(3))):
        value = WORDS[int(rng.integers(len(WORDS)))]
        if own and rng.random() < 0.85:
            option = own[int(rng.integers(len(own)))]
            if option in words and words.index(option) + 1 < len(words):
                words[words.index(option) + 1] = value
            else:
                words += [option, value]
        else:
            at = int(rng.integers(1, len(words) + 1))
            words[at : at + 1] = [value]
    return json.dumps({"good": known, "words": words}).encode()


def _options(words: list[str]) -> list[str]:
    """The options that a command takes, but those that go on for ever or reach beyond the folder."""
    try:
        top, chosen = options._parser(words[0], words[1:])
    except (ValueError, SystemExit):
        return []
    found = {one for action in (chosen or top)._actions for one in action.option_strings if one.startswith("--")}
    return sorted(found - {"--help", "--version", "--live", "--tensorboard", "--out", "--debug"})


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
