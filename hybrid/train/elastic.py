"""A run goes on without ranks that are lost: from copies in memory, which are made as often as they cost little."""

import contextlib
import gc
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from .. import console
from ..models import MODELS
from ..ranks.buddies import CopiesLost
from ..ranks.everyone import Member, RankLost
from ..ranks.group import Group
from ..ranks.world import world
from ..storage import checkpoint
from ..storage.copies import Copies
from . import store
from .job import Job

T = TypeVar("T")

# How many times as long as a copy takes ranks learn between two: it takes a twentieth of the time at most. A copy after each
# tick would take longer than the ticks. Of a Predictive Vision Model a tick moves 8 bytes a parameter, a copy 16 (it is read
# and written here, and once more for another rank), both twice that with momentum: of `small` a rank of four copies 36 MB of
# its own, which it sends too, and 69 MB of readouts. Of an engine a batch visits few rows of tables that are copied whole.
SHARE = 20
ENDING = 5.0  # seconds in which a rank that is lost leaves the folder of its run


class Memory:
    """The latest copies of a run that may lose ranks, and the clock by which they are made.

    copies  None: there are none yet, or the model makes none
    """

    def __init__(self) -> None:
        self.copies: Copies | None = None
        self._rest = 0.0
        self._last = -math.inf

    @property
    def wanted(self) -> bool:
        """Whether a rank may be lost, and others go on."""
        return world().least is not None and world().size > 1

    def due(self) -> bool:
        """Whether it is time for new ones."""
        return self.wanted and time.monotonic() - self._last >= self._rest

    def renew(self, job: Job, model: Any, facts: dict[str, Any]) -> None:
        """Copy the model; those before stand until all ranks have the new ones."""
        start = time.monotonic()
        copies = job.copied(model, facts)
        self._last = time.monotonic()
        self._rest = SHARE * (self._last - start) if copies else math.inf
        self.copies = copies


class TooFew(OSError):
    """Fewer ranks are left than a run may go on with."""


def going_on(work: Callable[[Group, bool], T]) -> T:
    """What the work of all ranks returns; where some are lost meanwhile, those that remain do it again.

    work(ranks, again)  ranks: who does it; again: whether somebody was lost, in the middle of anything

    All ranks return together, so that nobody leaves whom another may need again. Raises TooFew, where the launcher does not
    know of those that are lost, and has not ended all.
    """
    ranks, again = Group.of_those_left(), False
    while True:
        try:
            found = work(ranks, again)
            ranks.agree()
            return found
        except RankLost as loss:
            said = str(loss)
        ranks, again = Group.of_those_left(), True  # here, where no error holds what was computed any more
        console.mute = ranks.rank > 0
        if ranks.size < (least := world().least or 1):
            raise TooFew(f"{said}, expected {least} or more")


class Begun(NamedTuple):
    """A run under way.

    members  the ranks, of which the first holds its folder
    facts    of the checkpoint that its model comes from; None: it is untrained
    """

    members: list[Member]
    options: dict[str, Any]
    job: Job
    model: Any
    facts: dict[str, Any] | None = None


class Survivors:
    """The ranks that are left of a run.

    under_way  what rank 0 holds of it: its folder, and what its job opens
    """

    def __init__(self, folder: Path, begun: Begun, under_way: contextlib.ExitStack):
        self._folder, self._begun, self._under_way = folder, begun, under_way
        self._memory = Memory()

    def finish(self, learn: Callable[[Path, Begun, Group, Memory], dict[str, Any]]) -> dict[str, Any]:
        """What `learn` returns, which trains to the end; after a loss from what those have that are left."""

        def work(ranks: Group, again: bool) -> dict[str, Any]:
            if again:
                self._go_back(ranks)
            return learn(self._folder, self._begun, ranks, self._memory)

        try:
            return going_on(work)
        except TooFew as failure:
            failure.add_note(store.standing(self._folder))
            raise

    def _go_back(self, ranks: Group) -> None:
        """Load the model for these ranks, and say so."""
        before = self._begun.members
        self._begun = self._begun._replace(model=None, facts=None)
        gc.collect()  # of engines, which are circles, so that two need not fit
        if ranks.members[0] != before[0]:
            ranks.once(self._take_over)
        self._begun, where = self._stood(ranks)
        lost = ", ".join(str(member) for member in before if member not in ranks.members)
        at = f"{self._begun.job.unit} {self._begun.model.tick} ({where})"
        console.say(f"{lost} lost; {ranks.size} of {len(before)} ranks go on from {at}")

    def _take_over(self) -> None:
        """Hold what the rank held that wrote the run, and is lost."""
        self._under_way.close()
        self._under_way.enter_context(self._begun.job.open())
        self._under_way.enter_context(store.taken_over(self._folder, ENDING))

    def _stood(self, ranks: Group) -> tuple[Begun, str]:
        """The run as it stood before ranks were lost, and of what it is made."""
        begun, saved = self._begun._replace(members=ranks.members), self._folder / checkpoint.CHECKPOINT
        load = MODELS.load(begun.options["kind"]).load
        if self._memory.copies:
            with contextlib.suppress(CopiesLost):
                model, facts = load(self._memory.copies, begun.options)
                return begun._replace(model=model, facts=facts), "copies in memory"
        if ranks.once(lambda: checkpoint.stands(saved)):
            model, facts = load(saved, begun.options)
            return begun._replace(model=model, facts=facts), "the checkpoint"
        return begun._replace(model=begun.job.make()), "the beginning"
