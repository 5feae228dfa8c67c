"""Who learns in a tick, and how fast: rates and flags of every unit, made of the schedule's rates of whole layers."""

from typing import Any, NamedTuple

import numpy as np

from .config import Config
from .layout import TapeLayout


class TickRates(NamedTuple):
    """What a tick needs to know of the schedule. U units.

    units    rate and momentum (2, U), or None: these and the flags are those of the tick before
    flags    (2, U) bool: who learns; whose published range is adapted
    readout  rate of the readouts; 0: they do not learn
    """

    units: np.ndarray | None
    flags: np.ndarray | None
    readout: float


class Rates:
    """Makes the rates of ticks that follow one another; those that change nothing, which are most, cost next to nothing.

    layer  (U,) of each unit
    """

    def __init__(self, layer: np.ndarray, layout: TapeLayout, config: Config):
        self._layer = layer
        # A change is predicted from two frames, and learned from the third.
        self._first = 2 if config.unit == "change" else layout.steps - 1
        self._in_force: Any = None  # what the rates and flags on the device, or on their way there, were made of

    def forget(self) -> None:
        """Frames that were filled in and not shown have not set their rates: the next one does."""
        self._in_force = None

    def at(self, tick: int, config: Config, frozen: bool) -> TickRates:
        """Those of a tick, of which the one before was asked for last, or nothing since `forget`.

        config  as it stands now: `PVM.set_rate` adds to its schedule
        frozen  whether nothing learns
        """
        now, after = config.rates(tick), config.rates(tick + 1)
        early = tick < self._first  # nothing was predicted so long ago
        readout = self._readout(tick, config, frozen)
        was, self._in_force = self._in_force, (now, after, early, frozen)
        if was and all(old is new for old, new in zip(was, self._in_force, strict=True)):
            return TickRates(None, None, readout)
        rate, momentum = now
        learns = (rate != 0) | (momentum != 0) if config.wiring == "cuda" else rate != 0
        flags = np.stack([learns & (not early), after[0] != 0]) & (not frozen)
        return TickRates(np.stack(now)[:, self._layer], flags[:, self._layer], readout)

    def _readout(self, tick: int, config: Config, frozen: bool) -> float:
        readout = config.readout
        return readout.rate(tick) if readout and tick >= readout.start and not frozen else 0.0
