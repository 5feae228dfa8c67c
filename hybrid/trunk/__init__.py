"""The dense part of a model, between the input rows and the readout: one file per kind.

A kind of trunk is a file of this package, or of another distribution, which registers it by an entry point of the group
"hybrid.trunks". The file exports a class that implements the Protocol below, and:

    Options     a frozen dataclass, a field for each option of its own on the command line, see hybrid/settings.py
    make(inputs, outputs, options, *, seed)   the untrained trunk; options: those of the command line by name
    rebuild(**facts)                          the untrained trunk that `describe()` described, without "kind"
    remade(facts, options)                    optional, if no checkpoint keeps all of it: the trunk that `describe()`
                                              described, made from the options of its run, for Engine.load
    least(**facts)                            optional: minimum number of values in its checkpoint: an altered one is then
                                              rejected before memory is allocated
"""

from collections.abc import Callable, Mapping, Sequence
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
    places   kinds of supported devices: "cpu", "cuda"
    ready    names of the stages after which the gradient of its inputs is complete

    Its stages use float32 arrays (rows, width) of its device in a slot: `x_dev`, its input; `hidden_dev`, its output;
    `grad_dev`, the gradient of the output, which it may overwrite; `x_grad_dev`, the gradient of the input, which it writes;
    and NAME_dev for each further array that `buffers` names. On the CPU these are NumPy's. Stages run in their own threads and
    in the order of micro-batches; after the first tick they should allocate nothing. If slot.learns is False the slot is a
    query: dropout is off.

    It may have more:

    spares     names of arrays among the above that are None in a slot without a reader: ("x_grad",)
    whole      group size of the examples of a batch, which no micro-batch cuts: the length of a sequence
    threaded   True: its numbers on the CPU depend on the thread count of its queue, which no measurement then chooses
    gradient   of one whose work ranks can partition: a `Gradient`
    expect     of a trunk passed to Engine.load: expect(facts) prepares it to be filled as the described one
    """

    kind: str
    places: tuple[str, ...]
    ready: tuple[str, ...]
    inputs: int
    outputs: int

    def place(self, device: Any, kernels: Any) -> None:
        """Moves the computation to a device; called once, by the engine, within the work of a queue.

        kernels  the device's hybrid.backend.Backend: kernels.mlp, kernels.optimiser, kernels.units, ...
        """

    def buffers(self) -> Buffers:
        """Returns hidden and grad, `outputs` wide; and arrays of its own, which `begin` keeps for `finish`."""

    def begin(self, copy: Copies) -> list[Stage]:
        """Returns the stages from x_dev to hidden_dev, after "gather" and "x in", and `copy("hidden out", STAGE)`, where STAGE
        writes it. If slot.learns is False, the slot is a query without dropout.
        """

    def finish(self, copy: Copies, ready: tuple[str, ...]) -> list[Stage]:
        """Returns the stages from grad_dev to x_grad_dev, after those in `ready`; and `copy("x_grad out", STAGE)`.

        They accumulate the gradient of the parameters over micro-batches, without an update.
        """

    def update(self) -> list[Stage]:
        """Returns the stages that update the parameters, once per tick, by slot.scale times the rate. They divide the gradient
        by slot.examples: the number of the batch's examples, or the sum of their weights.
        """

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns every parameter and optimiser state, by name: live arrays of the host, as `fetch` left them."""

    def fetch(self) -> None:
        """Copies the parameters from the device to the host; no operation if the device shares its memory."""

    def send(self) -> None:
        """Copies filled parameters() to the device; no operation if the device shares the host's memory."""

    def describe(self) -> dict[str, Any]:
        """Returns JSON-compatible facts, including "kind", from which `rebuild` makes a trunk of the same kind and shape."""


def make(kind: str, inputs: int, outputs: int, options: Mapping[str, Any], *, seed: int) -> TrunkProtocol:
    """Returns the untrained trunk of a kind, from options of the command line; ValueError for an unknown kind."""
    return registry.load(kind).make(inputs, outputs, options, seed=seed)


def rebuild(facts: dict[str, Any]) -> TrunkProtocol:
    """Returns the untrained trunk of a description: fill its parameters(), then send() them. ValueError for an invalid one."""
    return registry.load(facts["kind"]).rebuild(**_without_kind(facts))


def remade(facts: dict[str, Any], options: Mapping[str, Any]) -> TrunkProtocol | None:
    """Returns, for Engine.load, the described trunk from its run's options if no checkpoint keeps all of it, else None."""
    module = registry.load(facts["kind"])
    return module.remade(facts, options) if hasattr(module, "remade") else None


def least(facts: dict[str, Any]) -> int:
    """Returns the minimum number of values in a checkpoint of the described trunk."""
    module = registry.load(facts["kind"])
    return int(module.least(**_without_kind(facts))) if hasattr(module, "least") else 0


def _without_kind(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "kind"}


