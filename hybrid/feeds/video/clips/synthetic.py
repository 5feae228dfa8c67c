"""A synthetic scene: three textured bodies over a scrolling background, one of them the target.

Every position is a function of the frame number, so frames are independent. The motion is smooth and learnable: a predictive
model beats one that repeats the last frame.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import check
from ..clip import Frame, Shape, check_shape, inside, read_only

TARGET, BOX, TRIANGLE = (1.0, 0.85, 0.1), (0.1, 0.35, 0.95), (0.75, 0.1, 0.5)  # yellow, blue, purple
GREY = np.array([0.299, 0.587, 0.114], np.float32)

Outline = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def open_clip(source: str, shape: Shape) -> "Scene":
    """Returns the scene of a seed, by default 0; ValueError for anything but an integer."""
    if source and not (source.isascii() and source.isdigit()):
        raise ValueError(f"synthetic:{source}: expected a whole number after the colon, as in synthetic:1")
    return Scene(shape, seed=int(source or 0))


class Scene:
    """A labelled `Clip` of `length` frames of a scene drawn from a seed.

    The target is a disc in the foreground. It crosses the picture from side to side, and is sometimes outside.
    """

    rate = 25.0

    def __init__(self, shape: Shape, length: int = 1000, *, seed: int = 0):
        self.shape = check_shape(shape)
        self.length, self.seed = check.whole("length", length, 1), check.whole("seed", seed, 0)
        rng = np.random.default_rng(self.seed)
        self._scale = float(min(shape[:2]))
        self._texture = _texture(rng, self.shape)
        self._scroll = rng.uniform(0.006, 0.012, 2) * rng.choice([-1, 1], 2) * self._scale
        self._start = rng.random((3, 2))
        self._speed = rng.uniform(0.006, 0.012, (3, 2))  # cycles per frame
        self._spin = rng.uniform(0.02, 0.05, 3) * rng.choice([-1, 1], 3)
        self._radius = rng.uniform([0.13, 0.12, 0.14], [0.17, 0.16, 0.2]) * self._scale

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, number: int) -> Frame:
        inside(number, self.length)
        picture = self._background(number)
        bodies = ((_triangle, TRIANGLE), (_box, BOX), (_disc, TARGET))
        for body, (outline, colour) in enumerate(bodies):
            self._draw(picture, number, body, outline, np.array(colour, np.float32))
        if self.shape[2] == 1:
            picture = (picture @ GREY)[..., None]
        image = (np.clip(picture, 0, 1) * 255 + 0.5).astype(np.uint8)
        return Frame(read_only(image), read_only(self._target(number)))

    def describe(self) -> dict[str, Any]:
        """Returns the description; see `Clip`."""
        return {"kind": "scene", "seed": self.seed, "frames": self.length, "shape": list(self.shape)}

    def _background(self, number: int) -> np.ndarray:
        """Returns the visible part of the texture, (rows, columns, 3) float32; it moves by fractions of a pixel."""
        rows, columns = self.shape[:2]
        period = np.array(self._texture.shape[:2]) - self.shape[:2] - 1
        at = self._scroll * number % period
        y, x = (int(place) for place in at)
        down, right = (np.float32(part) for part in at % 1)
        piece: np.ndarray = self._texture[y : y + rows + 1, x : x + columns + 1]
        piece = piece[:-1] + down * (piece[1:] - piece[:-1])
        return np.asarray(piece[:, :-1] + right * (piece[:, 1:] - piece[:, :-1]))

    def _centre(self, number: int, body: int) -> np.ndarray:
        """Returns a body's centre x, y: an ellipse for the triangle, oscillation for the others; the target leaves the view."""
        size = np.array([self.shape[1], self.shape[0]], float)
        phase = self._start[body] + self._speed[body] * number
        if body == 0:
            angle = 2 * np.pi * phase[0]
            return np.asarray(size * (0.5 + 0.32 * np.array([np.cos(angle), np.sin(angle)])))
        way = 1 - np.abs(2 * (phase % 1) - 1)  # 0 to 1 and back
        reach = np.array([1.7, 1.0]) if body == 2 else np.array([0.8, 0.8])
        return np.asarray(size * (0.5 + reach * (way - 0.5)))

    def _draw(self, picture: np.ndarray, number: int, body: int, outline: Outline, colour: np.ndarray) -> None:
        """Paints a body over the picture, with stripes that rotate with it and a soft edge of one pixel."""
        x, y = self._centre(number, body)
        radius = self._radius[body]
        rows, columns = (
            slice(max(0, int(middle - radius - 1)), max(0, min(limit, int(middle + radius + 2))))
            for middle, limit in zip((y, x), self.shape[:2], strict=True)
        )
        down = np.arange(rows.start, rows.stop, dtype=np.float32)[:, None] + 0.5 - y
        right = np.arange(columns.start, columns.stop, dtype=np.float32) + 0.5 - x
        angle = self._spin[body] * number
        cos, sin = np.float32(np.cos(angle)), np.float32(np.sin(angle))
        along, across = cos * right + sin * down, cos * down - sin * right
        cover = np.clip(0.5 - outline(along, across, radius), 0, 1)[..., None]
        light = 0.8 + 0.2 * np.sin(along * np.float32(7 / radius))[..., None]
        under = picture[rows, columns]
        under += cover * (light * colour - under)

    def _target(self, number: int) -> np.ndarray:
        """Returns the box around the visible part of the target: (4,) float32, zeros if less than a pixel is visible."""
        limit = np.array([self.shape[1], self.shape[0]])
        centre, radius = self._centre(number, 2), self._radius[2]
        outside = np.maximum(0, np.maximum(-centre, centre - limit))[::-1]
        reach = np.sqrt(np.maximum(0, radius**2 - outside**2))  # half height of the disc where an edge clips it
        low, high = np.clip(centre - reach, 0, limit), np.clip(centre + reach, 0, limit)
        seen = (high - low >= 1).all()
        return np.concatenate([low, high - low]).astype(np.float32) if seen else np.zeros(4, np.float32)


def _disc(along: np.ndarray, across: np.ndarray, radius: float) -> np.ndarray:
    """Returns the distance from the edge in pixels, negative inside."""
    return np.asarray(np.hypot(along, across) - radius)


def _box(along: np.ndarray, across: np.ndarray, radius: float) -> np.ndarray:
    return np.asarray(np.maximum(np.abs(along), np.abs(across)) - radius / np.sqrt(2))


def _triangle(along: np.ndarray, across: np.ndarray, radius: float) -> np.ndarray:
    """Returns the maximum over three half planes, each at half the radius."""
    slope = np.float32(np.sqrt(3) / 2)
    edges = np.maximum(np.maximum(-along, along / 2 + slope * across), along / 2 - slope * across)
    return np.asarray(edges - radius / 2)


def _texture(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Returns smooth, periodic noise of three colours, twice the picture's size, wrapped so that every piece is a slice."""
    from scipy import ndimage

    rows, columns = shape[:2]
    blur = max(1.0, min(rows, columns) / 16)
    noise = rng.standard_normal((2 * rows, 2 * columns, 3))
    smooth = ndimage.gaussian_filter(noise, (blur, blur, 0), mode="wrap")
    smooth /= smooth.std(axis=(0, 1))
    smooth = 0.42 + 0.07 * smooth + 0.07 * smooth.sum(axis=2, keepdims=True)  # paler than the bodies
    whole = np.pad(smooth, ((0, rows + 1), (0, columns + 1), (0, 0)), mode="wrap")
    return np.asarray(np.clip(whole, 0.05, 0.85), np.float32)
