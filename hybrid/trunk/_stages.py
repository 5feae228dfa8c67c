"""The stages of a trunk that goes forward, backward and moves, and the gradient that it gathers over micro-batches."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..schedule.schedule import Copies, Stage
from ..schedule.slot import Slot


class Stages:
    """A trunk whose stages are forward, backward and update. A subclass has these methods:

    forward(slot)  writes slot.hidden_dev, and what backward needs, from slot.x_dev
    falling(slot)  goes back, last layers first: writes slot.x_grad_dev, where there is one, from slot.grad_dev (overwritten),
                   and the gradient of the parameters to what `gradient.next()` gives. After each step it yields the place from
                   which on that gradient is complete; 0 when all is done
    move(slot)     moves the parameters against the gradient that was gathered since the last call, and clears it

    gradient  that of its parameters, once it is placed
    """

    forward: Callable[[Slot], None]
    falling: Callable[[Slot], Iterator[int]]
    move: Callable[[Slot], None]
    gradient: Any = None
    ready: tuple[str, ...] = ("backward", "x_grad out")
    spares: tuple[str, ...] = ("x_grad",)  # a gradient that nobody reads is not computed

    def begin(self, copy: Copies) -> list[Stage]:
        """Forward."""
        return [Stage("forward", "dense", self.forward, ("gather", "x in")), *copy("hidden out", "forward")]

    def finish(self, copy: Copies, ready: tuple[str, ...]) -> list[Stage]:
        """Backward; the gradient of the parameters is gathered."""
        return [Stage("backward", "dense", self.backward, ready), *copy("x_grad out", "backward")]

    def update(self) -> list[Stage]:
        """The parameters move, once a tick."""
        return [Stage("update", "dense", self.move, ("backward",))]

    def backward(self, slot: Slot) -> None:
        """All of `falling`; the gradient is added to that of the micro-batches before."""
        for _ in self.falling(slot):
            pass
        self.gradient.add(slot.micro)

    @property
    def spans(self) -> Sequence[slice]:
        """The parts of the gradient that ranks add up as soon as they are complete, in the order of `falling`: here one."""
        return [slice(0, self.gradient.size)]


class Gradient:
    """The gradient of a trunk's parameters: that of each micro-batch, added by a fixed tree.

    Flat arrays of a device: the gradients of micro-batches, and of those that are added already.

    merge(total, part)  adds a part and clears it
    flags               whole numbers of the host that say which parts of the gradient any micro-batch has; none: it has all

    Between two ticks all arrays are zeros. There are at most log2(M) + 1 of them for M micro-batches, made in the first tick.
    """

    def __init__(self, device: Any, size: int, merge: Callable[[Any, Any], None], dtype: DTypeLike = np.float32):
        self.size, self.dtype = size, np.dtype(dtype)
        self.flags = np.zeros(0, np.int8)
        self._device, self._merge = device, merge
        self._arrays: list[Any] = []
        self.divide((), [slice(0, size)])

    def divide(self, wholes: "Sequence[Node]", spans: Sequence[slice]) -> None:
        """How it is added up from here on; called between two ticks.

        wholes  the nodes of the tree that this process adds up; none: it has all micro-batches, and adds up all of it
        spans   the parts of the arrays that are added separately, each as soon as it is known
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
        total = self._sums[span]
        total.push(Node(micro, 1), self.part(len(total))[self.spans[span]])
        self._last = micro

    def close(self) -> None:
        """The tick has no other micro-batch: each of `wholes` that has any is one part; a second call does nothing."""
        for span in range(len(self.spans)):
            self.close_span(span)

    def close_span(self, span: int) -> None:
        """The same of one span."""
        if len(self._sums[span]):
            self._sums[span].close(max((begin for begin in self._begins if begin <= self._last), default=0))


class Node(NamedTuple):
    """The sum of `size` micro-batches from number `first` on; size is a power of two, first a multiple of it.

    Sums over micro-batches have an order that does not depend on who adds what: a binary tree, whose leaves are micro-batches 0
    to M - 1. Two nodes of equal size side by side are added, the right one to the left one, where the left one begins at a
    multiple of twice that size. What of the tree lies beyond the last leaf is left out: a node with one half is that half. So
    any run of leaves is a few nodes, and whoever has these goes on with the sum.
    """

    first: int
    size: int


def nodes(first: int, last: int) -> list[Node]:
    """The fewest nodes that make up the leaves from `first` to before `last`, from left to right."""
    covering = []
    while first < last:
        most = 1 << ((last - first).bit_length() - 1)
        covering.append(Node(first, min(first & -first, most) if first else most))
        first += covering[-1].size
    return covering


class Sum:
    """Adds what comes from left to right, each with its node, by the tree.

    add(left, right)  adds the right one to the left one, which then stands for both

    Of n leaves at most log2(n) + 1 are kept at a time.
    """

    def __init__(self, add: Callable[[Any, Any], None]):
        self._add = add
        self._parts: list[tuple[Node, Any]] = []

    def __len__(self) -> int:
        """How many parts are kept."""
        return len(self._parts)

    def push(self, node: Node, part: Any) -> None:
        """The next one, which begins where the one before ended."""
        self._parts.append((node, part))
        while len(self) > 1:
            left, right = self._parts[-2][0], self._parts[-1][0]
            if left.size != right.size or left.first % (2 * left.size):
                break
            self._join()

    def close(self, first: int = 0) -> list[Any]:
        """No other comes: what begins at `first` or later becomes one. Returns all parts, and forgets them."""
        while len(self) > 1 and self._parts[-2][0].first >= first:
            self._join()
        parts, self._parts = [part for _, part in self._parts], []
        return parts

    def _join(self) -> None:
        _, right = self._parts.pop()
        node, left = self._parts[-1]
        self._add(left, right)
        self._parts[-1] = Node(node.first, 2 * node.size), left
