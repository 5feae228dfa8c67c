"""The buffers of one frame under way: what is copied to the device for it, and what is copied back."""

from typing import Any, NamedTuple

import numpy as np

from ..schedule.slot import SlotState
from .config import Config
from .layout import TapeLayout

# Who learns in a tick, and how fast: rates and flags of every unit, made of the schedule's rates of whole layers.


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


class FrameInput(NamedTuple):
    """All that a tick is given, ready to be copied into a slot.

    image     (B, rows, columns, channels), uint8, or floats in 0..1
    heat      (B, Y) heatmaps for the readouts to learn, or None: they do not learn
    complete  whether more than the error is copied back
    rates     who learns, and how fast
    """

    image: np.ndarray
    heat: np.ndarray | None
    complete: bool
    rates: TickRates

    @property
    def examples(self) -> int:
        """B, as schedules count them."""
        return len(self.image)


class SlotSizes(NamedTuple):
    """How much a slot holds: B streams of F numbers of the frame, U units, heatmaps of Y and H hidden numbers, and how many
    parts a predicted frame has.

    own  where ranks share the units, those of this rank: u units, P numbers of the predicted frame, h hidden ones
    """

    streams: int
    frame: int
    units: int
    heat: int
    hidden: int
    parts: int
    own: tuple[int, int, int] | None = None


class FrameSlot(SlotState):
    """B frames, one of each stream.

    Filled on the host
    frame (B, F)       bytes, or numbers in 0..1
    target (B, Y)      heatmaps to learn
    rates (2, u), flags (2, u)  see `TickRates`; u: the units that this rank has, all U unless ranks share them

    Copied back
    miss (U,)          of each unit the sum of |error|
    predicted (n, B, F)  n parts of the predicted frame
    heat (B, Y), hidden (B, H)

    own                by name miss (u,), predicted (n, B, P), hidden (B, h) of the units that this rank has: the same arrays
                       unless ranks share the units

    NAME_dev           the same on the device, the same array where it shares the host's memory; of own units alone

    supervised    whether there is a target
    complete      whether all is copied back, and not only `miss`
    fresh         whether rates and flags differ from those of the tick before
    readout_rate  see `TickRates`
    recorder      does what a tick launches with these arrays again
    """

    frame: np.ndarray
    frame_dev: Any

    def __init__(self, sizes: SlotSizes, device: Any, dtype: Any):
        super().__init__()
        self._device, self._dtype = device, np.dtype(dtype)
        self.recorder = device.recorder()
        self._frame_shape = sizes.streams, sizes.frame
        self._frames: dict[np.dtype, tuple[np.ndarray, Any]] = {}
        B, n = sizes.streams, sizes.parts
        units, pixels, hidden = sizes.own or (sizes.units, sizes.frame, sizes.hidden)
        self.target, self.target_dev = self._pair((B, sizes.heat), dtype)
        self.rates, self.rates_dev = self._pair((2, units), dtype)
        self.flags, self.flags_dev = self._pair((2, units), np.uint8)
        self.miss, self.miss_dev = self._pair((units,), dtype)
        self.predicted, self.predicted_dev = self._pair((n, B, pixels), dtype)
        self.heat, self.heat_dev = self._pair((B, sizes.heat), dtype)
        self.hidden, self.hidden_dev = self._pair((B, hidden), dtype)
        self.own = {"miss": self.miss, "predicted": self.predicted, "hidden": self.hidden}
        if sizes.own:
            whole = (sizes.units,), (n, B, sizes.frame), (B, sizes.hidden)
            self.miss, self.predicted, self.hidden = (np.zeros(shape, dtype) for shape in whole)
        self.supervised = self.complete = self.fresh = False
        self.readout_rate = 0.0

    def fill(self, tick: int, micro: int, batch: FrameInput, first: int, last: int) -> None:
        """Copy the input of a tick into a free slot."""
        with self._filling():
            self.events.clear()
            self.tick, self.micro = tick, micro
            self.count = self.examples = last - first
            self._copy_frame(batch.image)
            self.complete, self.supervised = batch.complete, batch.heat is not None
            if batch.heat is not None:
                self.target[:] = batch.heat
            rates = batch.rates
            self.fresh = rates.units is not None
            self.readout_rate = rates.readout
            if self.fresh:
                self.rates[:], self.flags[:] = rates.units, rates.flags

    def _copy_frame(self, image: np.ndarray) -> None:
        """Copy a frame to `frame`; room for bytes, and for numbers, is made when the first of the kind comes."""
        dtype = np.dtype(np.uint8) if image.dtype == np.uint8 else self._dtype
        if dtype not in self._frames:
            self._frames[dtype] = self._pair(self._frame_shape, dtype)
        self.frame, self.frame_dev = self._frames[dtype]
        np.copyto(self.frame, image.reshape(self._frame_shape), casting="same_kind")

    def _pair(self, shape: tuple[int, ...], dtype: Any) -> tuple[np.ndarray, Any]:
        """An array of the host and its mirror on the device."""
        host = self._device.host_empty(shape, dtype)
        return host, self._device.mirror(host)
