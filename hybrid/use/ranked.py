"""What an answer to many questions looks like: for each its best, with scores."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np


class Ranked(NamedTuple):
    """The k best for each of n that were asked about, best first.

    asked   n names: users, items, words
    ids     (n, k) int32, numbers of what was found; where there are fewer than k, the last are -1
    scores  (n, k) float32, higher is better; -inf where the id is -1
    known   the names that ids are places in
    """

    asked: Sequence[str]
    ids: np.ndarray
    scores: np.ndarray
    known: Sequence[str]

    @property
    def names(self) -> list[list[str]]:
        """The names found for each, best first."""
        return [[self.known[id] for id in row if id >= 0] for row in self.ids.tolist()]

    @property
    def pairs(self) -> list[list[tuple[str, float]]]:
        """Names with their scores, for each, best first."""
        both = zip(self.ids.tolist(), self.scores.tolist(), strict=True)
        return [[(self.known[id], score) for id, score in zip(*row, strict=True) if id >= 0] for row in both]

    def rows(self) -> Iterator[tuple[str, int, str, float]]:
        """A table: asked, rank from 1, name, score."""
        for asked, found in zip(self.asked, self.pairs, strict=True):
            for rank, (name, score) in enumerate(found, 1):
                yield asked, rank, name, score


def joined(parts: Sequence[Ranked], known: Sequence[str], k: int) -> Ranked:
    """Parts of one answer after each other; of no part an empty answer."""
    none = Ranked([], np.empty((0, k), np.int32), np.empty((0, k), np.float32), known)
    asked = [name for part in parts for name in part.asked]
    ids, scores = (np.concatenate([getattr(part, name) for part in (none, *parts)]) for name in ("ids", "scores"))
    return Ranked(asked, ids, scores, known)
