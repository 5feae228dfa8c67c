"""What a part of a model (input rows, trunk, readout) tells the route: the arrays and the stages that it needs.

A part has up to three lists of stages. Each is a method with an argument `copy`, a `Copies`:

    begin   up to the hidden vectors; nothing learns in them
    finish  from the hidden vectors back to the gradient of what the part reads
    last    what no other part waits for
"""

import functools
from collections.abc import Collection
from typing import Any, NamedTuple

from .schedule import Stage


class Buffers(NamedTuple):
    """The arrays of a slot that a part reads and writes.

    widths    numbers a row of its float32 arrays, by name; the dense stages find them on their device as NAME_dev
    crossing  names of the arrays that are needed on the host as well: some of these, or of ids, bag_at, values, target, weight
              and losses
    begun     names of those that `begin` writes: a checkpoint keeps them for batches begun and not finished
    """

    widths: dict[str, int]
    crossing: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()


BESIDE = {"ids": "values", "target": "weight"}  # arrays that not every batch has, copied in one stage with another one


class Copies:
    """Makes the stages that copy an array of a slot to the device or home from it.

    device    of the dense stages
    crossing  names of the arrays that are needed on both sides
    """

    def __init__(self, device: Any, crossing: Collection[str]):
        self._device, self._crossing = device, crossing

    def __call__(self, name: str, *after: str) -> list[Stage]:
        """The stage "ARRAY in" or "ARRAY out", after the stages named; an empty list where nothing has to be copied."""
        array, way = name.split()
        if self._device.host_memory or array not in self._crossing:
            return []
        copied = [array, BESIDE[array]] if BESIDE.get(array) in self._crossing else [array]
        pairs = [(f"{name}_dev", name) if way == "in" else (name, f"{name}_dev") for name in copied]
        return [Stage(name, f"copy {way}", functools.partial(self._copy, pairs), after)]

    def _copy(self, pairs: list[tuple[str, str]], slot: Any) -> None:
        for target, source in pairs:
            if getattr(slot, source) is not None:
                self._device.copy(getattr(slot, target), getattr(slot, source))
