"""The gradient of a trunk's parameters: of each micro-batch apart, then added by a fixed tree."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..fixed_tree import Node, Sum


class Gradient:
    """Flat arrays of a device: the gradients of micro-batches, and of those that are added already.

    merge(total, part)  adds a part and clears it
    flags               whole numbers of the host that say which parts of the gradient any micro-batch has; none: it has all

    Between two ticks all arrays are zeros. There are at most log2(M) + 1 of them for M micro-batches, made in the first tick.
    """

    def __init__(self, device: Any, size: int, merge: Callable[[Any, Any], None], dtype: DTypeLike = np.float32):
        self.size, self.dtype = size, np.dtype(dtype)
        self.flags = np.zeros(0, np.int8)
        self._device, self._merge, self._arrays = device, merge, []  # type: Any, Callable[[Any, Any], None], list[Any]
        self.divide((), [slice(0, size)])

    def divide(self, wholes: Sequence[Node], spans: Sequence[slice]) -> None:
        """How it is added up from here on; called between two ticks.

        wholes  the nodes of the tree that this process adds up; none: it has all micro-batches, and adds up all of it
        spans   the parts of the arrays that are added apart, each as soon as it is known
        """
        self._begins = [node.first for node in wholes]
        self.spans = spans
        self._sums = [Sum(self._merge) for _ in spans]

    def part(self, number: int = 0) -> Any:
        """The array of a part, counted from the left; 0 has the whole sum once all are added."""
        while len(self._arrays) <= number:
            self._arrays.append(self._device.from_host(np.zeros(self.size, self.dtype)))
        return self._arrays[number]

    def next(self) -> Any:
        """Zeros, for the gradient of the next micro-batch."""
        return self.part(len(self._sums[-1]))

    def add(self, micro: int) -> None:
        """The array that `next` gave has the gradient of this micro-batch."""
        for span in range(len(self.spans)):
            self.add_span(span, micro)

    def add_span(self, span: int, micro: int) -> None:
        """This span of it is there, and all before it; the others are to follow."""
        found = self._sums[span]
        found.push(Node(micro, 1), self.part(len(found))[self.spans[span]])
        self._last = micro

    def close(self) -> None:
        """The tick has no other micro-batch: each of `wholes` that has any is one part; nothing to do where it was called."""
        for span in range(len(self.spans)):
            self.close_span(span)

    def close_span(self, span: int) -> None:
        """The same of one span."""
        if len(self._sums[span]):
            self._sums[span].close(max((begin for begin in self._begins if begin <= self._last), default=0))
