"""Pictures of frames, predictions and hidden activations, single and side by side. All are (rows, columns, 3) uint8."""

import io
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import console
from ..storage import files
from .config import Config
from .figures import bounds
from .wiring import Wiring

AREA = 300 * 300  # minimum pixels of a picture in a panel
FINE = 2  # minimum width in pixels of a hidden number ...
WIDEST = 900  # ... up to this picture size
CAPTION, NOTE, GAP, TITLE = 20, 18, 8, 24
LETTERS, LARGE_LETTERS = 13, 16
LONGEST = 2000  # characters of a line: no panel has room for more
BEHIND, INK, FAINT = (24, 24, 24), (225, 225, 225), (160, 160, 160)
ERROR = 0.25  # mean |difference| of a pixel's channels at full brightness: errors are small
LABEL, FOUND = (60, 230, 90), (80, 180, 255)  # green, blue
Colour = tuple[int, int, int]


class Scale(NamedTuple):
    """The range of numbers that the colours of a picture represent."""

    low: float
    high: float
    colours: str  # matplotlib's name of the colour map


class View(NamedTuple):
    """A picture of a panel.

    picture  (rows, columns, 3) uint8
    scale    of its colours; None: they are those of a frame
    units    (rows, columns) of units, separated by lines
    note     a line below
    boxes    (box, colour) each; a box is x, y, width, height as fractions of the picture's columns and rows
    """

    picture: np.ndarray
    scale: Scale | None = None
    units: tuple[int, int] | None = None
    note: str = ""
    boxes: tuple[tuple[np.ndarray, Colour], ...] = ()


def views(
    config: Config,
    wiring: Wiring,
    pictures: tuple[np.ndarray, np.ndarray],
    hidden: Sequence[np.ndarray],
    heatmap: np.ndarray | None,
    off: tuple[float, float] | None = None,
) -> dict[str, View]:
    """Returns the pictures of a tick, by caption.

    pictures  (rows, columns, channels) floats in 0..1: a frame, and its prediction
    hidden    of each layer (units, numbers); heatmap (rows, columns) or None
    off       the error of the prediction, and that of the previous frame; None: there was no prediction
    """
    frame, prediction = pictures
    difference = np.abs(np.subtract(prediction, frame, dtype=np.float64)).mean(axis=-1)
    notes = (f"mean |error| {off[0]:.4f}", f"repeating the last frame: {off[1]:.4f}") if off else ("none yet",) * 2
    shown = {
        "frame": View(rgb(frame)),
        "prediction": View(rgb(prediction), note=notes[0]),
        "difference": coloured(difference, Scale(0, ERROR, "inferno"))._replace(note=notes[1]),
    }
    if heatmap is not None:
        shown["heatmap"] = coloured(heatmap, Scale(0, 1, "inferno"))
    for layer, numbers in enumerate(hidden):
        view = coloured(hidden_map(wiring, layer, numbers), Scale(*bounds(config), "viridis"))
        apart = len(numbers) == (wiring.layer == layer).sum() > 1
        shown[f"hidden, layer {layer}"] = view._replace(units=wiring.grids[layer] if apart else None)
    return shown


def rgb(image: np.ndarray) -> np.ndarray:
    """Converts floats in 0..1 to bytes: the first three channels, or the first as grey."""
    channels = image[..., :3] if image.shape[-1] >= 3 else np.repeat(image[..., :1], 3, axis=-1)
    levels: np.ndarray = np.clip(channels, 0, 1) * 255 + 0.5
    return levels.astype(np.uint8)


def coloured(numbers: np.ndarray, scale: Scale) -> View:
    """Returns numbers (rows, columns) in the colours of a scale; values outside are clipped."""
    place = np.clip((np.asarray(numbers, np.float64) - scale.low) / (scale.high - scale.low), 0, 1)
    return View(colours(scale.colours)[(place * 255 + 0.5).astype(np.uint8)], scale)


@cache
def colours(name: str) -> np.ndarray:
    """Returns the colours from the lowest to the highest, (256, 3) uint8."""
    from matplotlib import colormaps

    return colormaps[name](np.arange(256), bytes=True)[:, :3]


