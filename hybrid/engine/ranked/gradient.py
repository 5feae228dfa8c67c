"""The gradient of a tick, summed over the ranks by the fixed tree of its micro-batches.

A rank's micro-batches follow each other: they are a few nodes of the tree, which it has added up. Of each of them every rank
is sent its share of the numbers, goes on with the tree there, and sends all others the sum: twice the gradient crosses for
each node that a rank has, and that is one where the micro-batches of each are an even share and a power of two.
"""

import itertools
from typing import Any

import numpy as np

from ...ranks.group import Exchange, Group
from ..fixed_tree import Sum, nodes
from ..slot import Slot
from ..trunk._gradient import Gradient


class SharedGradient:
    """What this rank has of it.

    ranks          all of them
    micro_batches  of a batch; each rank has one at least

    own  the gradient of this rank's trunk: before `add_up` its parts are this rank's nodes; afterwards it is the whole sum
    """

    own: Gradient

    def __init__(self, ranks: Group, micro_batches: int):
        self._ranks = ranks
        begins = [rank * micro_batches // ranks.size for rank in range(ranks.size + 1)]
        self._nodes = [nodes(*pair) for pair in itertools.pairwise(begins)]
        self._rank_of = [
            rank for rank, (first, last) in enumerate(itertools.pairwise(begins)) for _ in range(first, last)
        ]
        self._parts: list[Any] = []
        self._reduce: list[Exchange] = []

    def rank_of(self, micro: int) -> int:
        """Which rank computes a micro-batch."""
        return self._rank_of[micro]

    def trunk_has(self, own: Gradient, device: Any) -> None:
        """The gradient that the trunk gathers, on its device; called before a run."""
        own.wholes = self._nodes[self._ranks.rank]
        self.own, self._device = own, device

    def copy_out(self, slot: Slot) -> None:
        """Copy the parts from the device to the host."""
        self._lay_out()
        for number, host in enumerate(self._parts):
            self._device.copy(host, self.own.part(number))

    def copy_in(self, slot: Slot) -> None:
        """Copy the sum to the device; what were other parts becomes zeros."""
        for number, host in enumerate(self._parts):
            self._device.copy(self.own.part(number), host)

    def add_up(self, slot: Slot) -> None:
        """Sum the parts of all ranks; slot: the last one of the tick with an example."""
        self._lay_out()
        self._arrange()
        for exchange in self._reduce:
            exchange.start()
        for exchange in self._reduce:
            exchange.wait()
        self._add_share(slot.micro)
        for part in self._parts[1:]:
            part[:] = 0
        self._gather.start()
        self._gather.wait()
        if self.own.flags.size:
            self._ranks.most(self.own.flags)

    def _add_share(self, last: int) -> None:
        """This rank's share of the numbers: what of the tree begins up to micro-batch `last` is there."""
        found = Sum(lambda left, right: np.add(left, right, out=left))
        for theirs, arrays in zip(self._nodes, self._shares, strict=True):
            for node, array in zip(theirs, arrays, strict=True):
                if node.first <= last:
                    found.push(node, array)
        np.copyto(self._parts[0][self._places[self._ranks.rank]], found.close()[0])

    def _lay_out(self) -> None:
        """Make the arrays of the host, once: in the first tick, when the trunk makes its own, too."""
        if self._parts:
            return
        numbers = range(len(self._nodes[self._ranks.rank]))
        if self._device.host_memory:
            self._parts = [self.own.part(number) for number in numbers]
        else:
            self._parts = [self._device.host_empty(self.own.size, self.own.dtype) for _ in numbers]

    def _arrange(self) -> None:
        """Make the exchanges, once, where others are made: all ranks do it in the same order."""
        if self._reduce:
            return
        ranks, rank, size = self._ranks, self._ranks.rank, self.own.size
        many = [len(theirs) for theirs in self._nodes]
        self._places = [slice(r * size // ranks.size, (r + 1) * size // ranks.size) for r in range(ranks.size)]
        share = self._parts[0][self._places[rank]].size
        self._shares: list[Any] = [np.empty((count, share), self.own.dtype) for count in many]
        self._shares[rank] = [part[self._places[rank]] for part in self._parts]
        for number in range(max(many)):
            send = {r: self._parts[number][self._places[r]] for r in ranks.others if number < many[rank]}
            come = {r: self._shares[r][number] for r in ranks.others if number < many[r]}
            self._reduce.append(ranks.exchange(send, come))
        whole = self._parts[0]
        own = dict.fromkeys(ranks.others, whole[self._places[rank]])
        self._gather = ranks.exchange(own, {r: whole[self._places[r]] for r in ranks.others})
