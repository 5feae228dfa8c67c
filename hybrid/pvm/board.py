"""A run in TensorBoard: figures and pictures, written by tensorboardX, which needs neither TensorFlow nor PyTorch."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .panel import enlarged


def required():
    """The module tensorboardX; ValueError, with the command that mends it, where it is missing."""
    try:
        import tensorboardX
    except ImportError as error:
        raise ValueError(
            f'--tensorboard: needs tensorboardX, which cannot be imported ({error}): pip install "hybrid-engine[tensorboard]"'
        ) from None
    return tensorboardX


class Board:
    """Writes event files to a folder; what stands there of `first` and later steps, from a run that was stopped, is dropped."""

    def __init__(self, folder: Path, first: int = 0):
        self._writer = required().SummaryWriter(str(folder), purge_step=first or None)

    def __enter__(self) -> "Board":
        return self

    def __exit__(self, *exception) -> None:
        self._writer.close()

    def write(self, step: int, figures: Mapping[str, float], pictures: Mapping[str, np.ndarray]) -> None:
        """Add figures, and pictures (rows, columns, 3) uint8, by name."""
        for name, figure in figures.items():
            self._writer.add_scalar(_tag(name), figure, step)
        for name, picture in pictures.items():
            self._writer.add_image(_tag(name), enlarged(picture), step, dataformats="HWC")
        self._writer.flush()


def _tag(name: str) -> str:
    """TensorBoard's tags have no spaces; what stands before a slash is a group."""
    return name.replace(", ", "/").replace(" ", "_")
