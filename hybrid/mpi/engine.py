"""An engine over several ranks, each of which computes the trunk for some of the micro-batches: the same numbers on any number.

Rows and readout are the same on all ranks: each lets its own learn from all micro-batches, in their order.

The gradient of a tick is summed over the ranks by the fixed tree of its micro-batches, a span of it after another. A rank's
micro-batches follow each other: they are a few nodes of the tree, which it has added up. Of each of them every rank is sent its
share of the numbers, goes on with the tree there, and sends all others the sum: twice the gradient crosses for each node that
a rank has, and that is one where the micro-batches of each are an even share and a power of two.

A span, such as a layer, crosses as soon as it is known, while backward of the rank's last micro-batch goes on with the layers
before. Numbers are added one by one, so it does not matter to the sums how they are divided into spans and shares.
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

QUEUE = "ranks"  # one for all that ranks tell each other in a tick, so all do it in the same order


def ranked(group: Group) -> Callable[["Engine"], Route]:
    """What makes the route of an engine that these ranks share: all make the same calls of it, made of the same arguments.

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
        raise ValueError(
            f"ranks: found {size} and no trunk, expected one: ranks share the work of the trunk alone; leave ranks out"
        )
    reason = getattr(engine.trunk, "unranked", None)
    if reason or not hasattr(engine.trunk, "falling"):
        raise ValueError(
            f"ranks: found {size}, expected 1: {reason or 'the trunk has no gradient that ranks could add'}"
        )
    if engine.delay:
        raise ValueError(f"delay: found {engine.delay} with {size} ranks, expected 0, which is exact; leave it out")
    if engine.micro_batches < size:
        raise ValueError(
            f"micro_batches: found {engine.micro_batches} with {size} ranks, expected {size} at least: a rank computes whole "
            "ones; raise it, to the same number for any number of ranks whose numbers are to be the same"
        )
    for name, part in (("embedding", engine.embedding), ("readout", engine.readout)):
        if not part.backend.device.host_memory:
            raise ValueError(
                f'{name}: found one on "{part.backend.name}" with {size} ranks, expected one on the CPU; leave its backend out'
            )


def _check_alike(engine: "Engine", group: Group) -> None:
    """ValueError, on all ranks, where they have made different engines."""
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
    """Rows -> trunk of those micro-batches that are this rank's -> readout of all, and back.

    Hidden vectors go to all ranks behind the trunk, and gradients of its inputs behind its backward: so rows and readout are
    the same everywhere. Each rank computes the trunk of a question for itself.

    Backward of a rank's last micro-batch has a stage for each span of the trunk's gradient, which crosses during the next one.
    """

    ranks: Group
    gradient: "SharedGradient"

    queues: ClassVar[tuple[str, ...]] = (QUEUE,)

    def plan(self) -> Plan:
        """The stages of the trunk, and the copies for it, only of this rank's micro-batches; rows and readout of all.

        Rows learn in the order of micro-batches, so from the last one of rank 0 on they wait for gradients of inputs that are
        whole when all others are, too: before these go the spans.
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
        # Where a readout fails, it fails on all ranks, and none of them waits for the others behind it.
        ready = (*trunk.ready, fallen, *learned)
        home = [self._to_all("x_grad", ready)] if self.embedding.rows else []
        rows = [_behind(home, stage) for stage in self.embedding.last(copy, ready)]
        early, late = ([stage._replace(of=of) for stage in home] for of in (self._is_early, self._is_late))
        return Plan(
            [stage._replace(of=self._own) for stage in self.begin(copy)],
            [*there, *learn, *back, *early, *steps, *out, *late, *self.readout.last(copy), *rows],
            [_behind(steps[-1:], stage) for stage in trunk.update()],
        )

    def _steps(self, learned: Sequence[str]) -> list[Stage]:
        """Backward of this rank's last micro-batch, span by span. Each is summed over all ranks, by way of the host."""
        shared, copied, stages = self.gradient, not self.device.host_memory, []
        for span in range(shared.spans):
            step, to_all = self._step(span), f"gradient {span} to all"
            out, home = f"gradient {span} out", f"gradient {span} in"
            work = [
                functools.partial(one, span) for one in (shared.fall, shared.copy_out, shared.add_up, shared.copy_in)
            ]
            stages += [Stage(step, "dense", work[0], tuple(learned), of=self._in_steps)]
            stages += [Stage(out, "copy out", work[1], (step,), once=True)] if copied else []
            stages += [Stage(to_all, QUEUE, work[2], (step, out, *learned), once=True)]
            stages += [Stage(home, "copy in", work[3], (to_all,), once=True)] if copied else []
        return stages

    def _step(self, span: int) -> str:
        return f"backward {span}"

    def _to_all(self, name: str, after: Sequence[str]) -> Stage:
        """An array of the host goes from the rank of its micro-batch to all others."""

        def work(slot: Slot) -> None:
            self.ranks.share(getattr(slot, name), self.gradient.rank_of(slot.micro))

        return Stage(f"{name} to all", QUEUE, work, tuple(after))

    def _own(self, slot: Slot) -> bool:
        """Whether a micro-batch is this rank's."""
        return self.gradient.rank_of(slot.micro) == self.ranks.rank

    def _in_steps(self, slot: Slot) -> bool:
        """Whether it is this rank's last one, whose gradient crosses during its backward."""
        return self._own(slot) and self.gradient.is_last(slot)

    def _whole(self, slot: Slot) -> bool:
        """Whether it is this rank's, and its backward is one stage."""
        return self._own(slot) and not self.gradient.is_last(slot)

    def _is_early(self, slot: Slot) -> bool:
        """Whether it comes before the last one of rank 0."""
        return self.gradient.rank_of(slot.micro) == 0 and not self.gradient.is_last(slot)

    def _is_late(self, slot: Slot) -> bool:
        return not self._is_early(slot)

    def write(self, work: Callable[[], object]) -> None:
        """Rank 0 does it."""
        self.ranks.once(work)

    def read(self, work: Callable[[], object]) -> None:
        """All do it."""
        with self.ranks.together():
            work()


def _behind(first: Sequence[Stage], stage: Stage) -> Stage:
    return stage._replace(after=(*stage.after, *(one.name for one in first)))


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

    @functools.cached_property
    def _parts(self) -> list[Any]:
        """The parts on the host: made in the first tick, when the trunk makes its own arrays, too."""
        own, many = self.own, range(len(self._nodes[self._ranks.rank]))
        if self._device.host_memory:
            return [own.part(number) for number in many]
        return [self._device.host_empty(own.size, own.dtype) for _ in many]

    @functools.cached_property
    def _there(self) -> "list[_Span]":
        """The spans on the host: made on the queue of all messages between ranks, so all make them in one order."""
        return [_Span(self._ranks, self._nodes, [part[span] for part in self._parts]) for span in self.own.spans]


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
