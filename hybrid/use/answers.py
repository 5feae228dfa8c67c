"""Names by which a user asks: words, items, users; and what he may have meant by one that is not known."""

import difflib
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

# What an answer to many questions looks like: for each its best, with scores.


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


LOOKED_AT = 50_000  # names that an unknown one is compared with: of more it would take seconds
SHOWN = 3


class UnknownName(ValueError, KeyError):
    """A name that is not known; a KeyError too, as dictionaries and gensim raise."""

    def __str__(self) -> str:
        return str(self.args[0])


class Names:
    """V names, each with its place as id. Where a name stands there more than once, the first place counts.

    names  V strings
    what   what they are called in messages: "word", "item", "user"
    """

    def __init__(self, names: Sequence[str], what: str):
        self.names, self.what = names, what

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    @functools.cached_property
    def by_name(self) -> dict[str, int]:
        """The id of every name."""
        return {self.names[id]: id for id in reversed(range(len(self.names)))}

    def ids(self, asked: Any) -> np.ndarray:
        """The ids (n,) int32 of names; one string is one name, and a number is the name that it is written as.

        Raises UnknownName, with names that are near, for the first that is not known.
        """
        return np.array([self.id(name) for name in listed(asked)], np.int32)

    def id(self, name: Any) -> int:
        """The id of one name; raises as `ids`."""
        found = self.by_name.get(str(name))
        if found is None:
            raise UnknownName(self._unknown(str(name)))
        return found

    def _unknown(self, name: str) -> str:
        near = self._near(name)
        if near:
            return f"{self.what} {name!r}: not known; did you mean {' or '.join(map(repr, near))}?"
        some = ", ".join(map(repr, self.names[:SHOWN]))
        return f"{self.what} {name!r}: not known; expected one of {len(self):,}, such as {some}"

    def _near(self, name: str) -> list[str]:
        """Names that are spelled alike, upper and lower case aside; one that is equal then stands alone."""
        by_lower = {known.lower(): known for known in reversed(self.names[:LOOKED_AT])}
        if name.lower() in by_lower:
            return [by_lower[name.lower()]]
        return [by_lower[near] for near in difflib.get_close_matches(name.lower(), by_lower, SHOWN, 0.75)]


def listed(asked: Any) -> list[Any]:
    """What was asked for as a list; one string or number is a list of one."""
    return list(asked) if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