class Stages:
    """A trunk with the stages forward, backward and update. A subclass has these methods:

    forward(slot)  writes slot.hidden_dev, and the data that backward needs, from slot.x_dev
    fall(slot)     writes slot.x_grad_dev, if any, from slot.grad_dev (overwritten), and the gradient of the parameters to
                   `gradient.next()`
    move(slot)     updates the parameters with the gradient accumulated since the last call, and clears it

    gradient  that of its parameters, once it is placed
    """

    forward: Callable[[Slot], None]
    fall: Callable[[Slot], None]
    move: Callable[[Slot], None]
    gradient: Any = None
    ready: tuple[str, ...] = ("backward", "x_grad out")
    spares: tuple[str, ...] = ("x_grad",)  # a gradient without a reader is not computed

    def begin(self, copy: Copies) -> list[Stage]:
        return [Stage("forward", "dense", self.forward, ("gather", "x in")), *copy("hidden out", "forward")]

    def finish(self, copy: Copies, ready: tuple[str, ...]) -> list[Stage]:
        return [Stage("backward", "dense", self.backward, ready), *copy("x_grad out", "backward")]

    def update(self) -> list[Stage]:
        return [Stage("update", "dense", self.move, ("backward",))]

    def backward(self, slot: Slot) -> None:
        """Runs `fall`; adds the gradient to that of the previous micro-batches."""
        self.fall(slot)
        self.gradient.add(slot.micro)


class Gradient:
    """The gradient of a trunk's parameters: the sum over micro-batches by a fixed tree.

    Flat arrays of a device: the gradients of micro-batches, and partial sums.

    merge(total, part)  adds a part and clears it
    flags               integers of the host that say which parts of the gradient any micro-batch has; empty: all parts

    Between two ticks all arrays are zeros. There are at most log2(M) + 1 of them for M micro-batches, made in the first tick.
    """

    def __init__(self, device: Any, size: int, merge: Callable[[Any, Any], None], dtype: DTypeLike = np.float32):
        self.size, self.dtype = size, np.dtype(dtype)
        self.flags = np.zeros(0, np.int8)
        self._device = device
        self._arrays: list[Any] = []
        self._begins: list[int] = []
        self._sum = Sum(merge)

    def divide(self, wholes: "Sequence[Node]") -> None:
        """Sets the nodes of the tree that this process sums, which otherwise sums everything; called between two ticks."""
        self._begins = [node.first for node in wholes]

    def part(self, number: int = 0) -> Any:
        """Returns the array of a part, counted from the left; 0 has the total once all are added."""
        while len(self._arrays) <= number:
            self._arrays.append(self._device.from_host(np.zeros(self.size, self.dtype)))
        return self._arrays[number]

    def next(self) -> Any:
        """Returns zeros, for the gradient of the next micro-batch."""
        return self.part(len(self._sum))

    def add(self, micro: int) -> None:
        """Adds the gradient of this micro-batch, which is in the array from `next`."""
        self._sum.push(Node(micro, 1), self.next())
        self._last = micro

    def close(self) -> None:
        """Ends the tick's micro-batches: each nonempty node of `wholes` becomes one part; a second call has no effect."""
        if len(self._sum):
            self._sum.close(max((begin for begin in self._begins if begin <= self._last), default=0))


class Node(NamedTuple):
    """The sum of `size` micro-batches from number `first` on; size is a power of two, first a multiple of it.

    The summation order over micro-batches does not depend on the partition: it is a binary tree, whose leaves are micro-batches
    0 to M - 1. Two adjacent nodes of equal size are added, the right one to the left one, if the left one starts at a multiple
    of twice that size. Nodes beyond the last leaf are omitted: a node with one half is that half. Any range of leaves is thus a
    few nodes, from which any process can continue the sum.
    """

    first: int
    size: int


def nodes(first: int, last: int) -> list[Node]:
    """Returns the fewest nodes that cover the leaves from `first` to before `last`, from left to right."""
    covering = []
    while first < last:
        most = 1 << ((last - first).bit_length() - 1)
        covering.append(Node(first, min(first & -first, most) if first else most))
        first += covering[-1].size
    return covering


class Sum:
    """A summation by the tree, of parts that come from left to right, each with its node.

    add(left, right)  adds the right one to the left one, which then represents both

    For n leaves it keeps at most log2(n) + 1.
    """

    def __init__(self, add: Callable[[Any, Any], None]):
        self._add = add
        self._parts: list[tuple[Node, Any]] = []

    def __len__(self) -> int:
        return len(self._parts)

    def push(self, node: Node, part: Any) -> None:
        """Adds the next part, which starts at the end of the previous one."""
        self._parts.append((node, part))
        while len(self) > 1:
            left, right = self._parts[-2][0], self._parts[-1][0]
            if left.size != right.size or left.first % (2 * left.size):
                break
            self._join()

    def close(self, first: int = 0) -> list[Any]:
        """Merges the parts that start at `first` or later into one. Returns all parts, and clears them."""
        while len(self) > 1 and self._parts[-2][0].first >= first:
            self._join()
        parts, self._parts = [part for _, part in self._parts], []
        return parts

    def _join(self) -> None:
        _, right = self._parts.pop()
        node, left = self._parts[-1]
        self._add(left, right)
        self._parts[-1] = Node(node.first, 2 * node.size), left
