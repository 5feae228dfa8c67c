"""The way of a micro-batch through an engine of several ranks: what one rank has computed goes to all others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...ranks.group import Group
from ..route import Route
from ..schedule import Plan, Stage
from ..slot import Slot
from .gradient import SharedGradient

QUEUE = "ranks"  # one for all that ranks tell each other in a tick, so all do it in the same order


@dataclass(frozen=True)
class RankedRoute(Route):
    """Rows -> trunk of those micro-batches that are this rank's -> readout of all, and back.

    Hidden vectors go to all ranks behind the trunk, and gradients of its inputs behind its backward: so rows and readout can
    be the same everywhere. Those in shards take them where they are, and tell each other what they need within their own
    stages. These are on the queue "sparse", and then all that ranks tell each other is. Each rank computes the trunk of a
    question for itself.
    """

    ranks: Group
    gradient: SharedGradient

    @property
    def queues(self) -> tuple[str, ...]:
        """That of what ranks tell each other, where it is one of its own."""
        return () if self._queue == "sparse" else (QUEUE,)

    @property
    def _queue(self) -> str:
        return "sparse" if in_shards(self.embedding) or in_shards(self.readout) else QUEUE

    def rank_of(self, micro: int) -> int | None:
        """Which rank computes a micro-batch; a question is computed by all."""
        return None if self.readout is None else self.gradient.rank_of(micro)

    def plan(self) -> Plan:
        """The stages of the trunk, and the copies for it, only of this rank's micro-batches; rows and readout of all."""
        copy, trunk, readout = self.copies, self._trunk, self.readout
        begin = [stage if self._of_all(stage) else self._own(stage) for stage in self.begin(copy)]
        there = [] if in_shards(readout) else [self._to_all("hidden", ("forward", "hidden out"))]
        learn = [
            _behind(there, stage) if stage.queue == "sparse" else self._own(stage) for stage in readout.finish(copy)
        ]
        back = [self._own(stage) for stage in trunk.finish(copy, readout.ready)]
        alike = self.embedding.rows and not in_shards(self.embedding)
        home = [self._to_all("x_grad", trunk.ready)] if alike else []
        last = [*readout.last(copy), *(_behind(home, stage) for stage in self.embedding.last(copy, trunk.ready))]
        return Plan(begin, [*there, *learn, *back, *home, *last], self._update(trunk.ready))

    def _update(self, ready: Sequence[str]) -> list[Stage]:
        """The gradient is summed over all ranks, by way of the host, and then each moves its parameters in the same way."""
        told, copied = self.gradient, not self.device.host_memory
        told.trunk_has(self._trunk.gradient, self.device)
        stages = [Stage("sum", "dense", lambda slot: told.own.close(), tuple(ready))]
        stages += [Stage("gradient out", "copy out", told.copy_out, ("sum",))] if copied else []
        stages += [Stage("gradient to all", self._queue, told.add_up, ("sum", "gradient out"))]
        stages += [Stage("gradient in", "copy in", told.copy_in, ("gradient to all",))] if copied else []
        return stages + [_behind(stages[-1:], stage) for stage in self._trunk.update()]

    @property
    def _trunk(self) -> Any:
        return self.trunk

    def _of_all(self, stage: Stage) -> bool:
        """Whether a stage before the trunk is everybody's work: that of rows in shards."""
        return in_shards(self.embedding) and stage.queue == "sparse"

    def _own(self, stage: Stage) -> Stage:
        """A stage that has nothing to do for the micro-batches of other ranks."""

        def work(slot: Slot) -> None:
            if slot.rank == self.ranks.rank:
                stage.work(slot)

        return stage._replace(work=work)

    def _to_all(self, name: str, after: Sequence[str]) -> Stage:
        """An array of the host goes from the rank of its micro-batch to all others."""

        def work(slot: Slot) -> None:
            assert slot.rank is not None
            self.ranks.share(getattr(slot, name), slot.rank)

        return Stage(f"{name} to all", self._queue, work, tuple(after))


def in_shards(part: Any) -> bool:
    """Whether ranks share the parameters of an embedding or a readout, which may be of another distribution."""
    return bool(getattr(part, "sharded", False))


def _behind(first: Sequence[Stage], stage: Stage) -> Stage:
    return stage._replace(after=(*stage.after, *(one.name for one in first)))
