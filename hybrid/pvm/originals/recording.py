"""A recording of an original Predictive Vision Model: its arrays, what was compared with them, and how far it was off."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...storage import npz

TOLERANCE = {"float64": 1e-12, "float32": 2e-6}
GPU = 1e-5  # sums in another order, with fused multiply-adds
ROUNDED = 1e-7  # of what is recorded in float32 beside float64: numbers up to 1 are rounded by half of this
FED = (  # what ours is given, so there is nothing to compare
    "config_json", "launches_json", "real", "weights_init", "readout_w0_init", "readout_w1_init", "readout_init",
    "readout_hidden", "t_frame_in", "t_frame_u8", "t_learned", "t_step", "w_steps",
    "unit_i_ptr", "unit_r_ptr", "unit_w0_ptr", "unit_w1_ptr", "readout_w0_ptr", "readout_w1_ptr",
)  # fmt: skip


class Row(NamedTuple):
    """One recorded array: the worst difference, where it is (None: it is no array of frames), and what is allowed."""

    name: str
    worst: float
    frame: int | None
    allowed: float

    @property
    def fails(self) -> bool:
        return not self.worst <= self.allowed

    def __str__(self) -> str:
        at = "" if self.frame is None else f"frame {self.frame}"
        return f"{self.name:24}{self.worst:12.3g}  {at:10}{self.allowed:10.1g}  {'FAILS' if self.fails else 'ok'}"


class Recording:
    """The arrays of a file; which of them were compared, and how far ours were from them."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.arrays, self.allowed = arrays, 0.0
        self.rows: dict[str, Row] = {}
        self.options = json.loads(str(arrays["config_json"]))

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            return self.arrays[name]
        except KeyError:
            raise ValueError(f"{name}: not in the file, expected in a recording") from None

    def same(
        self, name: str, ours: Sequence[Any] | np.ndarray, recorded: Sequence[Any] | np.ndarray | None = None
    ) -> None:
        """Compare what must be equal, entry by entry: a list, sizes, shapes. recorded None: the array of this name."""
        if name not in self:
            return
        theirs = self[name] if recorded is None else recorded
        equal = len(ours) == len(theirs) and all(map(np.array_equal, ours, theirs))
        self.rows[name] = Row(name, 0.0 if equal else np.inf, None, 0.0)

    def same_lists(self, flat: str, cuts: str, ours: list[list[int]]) -> None:
        """The same for a list a unit, recorded behind one another and where each begins."""
        if flat in self and cuts in self:
            recorded = [self[flat][low:high].tolist() for low, high in pairwise(self[cuts])]
            self.same(flat, ours, recorded)
            self.same(cuts, [len(part) for part in ours], [len(part) for part in recorded])

    def near(self, name: str, frame: int, ours: Any, place: Any = slice(None), at: Any = None) -> None:
        """Compare numbers of a frame with entry `at` (None: the frame; (): the whole) of an array, there where `place` says."""
        if name not in self:
            return
        recorded = np.asarray(self[name][frame if at is None else at]).reshape(-1)[place]
        allowed = self.allowed
        if self[name].dtype.kind != "f":
            allowed = 0.0
        elif self[name].dtype == np.float32:
            allowed = max(allowed, ROUNDED)
        apart = difference(np.asarray(ours, np.float64).reshape(-1), recorded.astype(np.float64))
        before = self.rows.get(name, Row(name, -1.0, frame, allowed))
        self.rows[name] = Row(name, apart, frame, allowed) if apart > before.worst else before

    def missed(self) -> list[str]:
        """Arrays that nothing was compared with."""
        return [
            name
            for name in self.arrays
            if name not in self.rows and name not in FED and not name.startswith("t_label_")
        ]


def difference(ours: np.ndarray, recorded: np.ndarray) -> float:
    """The largest; infinite where shapes differ, or where only one of both is a number."""
    if ours.shape != recorded.shape:
        return np.inf
    apart = np.where(np.isnan(ours) & np.isnan(recorded), 0, abs(ours - recorded))
    return float(np.where(np.isnan(apart), np.inf, apart).max(initial=0))


def read(path: str | Path) -> Recording:
    """The recording in a file; ValueError for a file that is none, OSError where it cannot be read."""
    found = npz.read(path, "a recording")
    needed = ("config_json", "weights_init")
    missing = [name for name in needed if name not in found]
    if missing or not {"t_frame_raw", "t_frame_u8"} & set(found):
        what = f"no {missing[0]}" if missing else "no frames, t_frame_raw or t_frame_u8"
        raise ValueError(f"{path}: found {what} among {len(found)} arrays, expected a recording")
    try:
        return Recording(found)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: config_json: not JSON ({error}), expected a recording") from None
