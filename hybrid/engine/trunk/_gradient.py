"""The gradient of a trunk's parameters: of each micro-batch apart, then added by a fixed tree."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..fixed_tree import Node, Sum


class Gradient:
    """Flat arrays of a device: the gradients of micro-batches, and of those that are added already.

    merge(total, part)  adds a part and clears it
    wholes              the nodes of the tree that this process adds up; one that all others are in: it has all micro-batches
    flags               whole numbers of the host that say which parts of the gradient any micro-batch has; none: it has all

    Between two ticks all arrays are zeros. There are at most log2(M) + 1 of them for M micro-batches, made in the first tick.
    """

    def __init__(self, device: Any, size: int, merge: Callable[[Any, Any], None], dtype: DTypeLike = np.float32):
        self.size, self.dtype = size, np.dtype(dtype)
        self.wholes: Sequence[Node] = ()
        self.flags = np.zeros(0, np.int8)
        self._device, self._arrays = device, []  # type: Any, list[Any]
        self._sum = Sum(merge)

    def part(self, number: int = 0) -> Any:
        """The array of a part, counted from the left; 0 has the whole sum once all are added."""
        while len(self._arrays) <= number:
            self._arrays.append(self._device.from_host(np.zeros(self.size, self.dtype)))
        return self._arrays[number]

    def next(self) -> Any:
        """Zeros, for the gradient of the next micro-batch."""
        return self.part(len(self._sum))

    def add(self, micro: int) -> None:
        """The array that `next` gave has the gradient of this micro-batch."""
        self._sum.push(Node(micro, 1), self.part(len(self._sum)))
        self._last = micro

    def close(self) -> None:
        """The tick has no other micro-batch: each of `wholes` that has any is one part; nothing to do where it was called."""
        if len(self._sum):
            self._sum.close(max((node.first for node in self.wholes if node.first <= self._last), default=0))
