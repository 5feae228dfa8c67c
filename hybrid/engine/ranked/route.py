"""The way of a micro-batch through an engine of several ranks: what one rank has computed goes to all others."""

import functools
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

    Backward of a rank's last micro-batch has a stage for each span of the trunk's gradient, which crosses during the next one.
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
        """The stages of the trunk, and the copies for it, only of this rank's micro-batches; rows and readout of all.

        Rows learn in the order of micro-batches, so from the last one of rank 0 on they wait for gradients of inputs that are
        whole when all others are, too: before these go the spans.
        """
        copy, trunk, learned = self.copies, self._trunk, self.readout.ready
        self.gradient.trunk_has(trunk, self.device)
        there = [] if in_shards(self.readout) else [self._to_all("hidden", ("forward", "hidden out"))]
        learn = [
            _behind(there, stage) if stage.queue == "sparse" else stage._replace(of=self._own)
            for stage in self.readout.finish(copy)
        ]
        back = [stage._replace(of=self._whole) for stage in trunk.finish(copy, learned)]
        steps, fallen = self._steps(learned), self._step(self.gradient.spans - 1)
        out = [stage._replace(of=self._in_steps) for stage in copy("x_grad out", fallen)]
        # Where a readout fails, it fails on all ranks, and none of them waits for the others behind it.
        ready = (*trunk.ready, fallen, *learned)
        alike = self.embedding.rows and not in_shards(self.embedding)
        home = [self._to_all("x_grad", ready)] if alike else []
        rows = [_behind(home, stage) for stage in self.embedding.last(copy, ready)]
        early, late = ([stage._replace(of=of) for stage in home] for of in (self._is_early, self._is_late))
        return Plan(
            [stage if self._of_all(stage) else stage._replace(of=self._own) for stage in self.begin(copy)],
            [*there, *learn, *back, *early, *steps, *out, *late, *self.readout.last(copy), *rows],
            [_behind(steps[-1:], stage) for stage in trunk.update()],
        )

    def _steps(self, learned: Sequence[str]) -> list[Stage]:
        """Backward of this rank's last micro-batch, span by span. Each is summed over all ranks, by way of the host."""
        told, copied, stages = self.gradient, not self.device.host_memory, []
        for span in range(told.spans):
            step, to_all = self._step(span), f"gradient {span} to all"
            out, home = f"gradient {span} out", f"gradient {span} in"
            work = [functools.partial(one, span) for one in (told.fall, told.copy_out, told.add_up, told.copy_in)]
            stages += [Stage(step, "dense", work[0], tuple(learned), of=self._in_steps)]
            stages += [Stage(out, "copy out", work[1], (step,), once=True)] if copied else []
            stages += [Stage(to_all, self._queue, work[2], (step, out, *learned), once=True)]
            stages += [Stage(home, "copy in", work[3], (to_all,), once=True)] if copied else []
        return stages

    def _step(self, span: int) -> str:
        return f"backward {span}"

    @property
    def _trunk(self) -> Any:
        return self.trunk

    def _to_all(self, name: str, after: Sequence[str]) -> Stage:
        """An array of the host goes from the rank of its micro-batch to all others."""

        def work(slot: Slot) -> None:
            assert slot.rank is not None
            self.ranks.share(getattr(slot, name), slot.rank)

        return Stage(f"{name} to all", self._queue, work, tuple(after))

    def _of_all(self, stage: Stage) -> bool:
        """Whether a stage before the trunk is everybody's work: that of rows in shards."""
        return in_shards(self.embedding) and stage.queue == "sparse"

    def _own(self, slot: Slot) -> bool:
        """Whether a micro-batch is this rank's."""
        return slot.rank == self.ranks.rank

    def _in_steps(self, slot: Slot) -> bool:
        """Whether it is this rank's last one, whose gradient crosses during its backward."""
        return self._own(slot) and self.gradient.is_last(slot)

    def _whole(self, slot: Slot) -> bool:
        """Whether it is this rank's, and its backward is one stage."""
        return self._own(slot) and not self.gradient.is_last(slot)

    def _is_early(self, slot: Slot) -> bool:
        """Whether it comes before the last one of rank 0."""
        return slot.rank == 0 and not self.gradient.is_last(slot)

    def _is_late(self, slot: Slot) -> bool:
        return not self._is_early(slot)


def in_shards(part: Any) -> bool:
    """Whether ranks share the parameters of an embedding or a readout, which may be of another distribution."""
    return bool(getattr(part, "sharded", False))


def _behind(first: Sequence[Stage], stage: Stage) -> Stage:
    return stage._replace(after=(*stage.after, *(one.name for one in first)))
