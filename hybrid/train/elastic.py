"""A run goes on without ranks that are lost: from copies in memory, which are made as often as they cost little."""

import math
import time
from collections.abc import Callable
from typing import Any, TypeVar

from .. import console
from ..ranks.everyone import RankLost
from ..ranks.group import Group
from ..ranks.world import world
from ..storage.copies import Copies
from .job import Job

T = TypeVar("T")

# How many times as long as a copy takes ranks learn between two: it takes a twentieth of the time at most. A copy after each
# tick would take longer than the ticks. Of a Predictive Vision Model a tick moves 8 bytes a parameter, a copy 16 (it is read
# and written here, and once more for another rank), both twice that with momentum: of `small` a rank of four copies 36 MB of
# its own, which it sends too, and 69 MB of readouts. Of an engine a batch visits few rows of tables that are copied whole.
SHARE = 20


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
