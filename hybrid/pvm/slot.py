"""The buffers of one frame under way: what is copied to the device for it, and what is copied back."""

from typing import Any, NamedTuple

import numpy as np

from ..engine.slot_state import SlotState
from .rates import TickRates


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


class Seen(NamedTuple):
    """What a tick copies back of some units or of all; see `FrameSlot`."""

    miss: np.ndarray
    predicted: np.ndarray
    hidden: np.ndarray


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

    own                miss (u,), predicted (n, B, P), hidden (B, h) of the units that this rank has: the same arrays unless
                       ranks share the units

    NAME_dev           the same on the device, the same array where it shares the host's memory; of own units alone

    supervised    whether there is a target
    complete      whether all is copied back, and not only `miss`
    fresh         whether rates and flags differ from those of the tick before
    readout_rate  see `TickRates`
    recorder      does what a tick launches with these arrays again
    """

    frame: np.ndarray
    target: np.ndarray
    rates: np.ndarray
    flags: np.ndarray
    miss: np.ndarray
    predicted: np.ndarray
    heat: np.ndarray
    hidden: np.ndarray
    frame_dev: Any
    target_dev: Any
    rates_dev: Any
    flags_dev: Any
    miss_dev: Any
    predicted_dev: Any
    heat_dev: Any
    hidden_dev: Any

    def __init__(self, sizes: SlotSizes, device: Any, dtype: Any):
        super().__init__()
        self._device, self._dtype = device, np.dtype(dtype)
        self.recorder = device.recorder()
        self._frame_shape = sizes.streams, sizes.frame
        self._frames: dict[np.dtype, tuple[np.ndarray, Any]] = {}
        every = sizes.units, sizes.frame, sizes.hidden
        units, pixels, hidden = sizes.own or every
        shapes = {
            "target": (sizes.streams, sizes.heat),
            "rates": (2, units),
            "miss": (units,),
            "predicted": (sizes.parts, sizes.streams, pixels),
            "heat": (sizes.streams, sizes.heat),
            "hidden": (sizes.streams, hidden),
        }
        for name, shape in shapes.items():
            self._room(name, shape, dtype)
        self._room("flags", (2, units), np.uint8)
        self.own = Seen(self.miss, self.predicted, self.hidden)
        if sizes.own:
            whole = (sizes.units,), (sizes.parts, sizes.streams, sizes.frame), (sizes.streams, sizes.hidden)
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

    def _room(self, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        host, there = self._pair(shape, dtype)
        setattr(self, name, host)
        setattr(self, f"{name}_dev", there)

    def _pair(self, shape: tuple[int, ...], dtype: Any) -> tuple[np.ndarray, Any]:
        """An array of the host and its mirror on the device."""
        host = self._device.host_empty(shape, dtype)
        return host, self._device.mirror(host)
