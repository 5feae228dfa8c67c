"""What each launch of a kernel did, counted by the simulated driver: `start(count=1)` before all else.

Exact, of the kernel as g++ compiles it: an access that its optimiser saves is not counted. Stacks and constants are not; nor
are copies and the products of the simulated cuBLAS.
"""

import ctypes
import os
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from tests import cudasim

Part = TypeVar("Part", "Moved", "Shared", "Atomics")
SECTOR = 32  # bytes that a memory of a device moves at least


class Moved(NamedTuple):
    """The reads, or the writes, of a launch in the memory of a device.

    requests  instructions of warps that touched global memory
    bytes     of all requests; what several lanes of a request touch counts once
    sectors   of all requests: pieces of 32 bytes that hold these bytes
    first     bytes that nothing in the launch had touched before; of writes: had written before
    """

    requests: int = 0
    bytes: int = 0
    sectors: int = 0
    first: int = 0

    @property
    def full(self) -> float:
        """Which part of its sectors is asked for; 1 where nothing moves."""
        return self.bytes / (SECTOR * self.sectors) if self.sectors else 1.0

    @property
    def again(self) -> int:
        """Bytes that were touched before: reads that a cache may serve."""
        return self.bytes - self.first


class Shared(NamedTuple):
    """The reads, or the writes, of a launch in shared memory; atomics and asynchronous copies are not among them.

    requests  instructions of warps that touched it
    least     passes over its 32 banks without conflicts: 2 for accesses of 8 bytes, 4 for those of 16, 1 for others
    passes    those that it takes: in one, each bank gives 4 bytes, to all lanes that ask for them
    """

    requests: int = 0
    least: int = 0
    passes: int = 0

    @property
    def conflicts(self) -> int:
        """Passes because lanes asked a bank for different words."""
        return self.passes - self.least


class Atomics(NamedTuple):
    """The atomics of a launch, on any memory.

    requests  instructions of warps
    lanes     of all requests
    turns     of each request, as many as lanes meet on one address at most
    """

    requests: int = 0
    lanes: int = 0
    turns: int = 0


class Launch(NamedTuple):
    """A launch that has ended without a problem.

    barriers, warp_barriers  how often its blocks met, at barriers of all or of some warps; and its warps, at __syncwarp
    chain                    the most steps that one thread has marked by cudasim_calls->step_of_chain()
    """

    kernel: str
    read: Moved = Moved()
    written: Moved = Moved()
    shared_read: Shared = Shared()
    shared_written: Shared = Shared()
    atomics: Atomics = Atomics()
    barriers: int = 0
    warp_barriers: int = 0
    chain: int = 0


def launches() -> list[Launch]:
    """Those since the start or the last `forget`, in the order in which they ran."""
    if not os.environ.get("CUDASIM_COUNT"):
        raise RuntimeError("nothing is counted: start(count=1) starts a driver that counts")
    simulator = cudasim.start()
    simulator.cudasim_traffic.restype = ctypes.c_size_t
    room = simulator.cudasim_traffic(None, ctypes.c_size_t(0))
    buffer = ctypes.create_string_buffer(room)
    simulator.cudasim_traffic(buffer, ctypes.c_size_t(room))
    return [_parsed(line) for line in buffer.value.decode().splitlines()]


def forget() -> None:
    """Begin anew."""
    cudasim.start().cudasim_forget_traffic()


def total(parts: Iterable[Part]) -> Part:
    """Their sums; of one at least."""
    first, *others = parts
    return type(first)(*(sum(numbers) for numbers in zip(first, *others, strict=True)))


def _parsed(line: str) -> Launch:
    kernel, *words = line.split()
    numbers = map(int, words)
    kinds: tuple[Any, ...] = (Moved, Moved, Shared, Shared, Atomics)
    parts: list[Any] = [kind(*islice(numbers, len(kind._fields))) for kind in kinds]
    return Launch(kernel, *parts, *numbers)
