"""The buffers of one frame under way: what goes to the device for it, and what comes home of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..engine.slot_state import SlotState

NOBODY = np.zeros(0, np.int64)


class FrameInput(NamedTuple):
    """What a tick shows to the model.

    image   (B, rows, columns, channels), uint8, or floats in 0..1
    heat    (B, Y) what the readouts are to say, or None: they do not learn
    wanted  whether more than the error is to come home
    """

    image: np.ndarray
    heat: np.ndarray | None
    wanted: bool

    @property
    def target(self) -> np.ndarray:
        """One entry an example, as schedules count them."""
        return self.image


class FrameSlot(SlotState):
    """B frames, one of each stream.

    frame (B, F)                filled on the host: bytes, or numbers in 0..1
    target (B, Y), rates (2, U), flags (3, U)
                                filled on the host: rate and momentum; `learns`, `adapts`, and which units first learn what
                                they stopped at
    miss (U,), picture (n, B, F), heat (B, Y), hidden (B, H)
                                come home; picture holds n parts of the predicted frame
    NAME_dev                    the same on the device, the same array where it shares the host's memory

    supervised  whether there is a target
    fresh       whether rates and flags differ from those of the tick before
    wanted      whether all comes home, not only `miss`
    rests       units that stop learning, where what they stop at is kept
    resumes     whether any unit goes on with that
    put_in      writes what is filled: called with the slot and a FrameInput
    """

    frame: np.ndarray
    target: np.ndarray
    rates: np.ndarray
    flags: np.ndarray
    miss: np.ndarray
    picture: np.ndarray
    heat: np.ndarray
    hidden: np.ndarray
    frame_dev: Any
    target_dev: Any
    rates_dev: Any
    flags_dev: Any
    miss_dev: Any
    picture_dev: Any
    heat_dev: Any

    def __init__(
        self,
        streams,
        frame,
        units,
        heat,
        hidden,
        pictures,
        device,
        dtype,
        put_in: Callable[["FrameSlot", FrameInput], None],
    ):
        super().__init__()
        self._put_in, self._device, self._dtype = put_in, device, np.dtype(dtype)
        self._frame_shape = streams, frame
        self._frames: dict[np.dtype, tuple[np.ndarray, Any]] = {}
        shapes = {
            "target": (streams, heat),
            "rates": (2, units),
            "miss": (units,),
            "picture": (pictures, streams, frame),
            "heat": (streams, heat),
            "hidden": (streams, hidden),
        }
        for name, shape in shapes.items():
            self._room(name, shape, dtype)
        self._room("flags", (3, units), np.uint8)
        self.supervised = self.fresh = self.wanted = self.resumes = False
        self.rests = NOBODY

    def fill(self, tick: int, micro: int, batch: FrameInput, first: int, last: int) -> None:
        """Take the frames of a tick into a free slot."""
        with self._filling():
            self.events.clear()
            self.tick, self.micro, self.count = tick, micro, last - first
            self._put_in(self, batch)

    def take_frame(self, image: np.ndarray) -> None:
        """Copy a frame to `frame`; room for bytes, and for numbers, is made when the first of the kind comes."""
        dtype = np.dtype(np.uint8) if image.dtype == np.uint8 else self._dtype
        if dtype not in self._frames:
            self._frames[dtype] = self._pair(self._frame_shape, dtype)
        self.frame, self.frame_dev = self._frames[dtype]
        np.copyto(self.frame, image.reshape(self._frame_shape), casting="same_kind")

    def _room(self, name: str, shape, dtype) -> None:
        host, there = self._pair(shape, dtype)
        setattr(self, name, host)
        setattr(self, f"{name}_dev", there)

    def _pair(self, shape, dtype) -> tuple[np.ndarray, Any]:
        """An array of the host and its mirror on the device."""
        host = self._device.host_empty(shape, dtype)
        return host, self._device.mirror(host)
