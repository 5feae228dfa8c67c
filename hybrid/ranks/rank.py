"""One rank: `python -m hybrid.ranks.rank PATIENCE SIZE LEAST MODULE ARGUMENT...` runs a module, as `python -m` does.

All ranks end where one fails. What ranks other than 0 print is dropped; what they say on stderr is told by rank and host.
LEAST is 0, or down to how many ranks the others go on when some are lost: killed, not failed.
"""

import atexit
import contextlib
import importlib.util
import os
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from . import process, share, watch
from .everyone import RankLost, everyone
from .world import WANTED, World, become, world

FIRST = "rank 0: "  # before what rank 0 says
STOPPED = 128  # a greater exit code means a signal, which all ranks got
GRACE = 20.0  # seconds in which the other ranks may end too after a signal, such as to save what they have learned


def run(
    module: str, arguments: Sequence[str], patience: float, size: int | None = None, least: int | None = None
) -> int:
    """Run a module as this rank; returns the exit code, 0 or that of a stop by a signal. Any other failure ends all ranks.

    patience  seconds that a rank may wait for another
    size      how many ranks were to be started, to be compared with how many there are; None: not known
    least     down to how many ranks the others go on when some are lost; None: then all are ended

    Raises ValueError where there are more or fewer ranks than that, or no mpi4py.
    """
    if importlib.util.find_spec("mpi4py") is None:
        raise ValueError(f"launch: mpi4py is not installed; to run as a rank: {WANTED}")
    from mpi4py import MPI

    this = become(world()._replace(least=least))
    if size not in (None, this.size):
        library = MPI.Get_library_version().split("\n")[0].strip("\0 ")
        raise ValueError(f"found {this.size} ranks, expected {size}: mpiexec is of another MPI than mpi4py, {library}")
    with_losses: list[int] = []
    atexit.register(_leave, with_losses)  # the first is the last one to be called
    all_ranks = everyone()
    watch.begin(this, all_ranks.copy(), [str(member) for member in all_ranks.members], patience)
    share.take_threads(this)
    code = 1
    with _voice(this, speaker=FIRST if size else ""):
        code = _exit_code(module, arguments)
    if code and code < STOPPED:
        watch.abort(this, code)
    _end(this, code)
    watch.end()
    if world().began is not None:
        with_losses.append(code)
    return code


def _leave(codes: Sequence[int]) -> None:
    """Where ranks were lost, end as all else has: MPI, when it is finalised, may wait for them (Open MPI 5.0.11)."""
    if codes:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(codes[0])


def _exit_code(module: str, arguments: Sequence[str]) -> int:
    """What `python -m module arguments` would exit with; a traceback, if there is one, is on stderr."""
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return 130
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _end(this: World, code: int) -> None:
    """Wait until all ranks have ended, without making a core busy; after a signal not for ever."""
    start = time.monotonic()
    while True:
        now = everyone()
        try:
            with now.waiting():
                arrived = now.comm.Ibarrier()
                while not arrived.Test():
                    time.sleep(0.01)
                    if code and time.monotonic() > start + GRACE:
                        watch.abort(this, code)
                return
        except RankLost:
            continue


@contextlib.contextmanager
def _voice(this: World, speaker: str) -> Iterator[None]:
    """Within: rank 0 speaks for all; others are heard on stderr alone, by name. Lines are written whole.

    speaker  what rank 0 says there, line by line: to the launcher, which leaves it out
    """
    out, err = sys.stdout, sys.stderr
    sys.stderr = Named(err, lambda: f"{this.name}: " if world().rank else speaker)
    with open(os.devnull, "w") as nothing:
        sys.stdout = Spoken(out, nothing)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            sys.stdout, sys.stderr = out, err


class Spoken:
    """A text file that is one file while this is rank 0, which it may become, and else another one."""

    def __init__(self, file: TextIO, other: TextIO):
        self._file, self._other = file, other

    def __getattr__(self, name: str) -> Any:
        return getattr(self._other if world().rank else self._file, name)


class Named:
    """A text file that writes whole lines to another, each behind a name, which may change."""

    def __init__(self, file: TextIO, name: Callable[[], str]):
        self._file, self._name, self._begun = file, name, ""

    def write(self, text: str) -> int:
        """Write those lines that have ended."""
        *lines, self._begun = (self._begun + text).split("\n")
        if lines:
            self._file.write("".join(f"{self._name()}{line}\n" for line in lines))
            self._file.flush()
        return len(text)

    def flush(self) -> None:
        """Write what there is as a line."""
        if self._begun:
            self.write("\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _main() -> int:
    patience, size, least, module, *arguments = sys.argv[1:]
    return run(module, arguments, float(patience), int(size), int(least) or None)


if __name__ == "__main__":
    process.keep(_main)
