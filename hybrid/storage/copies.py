"""Checkpoints in the memory of ranks, which go back to them when some of them are lost."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..ranks.buddies import Buddies
from ..ranks.group import Group


class Copies:
    """What a checkpoint would have had when they were made; the model that wrote it loads them in the place of a folder.

    All ranks make them at the same time. At a loss that raises RankLost on all of them or on none.

    facts  what else the checkpoint would have told
    """

    def __init__(self, facts: dict[str, Any]):
        self.facts: dict[str, Any] = json.loads(json.dumps(facts))  # as they stand now

    def __str__(self) -> str:
        return "copies in memory"


class Whole(Copies):
    """Of a model that is the same on all ranks: each copies its own, and sends nothing."""

    def __init__(self, group: Group, arrays: Mapping[str, np.ndarray], facts: dict[str, Any]):
        super().__init__(facts)
        self._arrays = {name: array.copy() for name, array in arrays.items()}
        group.agree()

    def fill(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Overwrite arrays of the same names and shapes."""
        for name, array in arrays.items():
            array[...] = self._arrays[name]


class Parted(Copies):
    """Of a model of which each rank has a part: another rank keeps that part, too.

    common  arrays that are the same on all ranks: each copies its own, as in `Whole`
    """

    def __init__(
        self,
        group: Group,
        arrays: Mapping[str, np.ndarray],
        facts: dict[str, Any],
        common: Mapping[str, np.ndarray] | None = None,
    ):
        super().__init__(facts)
        self.common = {name: array.copy() for name, array in (common or {}).items()}
        self._names, self._buddies = list(arrays), Buddies(group)
        self._buddies.keep(0, list(arrays.values()))

    def parts(self, group: Group) -> Iterator[dict[str, np.ndarray]]:
        """The arrays of each rank that there was, by name, as `Buddies.parts` gives them. Raises CopiesLost as that does."""
        for arrays in self._buddies.parts(group):
            yield dict(zip(self._names, arrays, strict=True))
