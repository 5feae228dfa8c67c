"""What each launch of a kernel moved in global memory, counted by the simulated driver: `start(count=1)` before all else.

Exact, of the kernel as g++ compiles it: an access that its optimiser saves is not counted. Shared memory, stacks and
constants are not; nor are copies and the products of the simulated cuBLAS.
"""

import ctypes
import os
from typing import NamedTuple

from tests import cudasim

SECTOR = 32  # bytes that a memory of a device moves at least


class Moved(NamedTuple):
    """The reads, or the writes, of a launch.

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


class Launch(NamedTuple):
    """A launch that has ended without a problem."""

    kernel: str
    read: Moved
    written: Moved


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


def total(parts: list[Moved]) -> Moved:
    """Their sums."""
    return Moved(*(sum(numbers) for numbers in zip(*parts, strict=True))) if parts else Moved()


def _parsed(line: str) -> Launch:
    kernel, *numbers = line.split()
    counts = [int(number) for number in numbers]
    return Launch(kernel, Moved(*counts[:4]), Moved(*counts[4:]))
