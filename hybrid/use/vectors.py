"""Vectors by name, and what is near what: with the methods of gensim's KeyedVectors, and their results."""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import check, console
from ..judge import similarity as judge
from .names import Names, listed
from .ranked import Ranked

if TYPE_CHECKING:  # Numba is imported with the first search
    from cpu.neighbours import Neighbours

BLOCK = 4096  # queries between two steps of the progress bar


class Vectors:
    """V names and their vectors; similarity is the cosine, 0 with a vector that is zero.

    words  V strings, which need not differ: of equal ones the first is asked about
    rows   (V, D) floats, kept as float32
    what   what a name is called in messages

    `word in vectors`, `len(vectors)` and `vectors[word]` do what they do in gensim, and so do the methods of the same names.
    `words, rows = vectors` gives both.

    Raises ValueError for rows of another shape or dtype, and for NaN and infinity. Methods raise ValueError, which is a
    KeyError too, for names that are not known.
    """

    def __init__(self, words: Sequence[str] | np.ndarray, rows: Any, *, what: str = "word"):
        found = np.asarray(rows)
        if found.ndim != 2 or len(found) != len(words) or found.dtype.kind != "f" or not found.size:
            raise ValueError(
                f"vectors: found {found.dtype} {found.shape}, expected floats ({len(words)}, D), a row a word"
            )
        self.words = words.tolist() if isinstance(words, np.ndarray) else list(words)
        self.rows = np.ascontiguousarray(found, np.float32)
        check.finite("vectors", self.rows)
        self._names = Names(self.words, what)

    def __reduce__(self) -> tuple[Any, ...]:
        """What searches is made anew: a forest cannot be copied."""
        return functools.partial(Vectors, what=self._names.what), (self.words, self.rows)

    def __iter__(self) -> Iterator[Any]:
        """The words, then the rows."""
        return iter((self.words, self.rows))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._names

    def __getitem__(self, words: Any) -> np.ndarray:
        """The vector (D,) of a word; of a list of n words (n, D)."""
        found: np.ndarray = self.rows[self._names.id(words) if isinstance(words, str) else self._names.ids(words)]
        return found

    @property
    def key_to_index(self) -> dict[str, int]:
        """The place of every word."""
        return self._names.by_name

    @property
    def index_to_key(self) -> list[str]:
        """The words."""
        return self.words

    @property
    def vectors(self) -> np.ndarray:
        """The rows."""
        return self.rows

    @property
    def vector_size(self) -> int:
        """D."""
        return int(self.rows.shape[1])

    def most_similar(self, positive: Any = (), negative: Any = (), topn: int | None = 10) -> Any:
        """The words nearest to the sum of the positive less the negative, all of unit length, without those given.

        positive, negative  words, vectors (D,), or pairs (word or vector, weight), where a negative one has a weight below 0;
                            one or a list
        topn                how many, if there are as many; None: the cosines of all words, (V,) float32

        Returns a list of (word, cosine), nearest first. a is to b as c is to most_similar([b, c], [a]): 3CosAdd, Mikolov et
        al. 2013, arXiv:1301.3781; Levy and Goldberg 2014.

        Raises ValueError where nothing is given, or vectors of another width.
        """
        given = [*_weighted(positive, 1.0), *_weighted(negative, -1.0)]
        total = sum(abs(weight) for _, weight in given)
        if not total:
            raise ValueError("most_similar: found neither positive nor negative words, expected some")
        query = np.sum([weight * self._direction(what) for what, weight in given], axis=0) / total
        if topn is None:
            return self._cosines(query)
        left_out = np.unique(self._names.ids([what for what, _ in given if not isinstance(what, np.ndarray)]))
        k = min(check.whole("topn", topn, 1), len(self))
        return self._search(query[None], [""], k, np.array([0, len(left_out)]), left_out).pairs[0]

    def similar_by_vector(self, vector: Any, topn: int | None = 10) -> Any:
        """The words nearest to a vector (D,); see `most_similar`."""
        return self.most_similar([np.asarray(vector)], topn=topn)

    def similarity(self, first: str, second: str) -> float:
        """The cosine of two words."""
        return float(self._direction(first) @ self._direction(second))

    def n_similarity(self, first: Sequence[str], second: Sequence[str]) -> float:
        """The cosine of the means of two lists of words."""
        for name, words in (("first", first), ("second", second)):
            if not len(words):
                raise ValueError(f"{name}: found no words, expected some")
        means = (self[listed(words)].mean(axis=0) for words in (first, second))
        a, b = (_unit(mean) for mean in means)
        return float(a @ b)

    def neighbours(self, words: Any, k: int = 10, *, annoy: bool = False) -> Ranked:
        """The k words nearest to each of n words, without itself; n of any size, with a progress bar where it takes long.

        annoy  search a forest that is built first and kept, instead of all rows: quicker for many words of a large table,
               and some neighbours are missed; all rows, as is said, where annoy is not installed

        Raises ValueError for k outside 1 to V.
        """
        check.whole("k", k, 1, len(self))
        asked = listed(words)
        ids = self._names.ids(asked)
        return self._search(self.rows[ids], list(map(str, asked)), k, np.arange(len(ids) + 1), ids, annoy=annoy)

    def agreement(self, path: Path | str) -> judge.Agreement:
        """How far cosines order pairs as people do; see hybrid/judge/similarity.py."""
        return judge.agreement(path, self.words, self.rows)

    def analogies(self, path: Path | str, *, most_frequent: int = 30_000) -> judge.Analogies:
        """The share of analogies answered right; words by descending frequency; see hybrid/judge/similarity.py."""
        return judge.analogies(path, self.words, self.rows, most_frequent=most_frequent)

    def _search(
        self, queries: np.ndarray, asked: list[str], k: int, at: np.ndarray, left_out: np.ndarray, annoy: bool = False
    ) -> Ranked:
        """The k nearest of each query (n, D); query i leaves out left_out[at[i] : at[i + 1]], which rise."""
        from cpu.excluded import Excluded

        index = self._forest if annoy else self._all
        without = Excluded(at[:-1], at[1:], left_out)
        ids, scores = np.empty((len(queries), k), np.int32), np.empty((len(queries), k), np.float32)
        queries = queries.astype(np.float32)
        begins = range(0, len(queries), BLOCK)
        for first in console.bar(len(begins), "searching", "blocks", items=begins, passing=True):
            part = slice(first, first + BLOCK)
            index.query(ids[part], scores[part], queries[part], without.of(part))
        return Ranked(asked, ids, scores, self.words)

    @functools.cached_property
    def _all(self) -> "Neighbours":
        """Searches all rows."""
        from cpu.neighbours import Neighbours

        return Neighbours(self.rows, index="exact")

    @functools.cached_property
    def _forest(self) -> "Neighbours":
        """Searches a forest; one thread builds it, so that it finds the same every time."""
        from ..neighbours import live

        index: Neighbours = live(self.rows, exact_below=0)
        index.build()
        return index

    @functools.cached_property
    def _lengths(self) -> np.ndarray:
        lengths: np.ndarray = np.linalg.norm(self.rows, axis=1)
        return np.where(lengths > 0, lengths, np.float32(1))

    def _cosines(self, query: np.ndarray) -> np.ndarray:
        found: np.ndarray = (self.rows @ _unit(query)).astype(np.float32) / self._lengths
        return found

    def _direction(self, what: Any) -> np.ndarray:
        """A word's vector at unit length; a vector as it is."""
        if not isinstance(what, np.ndarray):
            return _unit(self.rows[self._names.id(what)])
        if what.shape != (self.vector_size,) or what.dtype.kind not in "fiu":
            raise ValueError(f"vector: found {what.dtype} {what.shape}, expected numbers ({self.vector_size},)")
        check.finite("vector", what[None])
        return np.asarray(what, np.float32)


def _weighted(some: Any, weight: float) -> list[tuple[Any, float]]:
    """Words and vectors with their weights: what pairs say, else `weight`."""
    if isinstance(some, str | int) or _pair(some) or (isinstance(some, np.ndarray) and some.ndim == 1):
        some = [some]
    return [(one[0], float(one[1])) if _pair(one) else (one, weight) for one in some]


def _pair(one: Any) -> bool:
    """Whether it is a word or vector and its weight."""
    return isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], int | float | np.number)


def _unit(vector: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector
