"""Named queries and results: words, items, users; with suggestions for unknown names."""

import difflib
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

# Results of many queries: the best of each, with scores.


class Ranked(NamedTuple):
    """The k best results of each of n queries, best first.

    asked   n names: users, items, words
    ids     (n, k) int32 ids of the results, padded with -1
    scores  (n, k) float32, higher is better; -inf where the id is -1
    known   the names indexed by ids
    """

    asked: Sequence[str]
    ids: np.ndarray
    scores: np.ndarray
    known: Sequence[str]

    @property
    def names(self) -> list[list[str]]:
        """The names of each query's results, best first."""
        return [[self.known[id] for id in row if id >= 0] for row in self.ids.tolist()]

    @property
    def pairs(self) -> list[list[tuple[str, float]]]:
        """The names of each query's results with their scores, best first."""
        both = zip(self.ids.tolist(), self.scores.tolist(), strict=True)
        return [[(self.known[id], score) for id, score in zip(*row, strict=True) if id >= 0] for row in both]

    def rows(self) -> Iterator[tuple[str, int, str, float]]:
        """Yields table rows: query, rank from 1, name, score."""
        for asked, found in zip(self.asked, self.pairs, strict=True):
            for rank, (name, score) in enumerate(found, 1):
                yield asked, rank, name, score


def joined(parts: Sequence[Ranked], known: Sequence[str], k: int) -> Ranked:
    """Concatenates parts of one result; an empty result without parts."""
    none = Ranked([], np.empty((0, k), np.int32), np.empty((0, k), np.float32), known)
    asked = [name for part in parts for name in part.asked]
    ids, scores = (np.concatenate([getattr(part, name) for part in (none, *parts)]) for name in ("ids", "scores"))
    return Ranked(asked, ids, scores, known)


LOOKED_AT = 50_000  # limit on names compared with an unknown one: more would take seconds
SHOWN = 3


class UnknownName(ValueError, KeyError):
    """An unknown name; also a KeyError, as dictionaries and gensim raise."""

    def __str__(self) -> str:
        return str(self.args[0])


class Names:
    """V names with their positions as ids. Among duplicates the first counts.

    names  V strings
    what   the word for one in messages: "word", "item", "user"
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
        """Returns the ids (n,) int32 of one name or several, also numbers; UnknownName, with similar ones, for the first."""
        return np.array([self.id(name) for name in listed(asked)], np.int32)

    def id(self, name: Any) -> int:
        """Returns the id of one name; raises as `ids`."""
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
        """Returns names of similar spelling, ignoring case; only the match if one differs just in case."""
        by_lower = {known.lower(): known for known in reversed(self.names[:LOOKED_AT])}
        if name.lower() in by_lower:
            return [by_lower[name.lower()]]
        return [by_lower[near] for near in difflib.get_close_matches(name.lower(), by_lower, SHOWN, 0.75)]


def listed(asked: Any) -> list[Any]:
    """Returns a list of the queries; a string or number becomes a list of one."""
    return list(asked) if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
