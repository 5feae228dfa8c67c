"""The part of its machine's processors that a rank takes, so that ranks side by side do not take each other's."""

import functools
import os

from ..processors import allowed, by_node, keep_to, part
from .world import World, world


def take_threads(this: World) -> None:
    """Let this rank take its part of the threads by default: as OMP_NUM_THREADS, which PyTorch and BLAS read too.

    What the user has set stays, for each rank. Call it before Numba or PyTorch is imported.
    """
    if this.sharing > 1:
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, allowed() // this.sharing)))


def take_cores() -> list[list[int]]:
    """Keep this thread, and those that it starts, to cores that no other rank keeps to; they are listed by node of memory.

    A process without ranks keeps to those that it may use. Where ranks are more than cores, some have the same one.
    Raises ValueError where the system gives threads no cores of their own (macOS, Windows).
    """
    nodes = _own() if world().sharing > 1 else by_node()
    keep_to([core for node in nodes for core in node])
    return nodes


@functools.cache  # afterwards a part is all that it may use
def _own() -> list[list[int]]:
    this = world()
    return part(by_node(), this.turn, this.sharing)
