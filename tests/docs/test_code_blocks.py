"""Every block of code of README and docs works as it stands there.

Python runs, the blocks of a page in one namespace. Commands of `hybrid` run too, on small files of the names that they
use; those for a GPU are parsed, and then meet that there is none. Of other commands what they name must be there.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from bench.__main__ import WANTED, benchmarks
from hybrid import Scene
from hybrid.cli import main, options
from hybrid.cli.options import COMMANDS
from hybrid.feeds.video.film import Film

from .pages import PAGES, ROOT, blocks, commands

LONG = ("train pvm", "eval runs/pvm", "pvm compare")  # of videos; the first by default takes a minute
LANGUAGES = {"python", "sh", "text", "toml"}
RUN = {page: [block for block in blocks(page) if block.language in LANGUAGES] for page in PAGES}


@pytest.mark.parametrize("page", [page for page in PAGES if RUN[page]], ids=lambda page: page.stem)
def test_blocks(page, tmp_path, monkeypatch, capsys):
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    space: dict = {"printed": []}
    printed = ""  # by the block before; a block of text after it shows that
    for block in RUN[page]:
        if block.language == "python":
            exec(compile(block.code, page.name, "exec"), space)
            printed = capsys.readouterr().out
            space["printed"].append(printed)
        elif block.language == "sh":
            for command in commands(block.code):
                _run(command, capsys)
            printed = ""
        elif block.language == "toml":
            tomllib.loads(block.code)
        elif printed:
            assert _plain(block.code) == _plain(printed)
    CHECKS.get(page.stem, lambda space: None)(space)


def _language(space):
    assert space["losses"][-1] < space["losses"][0] and len(space["ids"][0]) == 5
    assert any("nats; the value of the:" in line for line in space["printed"])
    assert Path("vectors.txt").read_text().startswith("20 100\n")


def _readout(space):
    assert np.isfinite(space["loss"]) and space["ids"].shape == (256, 10) and space["log_probs"].max() < 0


def _units(space):
    *_, collection, ensemble = (line.split() for line in space["printed"] if line)
    assert float(collection[0]) < 1.0  # it begins near 6
    assert float(ensemble[-1]) > 0.01  # the slowest have hardly moved


def _video(space):
    assert space["out"].tick == 19 and space["printed"][-1].count("(40, 40, 3)") == 1
    assert {"watch.mp4", "report.json", "last.png"} <= {path.name for path in Path("runs/pvm").iterdir()}
    assert Path("dream.gif").stat().st_size


CHECKS = {"language": _language, "output-layers": _readout, "units": _units, "pvm": _video}  # of pages, by name


def test_every_command_is_shown():
    shell = [block for page in PAGES for block in RUN[page] if block.language == "sh"]
    shown = {line.split()[1] for block in shell for line in commands(block.code)}
    assert COMMANDS.keys() <= shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_languages_of_blocks(page):
    """A block in another language would not be run."""
    assert {block.language for block in blocks(page)} <= LANGUAGES


def _run(command: str, capsys) -> None:
    program, *rest = shlex.split(command)
    if program == "hybrid":
        _hybrid(command.removeprefix("hybrid "), capsys)
    elif program == "make":
        assert f"\n{rest[0]}:" in (ROOT / "Makefile").read_text(), command
    elif program == "pip":
        assert set(re.findall(r"\w+", (re.search(r"\[(.*)\]", command) or [""])[0])) <= _extras(), command
    elif rest[:2] == ["-m", "bench"]:
        assert rest[2] in {*benchmarks(), *WANTED}, command
    elif rest[:1] == ["-m"]:
        assert list((ROOT / rest[1].replace(".", "/")).parent.glob(f"{rest[1].split('.')[-1]}*")), command
    else:
        assert program in ("python", "bash") and (ROOT / rest[0]).is_file(), command


def _hybrid(command: str, capsys) -> None:
    if command.startswith(LONG):
        command = re.sub(r" --steps \d+", "", command) + " --steps 40"
    if command.startswith(
        "data get"
    ):  # there is no network in tests; tests/hybrid/cli/commands/test_data.py has a server
        options.read(shlex.split(command))
        return
    if command.startswith("launch"):  # it becomes another program
        subprocess.run([sys.executable, "-m", "hybrid", *shlex.split(command)], check=True, capture_output=True)
        return
    code = main(shlex.split(command))
    error = capsys.readouterr().err
    if "cuda" in command:
        assert code == 2 and "these tests are the CPU's" in error, command
    else:
        assert code == 0, (command, error)


def _extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def _plain(text: str) -> list[str]:
    """Words of an output, every number as #: what is printed must be shown so, but figures differ between machines."""
    return re.sub(r"\d[\d.,]*", "#", text).split()


# Small files of the names that the pages use, so that their commands run as they stand

NET = """
import torch

def make(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, outputs), torch.nn.Tanh())
"""
DISHES = ("rice", "beans", "cake")
WORDS = [f"word{i}" for i in range(20)]


def write(folder: Path) -> None:
    """Texts, ratings, judgements of words, the sweep of its page, a program that makes a net, and a clip."""
    rng = np.random.default_rng(0)
    for name in ("book", "other", "train", "valid", "test"):
        lines = (" ".join(WORDS[(i + t) % 20] for t in range(8)) for i in rng.integers(0, 20, 200))
        (folder / f"{name}.txt").write_text("\n".join(lines))
    (folder / "net.py").write_text(NET)
    tagged = "".join(f"__label__{DISHES[i % 3]} a pot of {DISHES[i % 3]} w{i % 7}\n" for i in range(60))
    for name in ("tagged", "others"):
        (folder / f"{name}.txt").write_text(tagged)
    pairs = (f"{WORDS[i]}\t{WORDS[j]}\t{rng.random():.2f}" for i in range(5) for j in range(i))
    (folder / "wordsim353.tsv").write_text("\n".join(pairs))
    (folder / "questions-words.txt").write_text(": family\nword0 word1 word2 word3\n")
    rows = [(u, (u + t) % 15, t) for u in range(40) for t in range(8)]
    (folder / "u.data").write_text("".join(f"{u}\t{i}\t5\t{t}\n" for u, i, t in rows))
    (folder / "ratings.csv").write_text("who,what,when\n" + "".join(f"{u},{i},{t}\n" for u, i, t in rows))
    sweep = next(block.code for block in blocks(ROOT / "docs" / "runs.md") if block.language == "toml")
    (folder / "sweep.toml").write_text(sweep.replace("trials = 20", "trials = 4"))
    with Film(folder / "clip.mp4", 25) as film:
        for image, _ in Scene((60, 60, 3), length=30):
            film.write(image)
