"""The execution plan of MLP collections: the layout on the device, and how much of each unit shared memory holds.

A block computes a unit. Its shared memory holds the unit's signals and, as far as they fit, its weights, from first use to
last. So each is read from memory once per step:

    whole  all weights are held; several blocks share a multiprocessor, so that one computes while another copies
    part   the tail of the weights is held, cut between two rows; earlier rows are read from memory at each use. One example
           only: larger batches of such units use GEMMs
"""

from typing import Any, NamedTuple

import numpy as np

from gpu.device import Device
from gpu.runtime.array import Array

MOST = 16  # maximum number of examples per visit; more use a GEMM
RESERVED = 1024  # bytes of shared memory that CUDA reserves per block
CROWD = 8  # more blocks per multiprocessor make no difference
FLOAT = 4


# A kernel's description of a unit, as in units.cuh: 64 bytes, so that a block starts with one read, not a chain of them.
UNIT = np.dtype(
    {
        "names": ["n", "h", "o", "number", "w", "x", "hidden", "y", "held"],
        "formats": ["i4"] * 4 + ["i8"] * 4 + ["i4"],
        "offsets": [0, 4, 8, 12, 16, 24, 32, 40, 48],
        "itemsize": 64,
    }
)

BEHIND = 3  # numbers behind the inputs of a layer, as in online.cuh


class Bin(NamedTuple):
    """Units launched together.

    kind     "whole" or "part"
    units    (U,) UNIT on the device, the largest first
    many     U
    threads  per block
    shared   bytes of shared memory per block
    blocks   per multiprocessor, by shared memory
    """

    kind: str
    units: Array
    many: int
    threads: int
    shared: int
    blocks: int


class Plan:
    """A layout on a device; created by gpu.units.plan, passed as the contract's layout.

    fields    the layout with its arrays on the device
    everyone  (U,) UNIT on the device, in order
    uniform   all units have the same sizes
    """

    def __init__(self, device: Device, layout: Any):
        self.device, self.layout = device, layout
        self.fields = type(layout)(*(device.from_host(array) for array in layout))
        self.sizes = [np.asarray(size, np.int64) for size in layout[:3]]
        self.uniform = all((size == size[0]).all() for size in self.sizes)
        n, h, _ = self.sizes
        starts = np.asarray(layout.w_at)[:-1]
        # starts of both layers' biases, for the kernels around a GEMM
        self.first_bias, self.second_bias = (
            device.from_host(at) for at in (starts + h * n, np.asarray(layout.w_at)[1:] - self.sizes[2])
        )
        self.everyone = self._units(np.arange(n.size), 0)
        self.room = int(device.shared_block)  # bytes of a step, whose kernels have no static shared memory
        self._bins: dict[int, list[Bin] | None] = {}

    def __len__(self) -> int:
        return self.sizes[0].size

    def bins(self, batch: int) -> list[Bin] | None:
        """Returns the units of each launch for a batch; None, for GEMMs, if shared memory is too small for a unit.

        It holds the signals of each unit, and in batches above 1 also the weights.
        """
        if batch not in self._bins:
            self._bins[batch] = self._sort(batch)
        return self._bins[batch]

    def shared(self, batch: int, threads: int, backward: bool = False) -> np.ndarray:
        """Returns the bytes of shared memory of each unit's signals, with the targets of a step.

        backward  in the kernel `backward`, which also computes the gradient of x
        """
        n, h, o = self.sizes
        groups = batch if batch == 1 else -(-batch // 4)
        pulled = np.stack([n, h]) if backward else h[None]  # the columns whose sums are computed in parts
        parts = np.maximum(threads // 32 // (-(-pulled // 32) * groups), 1) * batch * pulled
        if batch == 1:  # in online.cuh each warp has its own sums and loss
            parts = np.maximum(parts, threads // 32 * (h + 1)) + 2 * BEHIND
        return FLOAT * (batch * (n + 2 * h + 2 * o) + np.maximum(parts.max(0), threads // 32) + 3)

    def _sort(self, batch: int) -> list[Bin] | None:
        n, h, o = self.sizes
        size = h * (n + 1) + o * (h + 1)
        if (self.shared(batch, 512) > self.room).any():
            return None
        threads = np.where(FLOAT * size < 24 << 10, 128, 256)
        whole = FLOAT * size + np.where(threads == 128, self.shared(batch, 128), self.shared(batch, 256))
        blocks = np.minimum(self.device.shared_multiprocessor // (whole + RESERVED), CROWD)
        blocks[whole > self.room] = 0
        if batch > 1 and not blocks.all():
            return None
        bins = []
        for many in np.unique(blocks)[::-1]:
            for count in np.unique(threads[blocks == many]):
                members = np.flatnonzero((blocks == many) & (threads == count))
                bins.append(
                    self._bin(members[np.argsort(-size[members], kind="stable")], int(many), int(count), batch, whole)
                )
        return bins

    def _bin(self, members: np.ndarray, blocks: int, threads: int, batch: int, whole: np.ndarray) -> Bin:
        if blocks:
            units, shared = self._units(members, 0), int(whole[members].max())
            return Bin("whole", units, members.size, threads, shared, blocks)
        room = (self.room - self.shared(batch, 512)[members]) // FLOAT
        units = self._units(members, self._cut(members, room))
        return Bin("part", units, members.size, 512, self.room, 1)

    def _units(self, members: np.ndarray, held: np.ndarray | int) -> Array:
        """Builds the kernels' descriptions of these units; held: the first weight that shared memory holds."""
        units = np.zeros(members.size, UNIT)
        for name, size in zip("nho", self.sizes, strict=True):
            units[name] = size[members]
        starts = zip(("w", "x", "hidden", "y"), self.layout[3:], strict=True)
        for name, at in starts:
            units[name] = np.asarray(at)[members]
        units["number"], units["held"] = members, held
        return self.device.from_host(units)

    def _cut(self, members: np.ndarray, room: np.ndarray) -> np.ndarray:
        """Returns the first held weight, given room for so many floats: the start of a row, as early as fits."""
        n, h, o = (size[members] for size in self.sizes)
        second = h * (n + 1)
        rows_of_first = np.clip((room - o * (h + 1) - h) // n, 0, h)
        rows_of_second = np.clip((room - o) // h, 0, o)
        return np.where(rows_of_first > 0, (h - rows_of_first) * n, second + (o - rows_of_second) * h)
