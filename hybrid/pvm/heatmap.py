"""Heatmaps and boxes: the box that a heatmap shows, and the heatmap that a labelled box becomes.

A box is x, y, width, height in pixels, (4,) float32, x to the right and y down from the image's upper left corner; a
box of width 0 is absent. A heatmap is (rows, columns), 0 to 1, of any size: it covers the image. The rule is that of
braincorp/PVM (PVM_models/PVM_tracker.py), on floats where the original rounds to bytes and whole pixels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np


def combine(heatmaps: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """The mean of heatmaps at an image's size, (rows, columns) float32 in 0 to 1; the sizes of the heatmaps may differ.

    shape  of the image: rows, columns and what follows
    """
    mean: np.ndarray = np.mean([_resize(heatmap, shape) for heatmap in heatmaps], axis=0)
    return mean.clip(0, 1).astype(np.float32)


def _resize(heatmap: np.ndarray, shape: tuple[int, ...]) -> Any:
    """Cubic interpolation in float64. Pixels are areas (grid_mode), and the edge continues outside: flat maps stay flat."""
    from scipy import ndimage

    rows, columns = heatmap.shape
    factors = shape[0] / rows, shape[1] / columns
    return ndimage.zoom(heatmap, factors, output=np.float64, order=3, mode="nearest", grid_mode=True)


def box_of(
    heatmap: np.ndarray,
    *,
    likely: float = 0.5,
    threshold: float = 32 / 255,
    least_share: float = 25 / 96**2,
    grow: float = 1.1,
) -> np.ndarray:
    """The box around the maximum of a heatmap of the image's size; absent where nothing stands out.

    Readouts learn by squared error, so a heatmap gives the probability that the object covers a place.

    likely       the least maximum of an object that is there; at 0.5 it is as likely there as not. The original has no such
                 bound, and reports an object that is absent where it is seen most of the time
    threshold    how far the maximum must exceed the median; the region is where the heatmap is above the mean of the two
                 and connected to the maximum, over corners too
    least_share  of the image that the region's bounding rectangle must exceed; the original has 25 pixels of 96 x 96
    grow         the rectangle is scaled by it about its centre; it may then reach outside the image
    """
    from scipy import ndimage

    highest, median = heatmap.max(), np.median(heatmap)
    if not (highest >= likely and highest > median + threshold):
        return np.zeros(4, np.float32)
    regions, _ = ndimage.label(heatmap > (highest + median) / 2, structure=np.ones((3, 3)))
    region = regions.flat[heatmap.argmax()]
    down, right = ndimage.find_objects(regions)[region - 1]
    width, height = right.stop - right.start, down.stop - down.start
    if not width * height > least_share * heatmap.size:
        return np.zeros(4, np.float32)
    x, y = right.start - (grow - 1) / 2 * width, down.start - (grow - 1) / 2 * height
    return np.array([x, y, grow * width, grow * height], np.float32)


def heat_target(box: np.ndarray, rows: int, columns: int, image_shape: tuple[int, ...]) -> np.ndarray:
    """The share of each cell of a heatmap that a box covers, (rows, columns) float32; all 0 for an absent box.

    Shares add up to the box's area inside the image, so a box smaller than a cell does not vanish.

    image_shape  rows, columns and what follows
    """
    x, y, width, height = np.asarray(box, np.float64)
    down, right = rows / image_shape[0], columns / image_shape[1]  # cells a pixel
    share = np.outer(_covered(y * down, height * down, rows), _covered(x * right, width * right, columns))
    return share.astype(np.float32)


def _covered(start: float, length: float, cells: int) -> np.ndarray:
    """How much of each cell [i, i + 1) lies in [start, start + length), (cells,)."""
    low = np.arange(cells)
    return (np.minimum(low + 1, start + length) - np.maximum(low, start)).clip(0, 1)


def squeezed(mask: np.ndarray) -> np.ndarray:
    """The targets of piekniewski/PVM_cuda's readout for a mask: 0.1 outside, 0.9 inside."""
    return 0.8 * mask + 0.1


def raised(mask: np.ndarray) -> np.ndarray:
    """The targets of braincorp/PVM's readouts for a mask: 0.4 outside, 1 inside."""
    return 0.6 * mask + 0.4
