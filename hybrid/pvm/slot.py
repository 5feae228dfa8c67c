"""The buffers of one frame in flight: its input to the device, with rates and flags, and the data copied back."""

from typing import Any, NamedTuple

import numpy as np

from ..schedule.slot import SlotState
from .config import Config
from .layout import TapeLayout


class TickRates(NamedTuple):
    """The schedule's values for a tick. U units.

    units    rate and momentum (2, U), or None: these and the flags are those of the previous tick
    flags    (2, U) bool: the unit learns; its published range is adapted
    readout  rate of the readouts; 0: they do not learn
    """

    units: np.ndarray | None
    flags: np.ndarray | None
    readout: float


class Rates:
    """The rates of consecutive ticks; unchanged rates, the usual case, are cheap.

    layer  (U,) of each unit
    """

    def __init__(self, layer: np.ndarray, layout: TapeLayout, config: Config):
        self._layer, self._config = layer, config
        # A change is predicted from two frames, and learned from the third.
        self._first = 2 if config.unit == "change" else layout.steps - 1
        self._in_force: Any = None  # the source of the rates and flags that are on the device, or in transfer

    def forget(self) -> None:
        """Discards the rates of frames that were filled in but not shown: the next frame sets its own."""
        self._in_force = None

    def at(self, tick: int, frozen: bool) -> TickRates:
        """Returns the rates of a tick; the previous call must be for the preceding tick, or `forget`.

        frozen  True: nothing learns
        """
        config = self._config
        now, after = config.rates(tick), config.rates(tick + 1)
        early = tick < self._first  # there is no prediction yet
        learned = config.readout if not frozen else None
        readout = learned.rate(tick) if learned and tick >= learned.start else 0.0
        was, self._in_force = self._in_force, (now, after, early, frozen)
        if was and all(old is new for old, new in zip(was, self._in_force, strict=True)):
            return TickRates(None, None, readout)
        rate, momentum = now
        learns = (rate != 0) | (momentum != 0) if config.wiring == "cuda" else rate != 0
        flags = np.stack([learns & (not early), after[0] != 0]) & (not frozen)
        return TickRates(np.stack(now)[:, self._layer], flags[:, self._layer], readout)


class FrameInput(NamedTuple):
    """The input of a tick, ready to be copied into a slot.

    image     (B, rows, columns, channels), uint8, or floats in 0..1
    heat      (B, Y) target heatmaps of the readouts, or None: they do not learn
    complete  True: more than the error is copied back
    rates     of the tick
    """

    image: np.ndarray
    heat: np.ndarray | None
    complete: bool
    rates: TickRates

    @property
    def examples(self) -> int:
        """The number of streams B, under the name that schedules use."""
        return len(self.image)


class SlotSizes(NamedTuple):
    """The sizes of a slot: B streams of F frame values, U units, heatmaps of Y, H hidden activations, parts of a prediction.

    own  if ranks partition the units, those of this rank: u units, P numbers of the predicted frame, h hidden ones
    """

    streams: int
    frame: int
    units: int
    heat: int
    hidden: int
    parts: int
    own: tuple[int, int, int] | None = None


class FrameSlot(SlotState):
    """The buffers of B frames, one of each stream.

    Filled on the host
    frame (B, F)       bytes, or numbers in 0..1
    target (B, Y)      target heatmaps
    rates (2, u), flags (2, u)  see `TickRates`; u: the units of this rank, all U unless ranks partition them

    Copied back
    miss (U,)          of each unit the sum of |error|
    predicted (n, B, F)  n parts of the predicted frame
    heat (B, Y), hidden (B, H)

    own                by name miss (u,), predicted (n, B, P), hidden (B, h) of the units of this rank: the same arrays unless
                       ranks partition the units

    NAME_dev           the same on the device, the same array if it shares the host's memory; of own units alone

    supervised    True: there is a target
    complete      True: everything is copied back, not only `miss`
    fresh         True: rates and flags differ from those of the previous tick
    readout_rate  see `TickRates`
    recorder      replays the launches of a tick with these arrays
    """

    frame: np.ndarray
    frame_dev: Any

    def __init__(self, sizes: SlotSizes, device: Any, dtype: Any):
        super().__init__()
        self._device, self._dtype = device, np.dtype(dtype)
        self.recorder = device.recorder()
        self._frame_shape = sizes.streams, sizes.frame
        self._frames: dict[np.dtype, tuple[np.ndarray, Any]] = {}  # of bytes and of numbers, made on first use
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
        """Copies the input of a tick into a free slot."""
        with self._filling():
            self.events.clear()
            self.tick, self.micro = tick, micro
            self.count = self.examples = last - first
            dtype = np.dtype(np.uint8) if batch.image.dtype == np.uint8 else self._dtype
            if dtype not in self._frames:
                self._frames[dtype] = self._pair(self._frame_shape, dtype)
            self.frame, self.frame_dev = self._frames[dtype]
            np.copyto(self.frame, batch.image.reshape(self._frame_shape), casting="same_kind")
            self.complete, self.supervised = batch.complete, batch.heat is not None
            if batch.heat is not None:
                self.target[:] = batch.heat
            rates, flags, self.readout_rate = batch.rates
            self.fresh = rates is not None
            if self.fresh:
                self.rates[:], self.flags[:] = rates, flags

    def _pair(self, shape: tuple[int, ...], dtype: Any) -> tuple[np.ndarray, Any]:
        host = self._device.host_empty(shape, dtype)
        return host, self._device.mirror(host)
