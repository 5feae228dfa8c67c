"""Arrays of which each rank has a part, put together on all of them."""

from collections.abc import Sequence

import numpy as np

from ..ranks.group import Group


class Joined:
    """One kind of array, again and again.

    places  of each rank: where its numbers belong in the whole array, flat
    """

    def __init__(self, group: Group, places: Sequence[np.ndarray], dtype: np.dtype):
        self._group, self._counts = group, [len(one) for one in places]
        self._places = np.concatenate(places)
        self._all = np.zeros(len(self._places), dtype)
        first = sum(self._counts[: group.rank])
        self._own = self._all[first : first + self._counts[group.rank]]

    def put(self, whole: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Write the parts of all ranks to an array, and return it; all ranks do it at the same time.

        own  what this rank has, in the order of its places
        """
        self._own[:] = own.reshape(-1)
        self._group.join(self._all, self._counts)
        whole.reshape(-1)[self._places] = self._all
        return whole
