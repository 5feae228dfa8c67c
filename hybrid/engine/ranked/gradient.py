"""The gradient of a tick, summed over the ranks by the fixed tree of its micro-batches, a span of it after another.

A rank's micro-batches follow each other: they are a few nodes of the tree, which it has added up. Of each of them every rank
is sent its share of the numbers, goes on with the tree there, and sends all others the sum: twice the gradient crosses for
each node that a rank has, and that is one where the micro-batches of each are an even share and a power of two.

A span, such as a layer, crosses as soon as it is known, while backward of the rank's last micro-batch goes on with the layers
before. Numbers are added one by one, so it does not matter to the sums how they are divided into spans and shares.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ranks.group import Group
from ..fixed_tree import Node, Sum, nodes
from ..slot import Slot
from ..trunk._gradient import Gradient


class SharedGradient:
    """What this rank has of it.

    ranks          all of them
    micro_batches  of a batch; each rank has one at least

    spans  how many parts of it cross one after another
    own    the gradient of this rank's trunk: before `add_up` its parts are this rank's nodes; afterwards it is the whole sum
    """

    own: Gradient
    spans: int

    def __init__(self, ranks: Group, micro_batches: int):
        self._ranks = ranks
        begins = [rank * micro_batches // ranks.size for rank in range(ranks.size + 1)]
        self._nodes = [nodes(*pair) for pair in itertools.pairwise(begins)]
        self._rank_of = [
            rank for rank, (first, last) in enumerate(itertools.pairwise(begins)) for _ in range(first, last)
        ]
        self._hosts: list[Any] = []
        self._laid_out: list[_Span] = []

    def rank_of(self, micro: int) -> int:
        """Which rank computes a micro-batch."""
        return self._rank_of[micro]

    def is_last(self, slot: Slot) -> bool:
        """Whether no micro-batch of the same rank with an example follows in its tick."""
        return slot.final or self._rank_of[slot.micro + 1] != self._rank_of[slot.micro]

    def trunk_has(self, trunk: Any, device: Any) -> None:
        """The trunk whose gradient it is, on its device; called before a run."""
        self._trunk, self.own, self._device = trunk, trunk.gradient, device
        self.own.divide(self._nodes[self._ranks.rank], trunk.spans)
        self.spans = len(self.own.spans)

    def fall(self, span: int, slot: Slot) -> None:
        """Go back through the trunk until another span is known, and sum that; slot: this rank's last one of the tick."""
        if span == 0:
            self._falling = self._trunk.falling(slot)
        while next(self._falling) > self.own.spans[span].start:
            pass
        self.own.add_span(span, slot.micro)
        self.own.close_span(span)

    def copy_out(self, span: int, slot: Slot) -> None:
        """Copy a span of the parts from the device to the host."""
        place = self.own.spans[span]
        for number, host in enumerate(self._parts):
            self._device.copy(host[place], self.own.part(number)[place])

    def copy_in(self, span: int, slot: Slot) -> None:
        """Copy the sum to the device; what were other parts becomes zeros."""
        place = self.own.spans[span]
        for number, host in enumerate(self._parts):
            self._device.copy(self.own.part(number)[place], host[place])

    def add_up(self, span: int, slot: Slot) -> None:
        """Sum a span of the parts of all ranks; slot: the last one of the tick with an example."""
        self._there[span].add_up(slot.micro)
        if self.own.flags.size and span == self.spans - 1:
            self._ranks.most(self.own.flags)

    @property
    def _parts(self) -> list[Any]:
        """The parts on the host, made once: in the first tick, when the trunk makes its own arrays, too."""
        if not self._hosts:
            own, many = self.own, range(len(self._nodes[self._ranks.rank]))
            if self._device.host_memory:
                self._hosts = [own.part(number) for number in many]
            else:
                self._hosts = [self._device.host_empty(own.size, own.dtype) for _ in many]
        return self._hosts

    @property
    def _there(self) -> "list[_Span]":
        """The spans on the host; they are made where ranks tell each other other things, too, for all to do it in one order."""
        if not self._laid_out:
            self._laid_out = [
                _Span(self._ranks, self._nodes, [part[span] for part in self._parts]) for span in self.own.spans
            ]
        return self._laid_out


class _Span:
    """A span of the gradient on its way.

    nodes  of the tree, of each rank
    parts  the arrays of this rank's nodes
    """

    def __init__(self, ranks: Group, nodes: Sequence[Sequence[Node]], parts: Sequence[np.ndarray]):
        self.parts, self._nodes = parts, nodes
        rank, whole = ranks.rank, parts[0]
        places = [slice(r * whole.size // ranks.size, (r + 1) * whole.size // ranks.size) for r in range(ranks.size)]
        self._own = whole[places[rank]]
        self._shares: list[Any] = [np.empty((len(theirs), self._own.size), whole.dtype) for theirs in nodes]
        self._shares[rank] = [part[places[rank]] for part in parts]
        self._reduce = []
        for number in range(max(map(len, nodes))):
            send = {r: parts[number][places[r]] for r in ranks.others if number < len(parts)}
            come = {r: self._shares[r][number] for r in ranks.others if number < len(nodes[r])}
            self._reduce.append(ranks.exchange(send, come))
        own = dict.fromkeys(ranks.others, self._own)
        self._gather = ranks.exchange(own, {r: whole[places[r]] for r in ranks.others})

    def add_up(self, last: int) -> None:
        """Sum what begins up to micro-batch `last`: it comes to be in the first part, and zeros in the others."""
        for exchange in self._reduce:
            exchange.start()
        for exchange in self._reduce:
            exchange.wait()
        found = Sum(lambda left, right: np.add(left, right, out=left))
        for theirs, arrays in zip(self._nodes, self._shares, strict=True):
            for node, array in zip(theirs, arrays, strict=True):
                if node.first <= last:
                    found.push(node, array)
        np.copyto(self._own, found.close()[0])
        for part in self.parts[1:]:
            part[:] = 0
        self._gather.start()
        self._gather.wait()
