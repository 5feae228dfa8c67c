"""A run in TensorBoard: figures and pictures, written by tensorboardX, which needs neither TensorFlow nor PyTorch."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np


def required() -> ModuleType:
    """The module tensorboardX; ValueError, with the command that mends it, where it is missing."""
    try:
        import tensorboardX
    except ImportError as error:
        raise ValueError(
            f'--tensorboard: needs tensorboardX, which cannot be imported ({error}): pip install "hybrid-engine[tensorboard]"'
        ) from None
    module: ModuleType = tensorboardX
    return module


class Board:
    """Writes event files to a folder; what stands there of `first` and later steps, from a run that was stopped, is dropped.

    The caller's thread writes. tensorboardX's own writer has a thread that waits by the wall clock: it dies when the clock
    is set back by weeks, nobody empties its queue then, and the run waits for ever.
    """

    def __init__(self, folder: Path, first: int = 0):
        required()
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import SessionLog

        folder.mkdir(parents=True, exist_ok=True)
        # the name holds the second, the host and this: a run resumed within the second replaces no file
        self._writer = EventsWriter(str(folder / "events"), f".{os.getpid()}.{first}")
        if first:
            self._event(first, session_log=SessionLog(status=SessionLog.START))

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def write(self, step: int, figures: Mapping[str, float], pictures: Mapping[str, np.ndarray]) -> None:
        """Add figures, and pictures (rows, columns, 3) uint8, by name."""
        from tensorboardX.summary import image, scalar

        for name, figure in figures.items():
            self._event(step, summary=scalar(_tag(name), figure))
        for name, picture in pictures.items():
            self._event(step, summary=image(_tag(name), picture, dataformats="HWC"))
        self._writer.flush()

    def _event(self, step: int, **what: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._writer.write_event(Event(step=step, wall_time=time.time(), **what))


def _tag(name: str) -> str:
    """TensorBoard's tags have no spaces; what stands before a slash is a group."""
    return name.replace(", ", "/").replace(" ", "_")
