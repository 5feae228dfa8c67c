"""All ranks that there still are: their communicator, of which groups have copies, and how they go on when some are lost.

The rank that notices a loss revokes all copies, so that no other waits in one for ever: each notices at the call that it is
in, or at its next. Then all that remain make a new communicator. It takes an MPI with ULFM, and a run that may lose ranks
(`World.least`); else MPI ends all of them.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from weakref import WeakSet

from . import watch
from .world import World, become, world


class Member(NamedTuple):
    """A rank by the number that it began with, and its host."""

    number: int
    host: str

    def __str__(self) -> str:
        return f"rank {self.number} on {self.host}"


class RankLost(RuntimeError):
    """Ranks have ended, and the others go on: raised on each of them. From then on they have new numbers, in the old order.

    lost  the members that have ended, by number
    left  how many go on
    """

    def __init__(self, lost: Iterable[Member], left: int):
        self.lost, self.left = list(lost), left
        super().__init__(f"{', '.join(map(str, self.lost))} lost; {left} go on")


class Everyone:
    """The ranks of a run, until some are lost.

    comm     a communicator of all, for copies and agreements alone
    members  who they are, by rank
    """

    def __init__(self, comm: Any, members: list[Member]):
        from mpi4py.MPI import Exception as failure

        self.comm, self.members = comm, members
        self._failure = failure
        self._copies: list[Any] = [comm]
        self._under_way: WeakSet[Any] = WeakSet()
        self._loss: RankLost | None = None
        self._lock = threading.Lock()

    def copy(self) -> Any:
        """A communicator of all, which a loss revokes; all ranks make it."""
        with self.waiting():
            made = self.comm.Dup()
        self._copies.append(made)
        return made

    def settle_at_loss(self, messages: Any) -> None:
        """Let messages.settle() be called when ranks are lost, so that none comes to an array later."""
        self._under_way.add(messages)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around whatever waits for other ranks. A loss becomes a RankLost, at which all that remain meet first."""
        try:
            with watch.meeting():
                yield
        except self._failure as error:
            if world().least is None or not self._has_lost():
                raise
            raise self._noticed() from error

    def agree(self) -> None:
        """Wait until all have come. All ranks that remain return, or all of them raise RankLost."""
        if world().least is None:
            with self.waiting():
                self.comm.Barrier()
        else:
            with watch.meeting():
                together = self._loss is None and self._agreed(self.comm, True)
            if not together:
                raise self._noticed(agreed=True)

    def _has_lost(self) -> bool:
        return any(copy.Is_revoked() or copy.Get_failed().size for copy in self._copies)

    def _noticed(self, agreed: bool = False) -> RankLost:
        """Go on without those that are lost.

        agreed  whether all have agreed already that there are some
        """
        with self._lock, watch.meeting():
            if self._loss is None:
                for copy in self._copies:
                    copy.Revoke()
                for messages in self._under_way:
                    messages.settle()
                if not agreed:
                    self._agreed(self.comm, False)  # others may be waiting for it
                self._loss = self._go_on()
        return RankLost(self._loss.lost, self._loss.left)

    def _go_on(self) -> RankLost:
        """Everyone is those that remain, from now on."""
        global _current
        comm, watched = self._shrunk()
        old = comm.Get_group().Translate_ranks(None, self.comm.Get_group())
        _current = Everyone(comm, [self.members[rank] for rank in old])
        _current._copies.append(watched)
        this = become(world()._replace(rank=comm.rank, size=comm.size, began=_current.members[comm.rank].number))
        watch.move(this, watched, [str(member) for member in _current.members])
        return RankLost((member for rank, member in enumerate(self.members) if rank not in old), comm.size)

    def _shrunk(self) -> tuple[Any, Any]:
        """A communicator of those that remain, and a copy of it; once more where another is lost meanwhile."""
        comm, copy = self.comm, None
        while copy is None:
            comm = comm.Shrink()
            try:
                copy = comm.Dup()
            except self._failure:
                comm.Revoke()
            if not self._agreed(comm, copy is not None):
                copy = None
        return comm, copy

    def _agreed(self, comm: Any, agrees: bool) -> bool:
        """Whether all ranks of a communicator are there and agree: the same on all of them."""
        with suppress(self._failure):
            return bool(comm.Agree(int(agrees)))
        return False


_current: Everyone | None = None


def everyone() -> Everyone:
    """The ranks that there still are; all make the first call together."""
    global _current
    if _current is None:
        from mpi4py import MPI

        this: World = world()
        comm = MPI.COMM_WORLD.Dup()  # no message of ours meets one of the module's
        _current = Everyone(comm, [Member(*one) for one in enumerate(comm.allgather(this.host))])
    return _current
