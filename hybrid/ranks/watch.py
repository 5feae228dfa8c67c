"""A rank that does not come is named, and all end.

Ranks meet wherever one waits for another. A thread in each rank looks whether its rank has waited longer than the patience;
then it asks the threads of all others where they are. A rank that waits at another meeting, that works, or whose thread does
not answer has not come.
Wait in calls of MPI for buffers, such as Allreduce: mpi4py's allreduce for objects lets no other thread run.
"""

import contextlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .world import World

PATIENCE = 300.0  # seconds: more than kernels take to compile, or a checkpoint to be written
ANSWER = 2.0  # seconds in which a rank that lives answers; a process that swaps may take longer
READ = 0.1  # seconds in which mpiexec reads what ranks have said; MPICH's drops the rest when they are ended
ASK, TELL = 1, 2  # tags


class Where(NamedTuple):
    """Where a rank is: how many meetings it has come to, the seconds that it waits there (0: it works), its line of code."""

    meetings: int
    waited: float
    line: str


_current: "Watch | None" = None


def begin(world: World, comm: Any, names: Sequence[str], patience: float) -> None:
    """Watch this process from now on; the arguments are those of Watch."""
    global _current
    _current = Watch(world, comm, names, patience)


def move(world: World, comm: Any, names: Sequence[str]) -> None:
    """Ranks have been lost: watch those that remain."""
    if _current:
        _current.move(world, comm, names)


def end() -> None:
    """Watch no longer."""
    global _current
    if _current:
        _current.close()
    _current = None


def meeting() -> contextlib.AbstractContextManager[None]:
    """Around whatever waits for other ranks, so that one that does not come is named; all come in the same order."""
    return _current.meeting() if _current else contextlib.nullcontext()


def abort(this: World, code: int) -> None:
    """End all ranks; says the exit code, of which mpiexec may lose sight among those that it kills."""
    from mpi4py import MPI

    os.write(2, f"{this.name} ended all ranks (exit code {code})\n".encode())
    time.sleep(READ)
    MPI.COMM_WORLD.Abort(code)


class Watch:
    """The watchdog of one rank.

    comm      a communicator of all ranks that nobody else uses; MPI must allow calls of several threads
    names     of all ranks
    patience  seconds that a rank may wait at a meeting
    """

    def __init__(self, world: World, comm: Any, names: Sequence[str], patience: float):
        self._patience = patience
        self._main = threading.main_thread().ident
        self._since = 0.0
        self._turn = threading.Lock()  # of whoever uses what move() sets
        self.move(world, comm, names)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def move(self, world: World, comm: Any, names: Sequence[str]) -> None:
        """Watch these ranks from now on; all of them call it, and their meetings are counted anew."""
        with self._turn:
            self._world, self._comm, self._names = world, comm, names
            self._meetings = 0
            self._answers: dict[int, Where] = {}
            self._asked = 0.0

    @contextlib.contextmanager
    def meeting(self) -> Iterator[None]:
        """Around whatever waits for other ranks: all come to the same meetings in the same order."""
        self._meetings += 1
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._since = 0.0

    def close(self) -> None:
        """Watch no longer."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(min(0.2, self._patience / 10)):
            with self._turn:
                self._look()

    def _look(self) -> None:
        from mpi4py import MPI

        try:
            self._listen()
            if self._here().waited <= self._patience:
                self._asked = 0.0
            elif not self._asked:
                self._ask()
            elif len(self._answers) == self._world.size - 1 or time.monotonic() > self._asked + ANSWER:
                self._judge()
        except MPI.Exception:  # ranks are lost, and those that remain are to meet
            if self._world.least is None:
                raise
            if (waited := self._here().waited) > self._patience:
                os.write(
                    2, f"ranks are lost, and not all others have come; waited {waited:.0f} s (--patience)\n".encode()
                )
                abort(self._world, 1)

    def _here(self) -> Where:
        since = self._since
        frame = sys._current_frames().get(self._main or 0)
        at = traceback.extract_stack(frame)[-1] if frame else None
        line = f"{at.filename}:{at.lineno}, in {at.name}" if at else "its end"
        return Where(self._meetings, time.monotonic() - since if since else 0.0, line)

    def _listen(self) -> None:
        from mpi4py import MPI

        found = MPI.Status()
        while self._comm.iprobe(status=found):
            said = self._comm.recv(source=found.source, tag=found.tag)
            if found.tag == ASK:
                self._comm.send(self._here(), found.source, TELL)
            else:
                self._answers[found.source] = said

    def _ask(self) -> None:
        self._answers, self._asked = {}, time.monotonic()
        for other in range(self._world.size):
            if other != self._world.rank:
                self._comm.send(None, other, ASK)

    def _judge(self) -> None:
        """Say who has not come, unless a lower rank that waits here too says so; then end all."""
        here = self._here()
        self._asked = 0.0
        absent = []
        for other in (rank for rank in range(self._world.size) if rank != self._world.rank):
            told, name = self._answers.get(other), self._names[other]
            if told is None:
                absent.append(f"{name} has not come, and does not answer")
            elif told.meetings != here.meetings or not told.waited:
                absent.append(f"{name} has not come: it is at {told.line}")
            elif other < self._world.rank and told.waited > self._patience - 1:
                return
        if absent and here.waited > self._patience:
            said = f"{'; '.join(absent)}; waited {self._patience:g} s (--patience)"
            os.write(2, f"{said}\n".encode())
            abort(self._world, 1)
