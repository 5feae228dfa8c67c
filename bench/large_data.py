"""Many classes of real text: WikiText-2, where a class is the next word, the next two, or the next one to three words.

WikiText-2 has 33,278 words. More classes that occur as those of a language do are its n-grams: they follow Zipf's law, depend
on what stands before them, and many are rare. Pairs: the 250,000 most frequent ones of the training text, 82 % of its examples
and 73 % of the validation text's. Phrases of one to three words: the million most frequent ones, 83 % and 71 %, of which 56 %
occur once. An example whose class is not among them is left out, of training and of validation. The four words before it are
what every example is told by.
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybrid.feeds import Batch

CONTEXT, BATCH = 4, 512


class Size(NamedTuple):
    """What a class is.

    words    how many of the next words, each of them an example
    classes  the most frequent ones that are kept; None: all
    """

    words: Sequence[int]
    classes: int | None


SIZES = {"words": Size((1,), None), "pairs": Size((2,), 250_000), "phrases": Size((1, 2, 3), 1_000_000)}
QUICK = {"words": Size((1,), None), "pairs": Size((2,), 3_000), "phrases": Size((1, 2, 3), 5_000)}


class Examples(NamedTuple):
    """Contexts (N, CONTEXT) int32 and the class of each, (N,) int32; rows: how many ids contexts have; share: that is kept."""

    contexts: np.ndarray
    target: np.ndarray
    rows: int
    share: float


class Data(NamedTuple):
    """counts (V,) of classes in the training text, falling."""

    train: Examples
    valid: Examples
    counts: np.ndarray


class Grams:
    """Examples, shuffled anew in every epoch, as a `Feed`; ordered: as they are."""

    def __init__(
        self, examples: Examples, counts: np.ndarray, *, epochs: int = 1, seed: int = 0, ordered: bool = False
    ):
        self.examples, self.counts, self.epochs, self.seed, self.ordered = examples, counts, epochs, seed, ordered
        self.rows, self.classes = examples.rows, len(counts)
        self.batch, self.most_ids = BATCH, BATCH * CONTEXT
        self.ticks_per_epoch = -(-len(examples.target) // BATCH)
        self._order: tuple[int, np.ndarray] = (-1, np.arange(len(examples.target)))

    def __len__(self) -> int:
        return self.epochs * self.ticks_per_epoch

    def __getitem__(self, tick: int) -> Batch:
        epoch, at = divmod(tick, self.ticks_per_epoch)
        if not self.ordered and self._order[0] != epoch:
            self._order = epoch, np.random.default_rng([self.seed, epoch]).permutation(len(self.examples.target))
        taken = self._order[1][at * BATCH : (at + 1) * BATCH]
        return Batch(self.examples.contexts[taken].reshape(-1), None, self.examples.target[taken])

    def describe(self) -> dict[str, Any]:
        """See `Feed`."""
        return {"kind": "grams", "classes": self.classes, "seed": self.seed}


def make(folder: Path, size: Size, tokens: int | None = None) -> Data:
    """The examples of a folder's train.txt and valid.txt; tokens: the first so many of each alone."""
    train, valid = (_words(folder / f"{part}.txt")[:tokens] for part in ("train", "valid"))
    numbers: dict[str, int] = {}
    for word in train:
        numbers.setdefault(word, len(numbers))
    ids = [np.array([numbers.get(word, numbers.get("<unk>", 0)) for word in text], np.int32) for text in (train, valid)]
    grams = [_grams(text, size.words, len(numbers)) for text in ids]
    kept, counts = np.unique(grams[0][1], return_counts=True)
    order = np.argsort(-counts, kind="stable")[: size.classes]
    made = [_examples(text, *found, kept[order], len(numbers)) for text, found in zip(ids, grams, strict=True)]
    return Data(made[0], made[1], counts[order])


@functools.cache
def _words(path: Path) -> list[str]:
    """The words of a text, with a mark at the end of every line."""
    with open(path, encoding="utf-8") as lines:
        return [word for line in lines for word in [*line.split(), "<eos>"]]


def _grams(ids: np.ndarray, words: Sequence[int], vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    """Of every length, at every place: where it begins, and a number for the words that follow."""
    places, numbers = [], []
    for length in words:
        last = len(ids) - length + 1
        number = np.full(last, length, np.int64)
        for ahead in range(length):
            number = number * vocabulary + ids[ahead : ahead + last]
        places.append(np.arange(last))
        numbers.append(number)
    return np.concatenate(places), np.concatenate(numbers)


def _examples(
    ids: np.ndarray, places: np.ndarray, numbers: np.ndarray, classes: np.ndarray, vocabulary: int
) -> Examples:
    """Those whose number is one of the classes, which are in falling order of frequency."""
    order = np.argsort(classes)
    found = np.minimum(np.searchsorted(classes[order], numbers), len(classes) - 1)
    there = classes[order][found] == numbers
    padded = np.concatenate([np.full(CONTEXT, vocabulary, np.int32), ids])
    contexts = np.lib.stride_tricks.sliding_window_view(padded, CONTEXT)[places[there]]
    return Examples(contexts, order[found[there]].astype(np.int32), vocabulary + 1, float(there.mean()))
