"""Named vectors and similarity search."""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import check, console, metrics
from .answers import Names, Ranked, listed

if TYPE_CHECKING:
    from cpu.search.neighbours import Neighbours

    from ..engine.embedding import Embedding


BLOCK = 4096  # queries per step of the progress bar


class Vectors:
    """V names and their vectors; similarity is the cosine, 0 for a zero vector.

    words  V strings; among duplicates the first is used
    rows   (V, D) floats, kept as float32
    what   the word for a name in messages

    `word in vectors` and `len(vectors)` work; `words, rows = vectors` unpacks both.

    Raises ValueError for rows of another shape or dtype, and for NaN and infinity. Methods raise ValueError, which is also a
    KeyError, for unknown names.
    """

    def __init__(self, words: Sequence[str] | np.ndarray, rows: Any, *, what: str = "word"):
        check.no_table("words", words)
        found = np.asarray(check.unmasked("vectors", rows))
        if found.ndim != 2 or len(found) != len(words) or found.dtype.kind != "f" or not found.size:
            raise ValueError(f"vectors: found {found.dtype} {found.shape}, expected floats ({len(words)}, D) by word")
        self.words = words.tolist() if isinstance(words, np.ndarray) else list(words)
        with np.errstate(over="ignore"):  # an overflow becomes infinite, and is rejected as such
            self.rows = np.ascontiguousarray(found, np.float32)
        check.finite("vectors", self.rows)
        self._names = Names(self.words, what)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles names and rows without the index."""
        return functools.partial(Vectors, what=self._names.what), (self.words, self.rows)

    def __iter__(self) -> Iterator[Any]:
        """Yields the words, then the rows."""
        return iter((self.words, self.rows))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._names

    def __getitem__(self, words: Any) -> np.ndarray:
        """Returns the vector (D,) of a word, or (n, D) for a list of n words."""
        return self.rows[self._names.id(words) if isinstance(words, str) else self._names.ids(words)]

    def most_similar(self, positive: Any = (), negative: Any = (), topn: int = 10) -> list[tuple[str, float]]:
        """Returns the words nearest to the sum of positive minus negative unit vectors, without the words given.

        positive, negative  a word, or a list
        topn                maximum number of results

        Returns a list of (word, cosine), nearest first. a is to b as c is to most_similar([b, c], [a]): 3CosAdd, Mikolov et
        al. 2013, arXiv:1301.3781; Levy and Goldberg 2014.

        Raises ValueError without any words.
        """
        given = [(word, 1.0) for word in listed(positive)] + [(word, -1.0) for word in listed(negative)]
        if not given:
            raise ValueError("most_similar: found neither positive nor negative words, expected some")
        query = np.sum([weight * _unit(self[word]) for word, weight in given], axis=0) / float(len(given))
        left_out = np.unique(self._names.ids([word for word, _ in given]))
        k = min(check.whole("topn", topn, 1), len(self))
        return self._search(query[None], [""], k, np.array([0, len(left_out)]), left_out).pairs[0]

    def similarity(self, first: str, second: str) -> float:
        """Returns the cosine of two words."""
        return float(_unit(self[first]) @ _unit(self[second]))

    def neighbours(self, words: Any, k: int = 10) -> Ranked:
        """Returns the k nearest words of each of n words, without itself; shows a progress bar if slow.

        Raises ValueError for k outside 1 to V.
        """
        check.whole("k", k, 1, len(self))
        asked = listed(words)
        ids = self._names.ids(asked)
        return self._search(self.rows[ids], list(map(str, asked)), k, np.arange(len(ids) + 1), ids)

    def agreement(self, path: Path | str) -> metrics.Agreement:
        """Returns the agreement of cosines with human ratings of pairs; see hybrid/metrics.py."""
        return metrics.agreement(path, self.words, self.rows)

    def analogies(self, path: Path | str, *, most_frequent: int = 30_000) -> metrics.Analogies:
        """Returns the accuracy on analogies; words by descending frequency; see hybrid/metrics.py."""
        return metrics.analogies(path, self.words, self.rows, most_frequent=most_frequent)

    def _search(self, queries: np.ndarray, asked: list[str], k: int, at: np.ndarray, left_out: np.ndarray) -> Ranked:
        """Returns the k nearest of each query (n, D); query i skips left_out[at[i] : at[i + 1]], ascending."""
        from cpu.output.topk import Excluded

        without = Excluded(at[:-1], at[1:], left_out)
        ids, scores = np.empty((len(queries), k), np.int32), np.empty((len(queries), k), np.float32)
        queries = queries.astype(np.float32)
        begins = range(0, len(queries), BLOCK)
        for first in console.bar(len(begins), "searching", "blocks", items=begins, passing=True):
            part = slice(first, first + BLOCK)
            self._all.query(ids[part], scores[part], queries[part], without.of(part))
        return Ranked(asked, ids, scores, self.words)

    @functools.cached_property
    def _all(self) -> "Neighbours":
        """An exact index."""
        from cpu.search.neighbours import Neighbours

        return Neighbours(self.rows, index="exact")


def _unit(vector: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector


# Similarity of words or items, shared by models with vectors.


class Similar:
    """A trained model with a vector per name: the first rows of its embedding.

    names  V strings
    what   the word for a name in messages
    """

    def __init__(self, names: Sequence[str], embedding: "Embedding", what: str):
        self._named, self._embedding, self._what = names, embedding, what

    @functools.cached_property
    def vectors(self) -> Vectors:
        """The names and a copy of their input rows, made on first access."""
        rows: np.ndarray = self._embedding.vectors()[: len(self._named)]
        return Vectors(self._named, rows.copy(), what=self._what)

    def similar(self, names: Any, k: int = 10) -> Ranked:
        """Returns the k nearest of each name, without itself, by cosine; see `Vectors.neighbours`."""
        return self.vectors.neighbours(names, k)
