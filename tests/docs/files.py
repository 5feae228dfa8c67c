"""Small files of the names that the pages use, so that their commands run as they stand."""

from pathlib import Path

import numpy as np

from hybrid import Scene
from hybrid.feeds.video.film import Film

from .pages import ROOT, blocks

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
    (folder / "sweep.toml").write_text(sweep)
    with Film(folder / "clip.mp4", 25) as film:
        for image, _ in Scene((60, 60, 3), length=30):
            film.write(image)
