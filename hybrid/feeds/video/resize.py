"""Pictures of any size made into frames of one shape.

Every picture, those of videos too, is resized by Pillow: its bicubic filter is integer arithmetic, so the bytes are the
same on all machines.
"""

from typing import Any

import numpy as np

from .clip import Shape, read_only


def resized(picture: Any, shape: Shape) -> np.ndarray:
    """A Pillow image as (rows, columns, channels) uint8, by the cubic filter; alpha is dropped."""
    from PIL import Image

    picture = _plain(picture)
    if picture.size != (shape[1], shape[0]):
        picture = picture.resize((shape[1], shape[0]), Image.Resampling.BICUBIC)
    pixels = np.array(picture.convert("L" if shape[2] == 1 else "RGB"), np.uint8)
    return read_only(pixels.reshape(shape))


def _plain(picture: Any) -> Any:
    """The picture in a mode whose values can be averaged: grey or RGB, 8 bits."""
    from PIL import Image

    if picture.mode.startswith(("I", "F")):  # 16 bits, which Pillow would clip
        return Image.fromarray((np.clip(np.array(picture, np.float64), 0, 65535) / 257).round().astype(np.uint8))
    if picture.mode in ("RGB", "L"):
        return picture
    if "transparency" in picture.info:
        picture = picture.convert("RGBA")  # else Pillow warns
    return picture.convert("L" if picture.mode in ("1", "LA") else "RGB")
