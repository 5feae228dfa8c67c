"""A model of ours that repeats a recording, frame by frame: what the replays of both originals share."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import initial
from ..config import Config
from ..inputs import Inputs
from ..model import PVM
from ..result import StepResult
from .recording import GPU, TOLERANCE, Recording


class Unbounded(Inputs):
    """Inputs that take pixels a little beyond 1: 0.8 + 0.1 is more than 0.9, if both are float32."""

    def _image(self, frame: Any) -> np.ndarray:
        image = np.asarray(frame)
        return image[None] if image.dtype.kind == "f" else super()._image(frame)


class Replay(ABC):
    """A model that repeats a recording, frame by frame.

    config, order, readout_order  set by the subclass: our configuration; where our weights are in the recorded ones
    frames                        the array that says how many frames there are
    """

    frames: str

    def __init__(self, recording: Recording, device: str, real: str):
        self.recording = recording
        self.config, self.order, self.readout_order = self.configured(), np.empty(0, int), np.empty(0, int)
        self.real = np.dtype(real if device == "cpu" else "float32")
        recording.allowed = TOLERANCE[self.real.name] if device == "cpu" else GPU
        self.pvm = PVM(self.config, device=device, dtype=self.real)
        self.layout, self.wiring = self.pvm.layout, self.pvm.wiring
        self.pvm._inputs = Unbounded(self.wiring.frame, 1, self.pvm.readouts, ignore_depth=self.config.ignore_depth)

    def run(self) -> None:
        """Compare what is wired and how large it is, and only where that agrees go through the frames."""
        for begin in (self.patterns, self.places):
            begin()
            if any(row.fails for row in self.recording.rows.values()):
                return
        self.give(*self.first())
        for t in range(len(self.recording[self.frames])):
            self.frame(t)

    @abstractmethod
    def configured(self) -> Config:
        """Our configuration of the recorded options."""

    @abstractmethod
    def patterns(self) -> None:
        """Compare wiring and sizes."""

    @abstractmethod
    def places(self) -> None:
        """Find out where everything is: on our tape and in the recorded arrays."""

    @abstractmethod
    def first(self) -> tuple[np.ndarray, np.ndarray]:
        """Recorded weights of units and readouts at the start."""

    @abstractmethod
    def frame(self, t: int) -> None:
        """Show a frame and compare."""

    def give(self, weights: np.ndarray, readouts: np.ndarray) -> None:
        """Start from these weights: what the units make of nothing depends on them."""
        given = weights[self.order].astype(self.real)
        arrays = initial.state(self.layout, self.config, self.wiring.layer, given, 1)
        arrays["weights"] = given
        if self.pvm.readouts:
            arrays["readout.weights"] = readouts[self.readout_order].astype(self.real)
        self.pvm.put(arrays)

    def delta(self) -> np.ndarray:
        return np.asarray(self.pvm.backend.device.to_host(self.pvm.pipeline.delta)[0]).copy()

    def heat(self) -> list[np.ndarray]:
        """What the readouts said: the shown heatmaps are clipped and stretched."""
        assert self.pvm.readouts
        return [heat[0] for heat in self.pvm.readouts.maps(self.pvm._step_slot.heat)]

    def mean_error(self, seen: StepResult) -> float:
        """Mean |error| of all units."""
        counts = np.bincount(self.wiring.layer, np.diff(self.layout.signal_at))
        return float(np.average(seen.error, weights=counts))

    def due(self, t: int) -> Iterator[int]:
        """At which place of the kept weights this frame's are."""
        yield from np.flatnonzero(self.recording["w_steps"] == t).tolist()
