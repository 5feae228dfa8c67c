"""Modes: how frames are changed before the model gets them, as dreams, blind spots and noise.

The modes are those of braincorp/PVM (PVM_models/PVM_Manager.py), three of which piekniewski/PVM_cuda has too. Here they
are pure functions of frame, prediction, seed and tick, on floats; that bytes wrap around in the original is not repeated.
A blink is grey here; in the original it is the prediction.
"""

from collections.abc import Callable

import numpy as np

from ... import check

GREY = 0.5
SWING = 32 / 255  # of the noisy signal
PERIOD, SHUT = 20, 2  # ticks from blink to blink, and how many of them the eye is shut


class Mode:
    """One way to change frames, by name.

    seed      of the noise; tick t of a seed always has the same noise
    fraction  the spot's share of the rows and of the columns, 0 to 1; the spot is in the middle
    """

    def __init__(self, name: str, seed: int = 0, fraction: float = 0.5):
        self.name = check.choice("mode", name, NAMES)
        self.seed = check.whole("seed", seed, 0)
        self.fraction = check.number("fraction", fraction, 0)
        if self.fraction > 1:
            raise ValueError(f"fraction: found {fraction}, expected 0 to 1: the spot's share of rows and columns")

    def __call__(self, frame: np.ndarray, prediction: np.ndarray, tick: int) -> np.ndarray:
        """The frame that the model gets at this tick: a new array like `frame`, which is not written to.

        frame       (rows, columns, channels), a float dtype, 0 to 1
        prediction  the model's, of this very frame, of the same shape; not written to
        """
        return _MODES[self.name](self, frame, prediction, tick)

    def _rng(self, tick: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, tick])


def _none(mode: Mode, frame: np.ndarray, prediction: np.ndarray, tick: int) -> np.ndarray:
    return frame.copy()


def _dream(mode: Mode, frame: np.ndarray, prediction: np.ndarray, tick: int) -> np.ndarray:
    return prediction.astype(frame.dtype)


def _gray(mode: Mode, frame: np.ndarray, prediction: np.ndarray, tick: int) -> np.ndarray:
    return np.full_like(frame, GREY)


def _noise(mode: Mode, frame: np.ndarray, prediction: np.ndarray, tick: int) -> np.ndarray:
    return mode._rng(tick).random(frame.shape).astype(frame.dtype)


def _noisy_signal(mode: Mode, frame: np.ndarray, prediction: np.ndarray, tick: int) -> np.ndarray:
    noise = mode._rng(tick).uniform(-SWING, SWING, frame.shape)
    return (frame + noise).clip(0, 1).astype(frame.dtype)


def _blinks(mode: Mode, frame: np.ndarray, prediction: np.ndarray, tick: int) -> np.ndarray:
    shown = _gray if tick % PERIOD < SHUT else _none
    return shown(mode, frame, prediction, tick)


Change = Callable[[Mode, np.ndarray, np.ndarray, int], np.ndarray]


def _spot(inside: Change, outside: Change) -> Change:
    """One change in the middle, another around it."""

    def change(mode: Mode, frame: np.ndarray, prediction: np.ndarray, tick: int) -> np.ndarray:
        result = outside(mode, frame, prediction, tick)
        place = tuple(_middle(length, mode.fraction) for length in frame.shape[:2])
        result[place] = inside(mode, frame, prediction, tick)[place]
        return result

    return change


def _middle(length: int, fraction: float) -> slice:
    size = round(fraction * length)
    start = (length - size) // 2
    return slice(start, start + size)


_MODES: dict[str, Change] = {
    "none": _none,
    "dream": _dream,
    "partial dream": _spot(_dream, _none),
    "inverse partial dream": _spot(_none, _dream),
    "blind spot": _spot(_gray, _none),
    "inverse blind spot": _spot(_none, _gray),
    "gray": _gray,
    "noise": _noise,
    "noise spot": _spot(_noise, _none),
    "inverse noise spot": _spot(_none, _noise),
    "blinks": _blinks,
    "noisy signal": _noisy_signal,
}
NAMES = tuple(_MODES)
