"""Pictures of what a model sees and makes of it, one by one and side by side. All are (rows, columns, 3) uint8."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from .wiring import Wiring

CELL = 240  # pixels of a picture's place, at least
CAPTION, GAP = 16, 4
BEHIND, INK = 24, 210
CONTRAST = 3  # of the difference: errors are small
LABEL, FOUND = (60, 230, 90), (80, 180, 255)
HEAT = np.array([[0, 0, 0], [150, 0, 0], [240, 110, 0], [255, 220, 60], [255, 255, 255]], np.float64)  # 0, 1/4, ... 1


def views(
    wiring: Wiring, frame, prediction, hidden: Sequence[np.ndarray], heatmap: np.ndarray | None
) -> dict[str, np.ndarray]:
    """What there is to see, by caption.

    frame, prediction  (rows, columns, channels) floats in 0..1: a frame, and what was predicted of it
    hidden             of each layer (units, numbers); heatmap (rows, columns) or None
    """
    difference = np.abs(np.subtract(prediction, frame, dtype=np.float64)) * CONTRAST
    found = {"frame": rgb(frame), "prediction": rgb(prediction), f"difference x {CONTRAST}": rgb(difference)}
    for layer, numbers in enumerate(hidden):
        found[f"hidden, layer {layer}"] = rgb(hidden_map(wiring, layer, numbers)[..., None])
    return found if heatmap is None else found | {"heatmap": heat(heatmap)}


def rgb(image: np.ndarray) -> np.ndarray:
    """Floats in 0..1 as bytes; of channels the first three, or the first as grey."""
    channels = image[..., :3] if image.shape[-1] >= 3 else np.repeat(image[..., :1], 3, axis=-1)
    return (np.clip(channels, 0, 1) * 255 + 0.5).astype(np.uint8)


def heat(heatmap: np.ndarray) -> np.ndarray:
    """0 black, over red and yellow to 1 white."""
    steps = np.linspace(0, 1, len(HEAT))
    shades = [np.interp(heatmap, steps, HEAT[:, channel]) for channel in range(3)]
    return (np.stack(shades, axis=-1) + 0.5).astype(np.uint8)


def hidden_map(wiring: Wiring, layer: int, hidden: np.ndarray) -> np.ndarray:
    """What a layer publishes, (units, numbers), as one picture: a nearly square block a unit, where the unit stands.

    Units of several sizes come as one row (1, all numbers), and are shown as one block.
    """
    side = math.ceil(math.sqrt(hidden.shape[1]))
    high = -(-hidden.shape[1] // side)
    blocks = np.zeros((len(hidden), high * side))
    blocks[:, : hidden.shape[1]] = hidden
    units = wiring.layer == layer
    if len(hidden) != units.sum():
        return blocks.reshape(high, side)
    rows, columns = wiring.grids[layer]
    whole = np.zeros((rows, high, columns, side))
    whole[wiring.row[units], :, wiring.column[units]] = blocks.reshape(-1, high, side)
    return whole.reshape(rows * high, columns * side)


def side_by_side(pictures: Mapping[str, np.ndarray], boxes: Mapping[str, Sequence] | None = None) -> np.ndarray:
    """The pictures in one, each enlarged by a whole number, with its caption above.

    boxes  by caption: (box, colour), a box x, y, width, height as shares of the picture's columns and rows
    """
    from PIL import Image, ImageDraw

    across = len(pictures) if len(pictures) <= 4 else math.ceil(len(pictures) / math.ceil(len(pictures) / 6))
    cell = max(CELL, *(max(picture.shape[:2]) for name, picture in pictures.items() if not name.startswith("hidden")))
    down = -(-len(pictures) // across)
    size = (across * (cell + GAP) + GAP, down * (cell + CAPTION + GAP))
    whole = Image.new("RGB", size, (BEHIND,) * 3)
    pen = ImageDraw.Draw(whole)
    for place, (name, picture) in enumerate(pictures.items()):
        left, top = GAP + place % across * (cell + GAP), place // across * (cell + CAPTION + GAP)
        pen.text((left, top + 2), name, fill=(INK,) * 3)
        shown = _fitted(picture, cell)
        whole.paste(shown, (left, top + CAPTION))
        for box, colour in (boxes or {}).get(name, ()):
            _outline(pen, box, (left, top + CAPTION, *shown.size), colour)
    return np.array(whole)


def enlarged(picture: np.ndarray, least: int = CELL) -> np.ndarray:
    """By the whole number that brings the longer side nearest to `least`, from below; large pictures as they are."""
    zoom = max(1, least // max(picture.shape[:2]))
    return picture.repeat(zoom, axis=0).repeat(zoom, axis=1)


def _fitted(picture: np.ndarray, cell: int):
    """Enlarged by a whole number to fit a cell, or shrunk."""
    from PIL import Image

    found = Image.fromarray(np.ascontiguousarray(enlarged(picture, cell)))
    found.thumbnail((cell, cell), Image.Resampling.BOX)
    return found


def _outline(pen, box, place: tuple[int, int, int, int], colour) -> None:
    """Draw a box that is not absent, cut at the picture's edge."""
    (x, y, width, height), (left, top, wide, high) = map(float, box), place
    if not (width > 0 and height > 0):
        return
    corners = np.clip([x, y, x + width, y + height], 0, 1) * (wide, high, wide, high)
    low_x, low_y, high_x, high_y = np.add(corners, (left, top, left - 1, top - 1))
    pen.rectangle((low_x, low_y, max(low_x, high_x), max(low_y, high_y)), outline=colour)


def shares(box: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """A box in pixels of an image of this shape, as shares of its columns and rows."""
    return np.asarray(box, np.float64) / (shape[1], shape[0], shape[1], shape[0])


def save(path, picture: np.ndarray) -> None:
    """Write a picture as PNG."""
    import io

    from PIL import Image

    from .. import atomic

    data = io.BytesIO()
    Image.fromarray(picture).save(data, "PNG")
    atomic.write(path, [data.getvalue()])
