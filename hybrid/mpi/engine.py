"""Data parallelism: ranks partition the trunk's micro-batches; results are identical for any number of ranks.

Rows and readout are replicated: each rank trains its own on all micro-batches, in order.

The gradient of a step is summed over ranks by a fixed tree over micro-batches. A rank's micro-batches are contiguous, so they
form a few tree nodes, which the rank has summed. For each node every rank receives its partition, continues the tree sum
there, and sends the result to all others. So the gradient is transferred twice per node of a rank. A rank has one node if all
have equally many micro-batches, a power of two. Numbers are added individually, so partitions do not affect the sums.
"""

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..engine.route import Route, routed
from ..schedule.schedule import Plan, Stage
from ..schedule.slot import Slot
from ..trunk import Gradient, Node, Sum, nodes
from .group import Group

if TYPE_CHECKING:
    from ..engine.engine import Engine

QUEUE = "ranks"  # one queue for all messages of a step, so that all ranks send them in the same order


def ranked(group: Group) -> Callable[["Engine"], Route]:
    """Returns the route factory of an engine shared by these ranks; all call it with equal arguments.

    Pipeline and Engine.load take it. It raises ValueError for parts and settings that ranks cannot share.
    """

    def route(engine: "Engine") -> Route:
        alone = routed(engine)
        if group.size == 1:
            return alone
        _check(engine, group.size)
        _check_alike(engine, group)
        gradient = SharedGradient(group, engine.micro_batches)
        return RankedRoute(alone.embedding, alone.trunk, alone.readout, alone.device, group, gradient)

    return route


def _check(engine: "Engine", size: int) -> None:
    if engine.trunk is None:
        raise ValueError(f"ranks: found {size} and no trunk, expected one, whose work they share; leave ranks out")
    why = getattr(engine.trunk, "unranked", None)
    if why or not hasattr(engine.trunk, "gradient"):
        raise ValueError(f"ranks: found {size}, expected 1: {why or 'the trunk has no gradient that ranks could add'}")
    if engine.micro_batches < size:
        raise ValueError(
            f"micro_batches: found {engine.micro_batches} with {size} ranks, expected {size} at least;"
            " raise it, for any number of ranks"
        )
    for name, part in (("embedding", engine.embedding), ("readout", engine.readout)):
        if not part.backend.device.host_memory:
            raise ValueError(f'{name}: found "{part.backend.name}" with {size} ranks, expected "cpu", the default')


def _check_alike(engine: "Engine", group: Group) -> None:
    """Raises ValueError, on all ranks, if their engines differ."""
    facts = [part.describe() for part in (engine.embedding, engine.trunk, engine.readout) if part]
    facts += [{"micro_batches": engine.micro_batches} | dataclasses.asdict(engine.schedule)]
    facts += [{"threads": engine.threads}] if getattr(engine.trunk, "threaded", False) else []
    number = int.from_bytes(hashlib.blake2b(repr(facts).encode(), digest_size=7).digest(), "little")
    greatest, least = group.greatest(number, -number)
    if greatest != -least:
        raise ValueError(
            "ranks: found engines made of different arguments, expected the same on all ranks: rates, seeds, micro_batches; "
            "threads, too, where PyTorch's numbers depend on them"
        )


