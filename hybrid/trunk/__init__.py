"""The dense part of a model, between the input rows and the readout: one file a kind.

A kind of trunk is a file of this package, or of another distribution, which offers it by an entry point of the group
"hybrid.trunks". The file exports a class that keeps the Protocol below, and:

    Options     a frozen dataclass, a field for each option of its own on the command line, see hybrid/settings.py
    make(inputs, outputs, options, *, seed)   the untrained trunk; options: those of the command line by name
    rebuild(**facts)                          the untrained trunk that `describe()` described, without "kind"
    remade(facts, options)                    where no checkpoint keeps all of it (need not be there): the trunk that
                                              `describe()` described, made from the options of its run, for Engine.load
    least(**facts)                            how many numbers a checkpoint of it holds at least (need not be there): an
                                              altered one is then refused before it takes memory
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

from ..schedule.schedule import Buffers, Copies, Stage
from ..schedule.slot import Slot
from ..settings import Registry

registry = Registry("hybrid.trunk", "hybrid.trunks", "trunk")


class TrunkProtocol(Protocol):
    """A net from `inputs` to `outputs` numbers, which learns from the mean loss of a batch.

    kind     the name of its file
    places   kinds of devices where it computes: "cpu", "cuda"
    ready    names of the stages after which the gradient of its inputs is whole

    Its stages find in a slot, as float32 arrays (rows, width) of the device where it was placed: `x_dev`, what it reads;
    `hidden_dev`, what it writes; `grad_dev`, the gradient of that, which it may overwrite; `x_grad_dev`, the gradient of
    what it read, which it writes; and NAME_dev for each array more that `buffers` names. On the CPU these are NumPy's.
    Stages run in threads of their own and in the order of micro-batches; after the first tick they should allocate nothing.
    Where slot.learns is False the slot is a question: dropout is off.

    It may have more:

    spares     names of arrays among the above that are None in a slot where nobody reads them: ("x_grad",)
    whole      the examples of a batch come in groups of so many, which no micro-batch cuts: the length of a sequence
    threaded   whether its numbers on the CPU depend on how many threads its queue has: these are then not left to a measurement
    undelayed  why it cannot begin a batch before the one before is finished, in words
    falling, gradient, spans  of one whose work ranks can share, see hybrid/trunk/__init__.py
    expect     of a trunk that Engine.load is given: expect(facts) gets it ready to be filled as the described one
    """

    kind: str
    places: tuple[str, ...]
    ready: tuple[str, ...]
    inputs: int
    outputs: int

    def place(self, device: Any, kernels: Any) -> None:
        """Compute on this device from here on; called once, by the engine, within the work of a queue.

        kernels  the device's hybrid.backend.Backend: kernels.mlp, kernels.optimiser, kernels.units, ...
        """

    def buffers(self) -> Buffers:
        """hidden and grad, `outputs` wide; and arrays of its own, for what `begin` keeps for `finish`."""

    def begin(self, copy: Copies) -> list[Stage]:
        """From x_dev to hidden_dev, after the stages "gather" and "x in"; and `copy("hidden out", STAGE)`, where STAGE is
        the name of the one that writes it. Where slot.learns is False, a question is asked: nothing is to be dropped then.
        """

    def finish(self, copy: Copies, ready: tuple[str, ...]) -> list[Stage]:
        """From grad_dev to x_grad_dev, after the stages named in `ready`; and `copy("x_grad out", STAGE)`.

        It gathers the gradient of the parameters over micro-batches; nothing moves yet.
        """

    def update(self) -> list[Stage]:
        """Once a tick: the parameters move against that gradient, by slot.scale times the rate and divided by
        slot.examples: how many the batch has, or the sum of their weights.
        """

    def parameters(self) -> dict[str, np.ndarray]:
        """Every parameter and optimiser state, by name: live arrays of the host, as `fetch` left them."""

    def fetch(self) -> None:
        """Bring the parameters from the device to the host; nothing to do where the device shares its memory."""

    def send(self) -> None:
        """Go on from parameters() as they were filled; nothing to do where the device shares the host's memory."""

    def describe(self) -> dict[str, Any]:
        """JSON-able facts, "kind" among them, from which `rebuild` makes a trunk of the same kind and shape."""


def make(kind: str, inputs: int, outputs: int, options: Mapping[str, Any], *, seed: int) -> TrunkProtocol:
    """The untrained trunk of a kind, from options of the command line; ValueError for a kind that is not known."""
    made: TrunkProtocol = registry.load(kind).make(inputs, outputs, options, seed=seed)
    return made


def rebuild(facts: dict[str, Any]) -> TrunkProtocol:
    """The trunk that describe() described, untrained: fill its parameters(), then send() them.

    Raises ValueError for facts that describe no trunk.
    """
    made: TrunkProtocol = registry.load(facts["kind"]).rebuild(**_without_kind(facts))
    return made


def remade(facts: dict[str, Any], options: Mapping[str, Any]) -> TrunkProtocol | None:
    """For Engine.load: the trunk that describe() described, from the options of its run, where a checkpoint does not keep all
    of it, else None.
    """
    module = registry.load(facts["kind"])
    made: TrunkProtocol | None = module.remade(facts, options) if hasattr(module, "remade") else None
    return made


def least(facts: dict[str, Any]) -> int:
    """How many numbers a checkpoint of the trunk that describe() described holds at least."""
    module = registry.load(facts["kind"])
    return int(module.least(**_without_kind(facts))) if hasattr(module, "least") else 0


def _without_kind(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "kind"}


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
