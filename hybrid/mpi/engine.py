"""Data parallelism: ranks partition the trunk's micro-batches; results are identical for any number of ranks.

Rows and readout are replicated: each rank trains its own on all micro-batches, in order.

The gradient of a step is summed over ranks by a fixed tree over micro-batches, one span at a time. A rank's micro-batches are
contiguous, so they form a few tree nodes, which the rank has summed. For each node every rank receives its partition,
continues the tree sum there, and sends the result to all others. So the gradient is transferred twice per node of a rank. A
rank has one node if all have equally many micro-batches, a power of two.

A span, such as a layer, is sent when complete, while backward of the rank's last micro-batch continues with earlier layers.
Numbers are added individually, so spans and partitions do not affect the sums.
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
    if why or not hasattr(engine.trunk, "falling"):
        raise ValueError(f"ranks: found {size}, expected 1: {why or 'the trunk has no gradient that ranks could add'}")
    if engine.delay:
        raise ValueError(f"delay: found {engine.delay} with {size} ranks, expected 0, which is exact; leave it out")
    if engine.micro_batches < size:
        raise ValueError(
            f"micro_batches: found {engine.micro_batches} with {size} ranks, expected {size} at least;"
            " raise it, alike for any number of ranks"
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

    Backward of a rank's last micro-batch has one stage per span of the gradient, whose transfer overlaps the next span.
    """

    ranks: Group
    gradient: "SharedGradient"

    queues: ClassVar[tuple[str, ...]] = (QUEUE,)

    def plan(self) -> Plan:
        """Returns the stages: trunk stages and copies of this rank's micro-batches, rows and readout of all.

        Rows are updated in micro-batch order. From the last micro-batch of rank 0 on, they need input gradients that are
        complete only with all others, so spans are sent first.
        """
        trunk: Any = self.trunk
        copy, learned = self.copies, self.readout.ready
        self.gradient.trunk_has(trunk, self.device)
        there = [self._to_all("hidden", ("forward", "hidden out"))]
        learn = [
            _behind(there, stage) if stage.queue == "sparse" else stage._replace(of=self._own)
            for stage in self.readout.finish(copy)
        ]
        back = [stage._replace(of=self._whole) for stage in trunk.finish(copy, learned)]
        steps, fallen = self._steps(learned), self._step(self.gradient.spans - 1)
        out = [stage._replace(of=self._in_steps) for stage in copy("x_grad out", fallen)]
        # A readout fails on all ranks alike, so none waits for the others after it.
        ready = (*trunk.ready, fallen, *learned)
        home = [self._to_all("x_grad", ready)] if self.embedding.rows else []
        rows = [_behind(home, stage) for stage in self.embedding.last(copy, ready)]
        early = [stage._replace(of=self._is_early) for stage in home]
        late = [stage._replace(of=lambda slot: not self._is_early(slot)) for stage in home]
        return Plan(
            [stage._replace(of=self._own) for stage in self.begin(copy)],
            [*there, *learn, *back, *early, *steps, *out, *late, *self.readout.last(copy), *rows],
            [_behind(steps[-1:], stage) for stage in trunk.update()],
        )

    def _steps(self, learned: Sequence[str]) -> list[Stage]:
        """Returns backward of this rank's last micro-batch, span by span, each summed over ranks through the host."""
        shared, copied, stages = self.gradient, not self.device.host_memory, []
        for span in range(shared.spans):
            step, to_all = self._step(span), f"gradient {span} to all"
            out, home = f"gradient {span} out", f"gradient {span} in"
            work = [functools.partial(do, span) for do in (shared.fall, shared.copy_out, shared.add_up, shared.copy_in)]
            stages += [Stage(step, "dense", work[0], tuple(learned), of=self._in_steps)]
            stages += [Stage(out, "copy out", work[1], (step,), once=True)] if copied else []
            stages += [Stage(to_all, QUEUE, work[2], (step, out, *learned), once=True)]
            stages += [Stage(home, "copy in", work[3], (to_all,), once=True)] if copied else []
        return stages

    def _step(self, span: int) -> str:
        return f"backward {span}"

    def _to_all(self, name: str, after: Sequence[str]) -> Stage:
        """Returns the broadcast of a host array from its micro-batch's rank to all others."""

        def work(slot: Slot) -> None:
            self.ranks.share(getattr(slot, name), self.gradient.rank_of[slot.micro])

        return Stage(f"{name} to all", QUEUE, work, tuple(after))

    def _own(self, slot: Slot) -> bool:
        """True if a micro-batch is this rank's."""
        return self.gradient.rank_of[slot.micro] == self.ranks.rank

    def _in_steps(self, slot: Slot) -> bool:
        """True for this rank's last micro-batch, whose gradient is sent during its backward."""
        return self._own(slot) and self.gradient.is_last(slot)

    def _whole(self, slot: Slot) -> bool:
        """True for this rank's micro-batches whose backward is one stage."""
        return self._own(slot) and not self.gradient.is_last(slot)

    def _is_early(self, slot: Slot) -> bool:
        """True if it precedes the last micro-batch of rank 0."""
        return self.gradient.rank_of[slot.micro] == 0 and not self.gradient.is_last(slot)

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
    spans  the number of parts sent in sequence
    own    the gradient of this rank's trunk: before `add_up` its parts are this rank's nodes; afterwards it is the total
    """

    own: Gradient
    spans: int

    def __init__(self, ranks: Group, micro_batches: int):
        self._ranks = ranks
        begins = [rank * micro_batches // ranks.size for rank in range(ranks.size + 1)]
        self._nodes = [nodes(*pair) for pair in itertools.pairwise(begins)]
        self.rank_of: list[int] = np.repeat(np.arange(ranks.size), np.diff(begins)).tolist()

    def is_last(self, slot: Slot) -> bool:
        """True if no non-empty micro-batch of the same rank follows in its step."""
        return slot.final or self.rank_of[slot.micro + 1] != self.rank_of[slot.micro]

    def trunk_has(self, trunk: Any, device: Any) -> None:
        """Sets the trunk of the gradient, and its device; called before a run."""
        self._trunk, self.own, self._device = trunk, trunk.gradient, device
        self.own.divide(self._nodes[self._ranks.rank], trunk.spans)
        self.spans = len(self.own.spans)

    def fall(self, span: int, slot: Slot) -> None:
        """Runs backward until another span is complete, and sums it; slot: this rank's last one of the step."""
        if span == 0:
            self._falling = self._trunk.falling(slot)
        while next(self._falling) > self.own.spans[span].start:
            pass
        self.own.add_span(span, slot.micro)
        self.own.close_span(span)

    def copy_out(self, span: int, slot: Slot) -> None:
        """Copies a span of the parts from the device to the host."""
        place = self.own.spans[span]
        for number, host in enumerate(self._parts):
            self._device.copy(host[place], self.own.part(number)[place])

    def copy_in(self, span: int, slot: Slot) -> None:
        """Copies the sum to the device; other parts become zeros."""
        place = self.own.spans[span]
        for number, host in enumerate(self._parts):
            self._device.copy(self.own.part(number)[place], host[place])

    def add_up(self, span: int, slot: Slot) -> None:
        """Sums a span of the parts of all ranks; slot: the last non-empty one of the step."""
        self._there[span].add_up(slot.micro)
        if self.own.flags.size and span == self.spans - 1:
            self._ranks.most(self.own.flags)

    @functools.cached_property
    def _parts(self) -> list[Any]:
        """The parts on the host, allocated in the first step, like the trunk's own arrays."""
        own, many = self.own, range(len(self._nodes[self._ranks.rank]))
        if self._device.host_memory:
            return [own.part(number) for number in many]
        return [self._device.host_empty(own.size, own.dtype) for _ in many]

    @functools.cached_property
    def _there(self) -> "list[_Span]":
        """The spans on the host, created on the queue of all messages, so that all ranks create them in the same order."""
        return [_Span(self._ranks, self._nodes, [part[span] for part in self._parts]) for span in self.own.spans]


class _Span:
    """The transfer of a span of the gradient; nodes: of the tree, of each rank; parts: the arrays of this rank's."""

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
