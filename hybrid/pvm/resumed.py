"""The first step of units that learn again after a rest, in the classic original with two-step prediction.

There a prediction waits in a queue for the frames that it predicts, and the queue stands still while the rate is 0. So the
first step of a unit that learns again is on the prediction and the frames at which it stopped; the very first is on zeros.
"""

from typing import Any

import numpy as np

from .config import Config
from .layout import TapeLayout


def kept(layout: TapeLayout, config: Config) -> bool:
    """Whether a model keeps what its units stop at."""
    return config.compat == "classic2016" and layout.steps == 2


class Resumed:
    """Arrays for that step: it moves the weights, and all else that it writes is not read.

    written  for `State`: copies, so that the model's own stay as they are
    nobody   (U,) flags, all 0
    """

    def __init__(self, device: Any, layout: TapeLayout, state: dict[str, Any], units: int):
        self._copy, self._state = device.copy, state
        self._starts = {"tape": layout.tape_at, "signals": layout.signal_at}
        names = ("world_0", "tape_0", "signals_0", "integral")
        self.written = tuple(device.mirror(np.zeros(state[name].shape, state[name].dtype)) for name in names)
        self.nobody = device.from_host(np.zeros(units, np.uint8))

    def keep(self, units: np.ndarray, record: Any, before: Any) -> None:
        """Keep, for units that stop, the record (B, T) that they would learn from next, and the signals (B, S) before it."""
        for (name, at), source in zip(self._starts.items(), (record, before), strict=True):
            rest, source = self._state[f"rest_{name}"].reshape(-1), source.reshape(-1)
            for first in range(0, source.size, int(at[-1])):
                for unit in units.tolist():
                    part = slice(first + int(at[unit]), first + int(at[unit + 1]))
                    self._copy(rest[part], source[part])

    @property
    def record(self) -> tuple[Any, Any]:
        """What units learn from that learn again: the record, and the signals before it."""
        return self._state["rest_tape"], self._state["rest_signals"]
