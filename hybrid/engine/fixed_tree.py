"""Sums over micro-batches in an order that does not depend on who adds what: a binary tree over their numbers.

The leaves are micro-batches 0 to M - 1. Two leaves or nodes of equal size that lie side by side are added, the right one to
the left one, where the left one begins at a multiple of twice that size. What of the tree lies beyond the last leaf is left
out: a node with one half is that half. So any run of leaves is a few whole nodes, and whoever has these goes on with the sum.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class Node(NamedTuple):
    """The sum of `size` micro-batches from number `first` on; size is a power of two, first a multiple of it."""

    first: int
    size: int


def nodes(first: int, last: int) -> list[Node]:
    """The fewest nodes that make up the leaves from `first` to before `last`, from left to right."""
    found = []
    while first < last:
        most = 1 << ((last - first).bit_length() - 1)
        found.append(Node(first, min(first & -first, most) if first else most))
        first += found[-1].size
    return found


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
        while len(self) > 1 and _halves(self._parts[-2][0], node):
            node = self._join()

    def close(self, first: int = 0) -> list[Any]:
        """No other comes: what begins at `first` or later becomes one. Returns all parts, and forgets them."""
        while len(self) > 1 and self._parts[-2][0].first >= first:
            self._join()
        parts, self._parts = [part for _, part in self._parts], []
        return parts

    def _join(self) -> Node:
        _, right = self._parts.pop()
        node, left = self._parts[-1]
        self._add(left, right)
        self._parts[-1] = Node(node.first, 2 * node.size), left
        return self._parts[-1][0]


def _halves(left: Node, right: Node) -> bool:
    """Whether two nodes that lie side by side are the halves of one."""
    return left.size == right.size and left.first % (2 * left.size) == 0