@dataclass(frozen=True)
class RankedRoute(Route):
    """The route of a rank: rows -> trunk for its own micro-batches -> readout for all, and back.

    Hidden vectors are broadcast after the trunk, and input gradients after its backward, so rows and readout stay identical.
    For a query, each rank computes the trunk itself.
    """

    ranks: Group
    gradient: "SharedGradient"

    queues: ClassVar[tuple[str, ...]] = (QUEUE,)

    def plan(self) -> Plan:
        """Returns the stages: trunk stages and copies of this rank's micro-batches, rows and readout of all.

        Rows are updated in micro-batch order, while the gradient is summed.
        """
        trunk: Any = self.trunk
        copy, learned = self.copies, self.readout.ready
        self.gradient.trunk_has(trunk, self.device)
        there = [self._to_all("hidden", ("forward", "hidden out"))]
        learn = [
            _behind(there, stage) if stage.queue == "sparse" else stage._replace(of=self._own)
            for stage in self.readout.finish(copy)
        ]
        back = [stage._replace(of=self._own) for stage in trunk.finish(copy, learned)]
        # A readout fails on all ranks alike, so none waits for the others after it.
        ready = (*trunk.ready, *learned)
        home = [self._to_all("x_grad", ready)] if self.embedding.rows else []
        rows = [_behind(home, stage) for stage in self.embedding.last(copy, ready)]
        added = self._added(ready)
        return Plan(
            [stage._replace(of=self._own) for stage in self.begin(copy)],
            [*there, *learn, *back, *home, *added, *self.readout.last(copy), *rows],
            [_behind(added[-1:], stage) for stage in trunk.update()],
        )

    def _added(self, ready: Sequence[str]) -> list[Stage]:
        """Returns the stages that sum the gradient over ranks, through the host."""
        shared = self.gradient
        stages = [
            Stage("gradient", "dense", shared.close, tuple(ready), once=True),
            Stage("gradient out", "copy out", shared.copy_out, ("gradient",), once=True),
            Stage("gradient to all", QUEUE, shared.add_up, ("gradient", "gradient out"), once=True),
            Stage("gradient in", "copy in", shared.copy_in, ("gradient to all",), once=True),
        ]
        return [stage for stage in stages if not (self.device.host_memory and stage.queue.startswith("copy"))]

    def _to_all(self, name: str, after: Sequence[str]) -> Stage:
        """Returns the broadcast of a host array from its micro-batch's rank to all others."""

        def work(slot: Slot) -> None:
            self.ranks.share(getattr(slot, name), self.gradient.rank_of[slot.micro])

        return Stage(f"{name} to all", QUEUE, work, tuple(after))

    def _own(self, slot: Slot) -> bool:
        """True if a micro-batch is this rank's."""
        return self.gradient.rank_of[slot.micro] == self.ranks.rank

    def write(self, work: Callable[[], object]) -> None:
        """Runs it on rank 0."""
        self.ranks.once(work)

    def read(self, work: Callable[[], object]) -> None:
        """Runs it on all ranks."""
        with self.ranks.together():
            work()


def _behind(first: Sequence[Stage], stage: Stage) -> Stage:
    return stage._replace(after=(*stage.after, *(one.name for one in first)))


class SharedGradient:
    """The part of a rank in a gradient shared by all.

    ranks          all of them
    micro_batches  of a batch; each rank has at least one

    rank_of  the rank that computes each micro-batch
    own    the gradient of this rank's trunk: before `add_up` its parts are this rank's nodes; afterwards it is the total
    """

    own: Gradient

    def __init__(self, ranks: Group, micro_batches: int):
        self._ranks = ranks
        begins = [rank * micro_batches // ranks.size for rank in range(ranks.size + 1)]
        self._nodes = [nodes(*pair) for pair in itertools.pairwise(begins)]
        self.rank_of: list[int] = np.repeat(np.arange(ranks.size), np.diff(begins)).tolist()

    def trunk_has(self, trunk: Any, device: Any) -> None:
        """Sets the trunk of the gradient, and its device; called before a run."""
        self.own, self._device = trunk.gradient, device
        self.own.divide(self._nodes[self._ranks.rank])

    def close(self, slot: Slot) -> None:
        """Ends this rank's sum of its micro-batches."""
        self.own.close()

    def copy_out(self, slot: Slot) -> None:
        """Copies the parts from the device to the host."""
        for number, host in enumerate(self._parts):
            self._device.copy(host, self.own.part(number))

    def copy_in(self, slot: Slot) -> None:
        """Copies the sum to the device; other parts become zeros."""
        for number, host in enumerate(self._parts):
            self._device.copy(self.own.part(number), host)

    def add_up(self, slot: Slot) -> None:
        """Sums the parts of all ranks; slot: the last non-empty one of the step."""
        self._there.add_up(slot.micro)
        if self.own.flags.size:
            self._ranks.most(self.own.flags)

    @functools.cached_property
    def _parts(self) -> list[Any]:
        """The parts on the host, allocated in the first step, like the trunk's own arrays."""
        own, many = self.own, range(len(self._nodes[self._ranks.rank]))
        if self._device.host_memory:
            return [own.part(number) for number in many]
        return [self._device.host_empty(own.size, own.dtype) for _ in many]

    @functools.cached_property
    def _there(self) -> "_Transfer":
        """The transfer, created on the queue of all messages, so that all ranks create it at the same point."""
        return _Transfer(self._ranks, self._nodes, self._parts)


class _Transfer:
    """The transfer of the gradient; nodes: of the tree, of each rank; parts: the arrays of this rank's."""

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
        """Sums the nodes that begin up to micro-batch `last` into the first part, and zeroes the others."""
        for exchange in self._reduce:
            exchange.start()
        for exchange in self._reduce:
            exchange.wait()
        total = Sum(lambda left, right: np.add(left, right, out=left))
        for theirs, arrays in zip(self._nodes, self._shares, strict=True):
            for node, array in zip(theirs, arrays, strict=True):
                if node.first <= last:
                    total.push(node, array)
        np.copyto(self._own, total.close()[0])
        for part in self.parts[1:]:
            part[:] = 0
        self._gather.start()
        self._gather.wait()
