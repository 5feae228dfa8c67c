"""What models share whose words or items have vectors: what is like what."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .ranked import Ranked
from .vectors import Vectors


class Similar:
    """A trained model with a vector for each of its names.

    names  V strings
    rows   gives their vectors (V, D), when they are first asked for
    what   what a name is called in messages
    """

    def __init__(self, names: Sequence[str], rows: Callable[[], np.ndarray], what: str):
        self._named, self._rows, self._what = names, rows, what

    @functools.cached_property
    def vectors(self) -> Vectors:
        """The names and their input rows, as they stood when they were first asked for."""
        return Vectors(self._named, self._rows(), what=self._what)

    def similar(self, names: Any, k: int = 10) -> Ranked:
        """The k nearest to each of some names, by the cosine of their vectors, without itself; see `Vectors.neighbours`."""
        return self.vectors.neighbours(names, k)