def hidden_map(wiring: Wiring, layer: int, hidden: np.ndarray) -> np.ndarray:
    """Returns a layer's published values, (units, numbers), as one picture: a nearly square block per unit, at its position.

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


def side_by_side(views: Mapping[str, View], *, aspect: float | None = None, title: str = "") -> np.ndarray:
    """Returns the views as one picture: panels of one size, each with its caption above and its note below.

    aspect  width / height of the original frame, used by all panels. Every unit of a map is thus at its position in the frame,
            even if frames were stretched for the model; None: that of the first view
    title   a line above all
    """
    from PIL import Image, ImageDraw

    wide, high = _size(list(views.values()), aspect)
    # As many panels a row as leave the fewest places empty.
    across = len(views) if len(views) < 4 else min((4, 5, 3), key=lambda across: -len(views) % across)
    head = GAP + TITLE * bool(title)
    cell = (wide + GAP, CAPTION + high + GAP + NOTE * any(view.note for view in views.values()))
    whole = Image.new("RGB", (across * cell[0] + GAP, head + -(-len(views) // across) * cell[1]), BEHIND)
    pen = ImageDraw.Draw(whole)
    _text(pen, (GAP, GAP), title, whole.width - 4 * GAP, LARGE_LETTERS)
    for place, (name, view) in enumerate(views.items()):
        left, top = GAP + place % across * cell[0], head + place // across * cell[1]
        ends = f"  ({view.scale.low:g} to {view.scale.high:g})" if view.scale else ""
        _text(pen, (left, top + 1), name + ends, wide)
        top += CAPTION
        # Pixels stay square if a picture is enlarged, and are averaged if it is shrunk.
        how = Image.Resampling.NEAREST if view.picture.shape[1] <= wide else Image.Resampling.BOX
        picture = Image.fromarray(np.ascontiguousarray(view.picture)).resize((wide, high), how)
        whole.paste(picture, (left, top))
        _lines(pen, (left, top, wide, high), view.units)
        for box, colour in view.boxes:
            _outline(pen, box, (left, top, wide, high), colour)
        _text(pen, (left, top + high + 1), view.note, wide, colour=FAINT)
    return np.array(whole)


def _size(views: list[View], aspect: float | None) -> tuple[int, int]:
    rows, columns = views[0].picture.shape[:2]
    aspect = float(np.clip(aspect or columns / rows, 1 / 3, 3))
    wide = math.sqrt(AREA * aspect)
    finest = max((view.picture.shape[1] for view in views if view.units), default=0)
    wide = max(wide, min(FINE * finest, WIDEST))
    return round(wide), round(wide / aspect)


@cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _text(pen: Any, at: tuple[float, float], text: str, room: float, size: int = LETTERS, colour: Colour = INK) -> None:
    """Writes a line, truncated to the room; line separators in it, as in file names, are escaped."""
    text = console.line(text[:LONGEST])
    font = _font(size)
    if pen.textlength(text, font) > room:
        while text and pen.textlength(text + "...", font) > room:
            text = text[:-1]
        text += "..."
    pen.text(at, text, fill=colour, font=font)


def _lines(pen: Any, place: tuple[int, int, int, int], units: tuple[int, int] | None) -> None:
    """Draws lines between units, wider between large ones."""
    (left, top, wide, high), (rows, columns) = place, units or (1, 1)
    width = 1 if min(wide / columns, high / rows) < 30 else 2
    for row in range(1, rows):
        y = top + round(row * high / rows)
        pen.line((left, y, left + wide - 1, y), fill=BEHIND, width=width)
    for column in range(1, columns):
        x = left + round(column * wide / columns)
        pen.line((x, top, x, top + high - 1), fill=BEHIND, width=width)


def _outline(pen: Any, box: np.ndarray, place: tuple[int, int, int, int], colour: Colour) -> None:
    """Draws a box that is not absent, clipped to the picture."""
    (x, y, width, height), (left, top, wide, high) = map(float, box), place
    if not (width > 0 and height > 0):
        return
    corners = np.clip([x, y, x + width, y + height], 0, 1) * (wide, high, wide, high)
    low_x, low_y, high_x, high_y = np.add(corners, (left, top, left - 1, top - 1))
    pen.rectangle((low_x, low_y, max(low_x, high_x), max(low_y, high_y)), outline=colour, width=2)


def shares(box: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Converts a box in pixels of an image of this shape to fractions of its columns and rows."""
    return np.asarray(box, np.float64) / (shape[1], shape[0], shape[1], shape[0])


def enlarged(picture: np.ndarray, least: int) -> np.ndarray:
    """Enlarges the picture by the largest integer that keeps its longer side at most `least`; larger ones are unchanged."""
    zoom = max(1, least // max(picture.shape[:2]))
    return picture.repeat(zoom, axis=0).repeat(zoom, axis=1)


def png(picture: np.ndarray) -> bytes:
    """Returns a picture as the bytes of a PNG file."""
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(picture).save(data, "PNG")
    return data.getvalue()


def path_of(name: str | Path) -> Path:
    """Returns the path of a picture; ValueError unless it ends with .png."""
    if Path(name).suffix.lower() != ".png":
        raise ValueError(f"{name}: expected a name that ends with .png")
    return Path(name)


def save(path: Path, picture: np.ndarray) -> None:
    """Writes a picture as PNG."""
    files.write(path, [png(picture)])
