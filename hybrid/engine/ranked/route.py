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

    Hidden vectors go to all ranks behind the trunk, and gradients of its inputs behind its backward: two stages, which parts
    that are not the same everywhere would replace. Questions are answered by each rank for itself.
    """

    ranks: Group
    gradient: SharedGradient

    @property
    def queues(self) -> tuple[str, ...]:
        """That of what ranks tell each other."""
        return (QUEUE,)

    def plan(self) -> Plan:
        """The stages of the trunk, and the copies for it, only of this rank's micro-batches; rows and readout of all."""
        copy, trunk, readout = self.copies, self._trunk, self.readout
        begin = [self._own(stage) for stage in self.begin(copy)]
        there = self._to_all("hidden", ("forward", "hidden out"))
        learn = [
            _behind(there, stage) if stage.queue == "sparse" else self._own(stage) for stage in readout.finish(copy)
        ]
        back = [self._own(stage) for stage in trunk.finish(copy, readout.ready)]
        home = [self._to_all("x_grad", trunk.ready)] if self.embedding.rows else []
        last = [*readout.last(copy), *(_behind(home[0], stage) for stage in self.embedding.last(copy, trunk.ready))]
        return Plan(begin, [there, *learn, *back, *home, *last], self._update(trunk.ready))

    def _update(self, ready: Sequence[str]) -> list[Stage]:
        """The gradient is summed over all ranks, by way of the host, and then each moves its parameters in the same way."""
        told, copied = self.gradient, not self.device.host_memory
        told.trunk_has(self._trunk.gradient, self.device)
        stages = [Stage("sum", "dense", lambda slot: told.own.close(), tuple(ready))]
        stages += [Stage("gradient out", "copy out", told.copy_out, ("sum",))] if copied else []
        stages += [Stage("gradient to all", QUEUE, told.add_up, ("sum", "gradient out"))]
        stages += [Stage("gradient in", "copy in", told.copy_in, ("gradient to all",))] if copied else []
        return stages + [_behind(stages[-1], stage) for stage in self._trunk.update()]

    @property
    def _trunk(self) -> Any:
        return self.trunk

    def _own(self, stage: Stage) -> Stage:
        """A stage that has nothing to do for the micro-batches of other ranks."""

        def work(slot: Slot) -> None:
            if self.gradient.rank_of(slot.micro) == self.ranks.rank:
                stage.work(slot)

        return stage._replace(work=work)

    def _to_all(self, name: str, after: Sequence[str]) -> Stage:
        """An array of the host goes from the rank of its micro-batch to all others."""

        def work(slot: Slot) -> None:
            self.ranks.share(getattr(slot, name), self.gradient.rank_of(slot.micro))

        return Stage(f"{name} to all", QUEUE, work, tuple(after))


def _behind(first: Stage, stage: Stage) -> Stage:
    return stage._replace(after=(*stage.after, first.name))
