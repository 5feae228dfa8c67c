"""Dense inputs in the place of rows: the feed gives what the trunk reads."""

from typing import Any

import numpy as np

from .. import backend as backends
from .. import check
from .part import Buffers, Copies
from .schedule import Stage

KIND = "inputs"


class Inputs:
    """Stands in for an Embedding where the batches of a feed have `x` instead of ids: pixels, features.

    width  numbers of an example

    Nothing learns here, and x is copied once: into a slot, and from there to a GPU. Raises ValueError for a width below 1.
    """

    mean = weighted = False
    rows = per_example = 0

    def __init__(self, width: int):
        self.dense = self.outputs = check.whole("width", width, 1)
        self.backend = backends.choose("cpu")

    def buffers(self) -> Buffers:
        """What the trunk reads; and, for a trunk that cannot do without, the gradient of that, which nobody reads."""
        return Buffers(dict.fromkeys(("x", "x_grad"), self.outputs), ("x",))

    def begin(self, copy: Copies) -> list[Stage]:
        """The feed has filled x in; it is copied to a GPU."""
        return copy("x in")

    def last(self, copy: Copies, ready: tuple[str, ...]) -> list[Stage]:
        """Nothing moves."""
        return []

    def parameters(self) -> dict[str, np.ndarray]:
        """None."""
        return {}

    def send(self) -> None:
        """Nothing to send."""

    def describe(self) -> dict[str, Any]:
        """The argument that makes this object again, and what kind of object it is."""
        return {"kind": KIND, "width": self.dense}

    def __reduce__(self) -> tuple[Any, ...]:
        return Inputs, (self.dense,)
