"""What models share whose words or items have vectors: what is like what."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .ranked import Ranked
from .vectors import Vectors

if TYPE_CHECKING:
    from ..engine.embedding import Embedding


class Similar:
    """A trained model with a vector for each of its names: the first rows of its embedding.

    names  V strings
    what   what a name is called in messages
    """

    def __init__(self, names: Sequence[str], embedding: "Embedding", what: str):
        self._named, self._embedding, self._what = names, embedding, what

    @functools.cached_property
    def vectors(self) -> Vectors:
        """The names and their input rows, as they stood when they were first asked for."""
        rows: np.ndarray = self._embedding.vectors()[: len(self._named)]
        return Vectors(self._named, rows.copy(), what=self._what)

    def similar(self, names: Any, k: int = 10) -> Ranked:
        """The k nearest to each of some names, by the cosine of their vectors, without itself; see `Vectors.neighbours`."""
        return self.vectors.neighbours(names, k)
