"""Refuse bad arguments where the user meets the engine: name, found, expected. What lies below trusts its arguments."""

import math
from collections.abc import Iterable

import numpy as np


def whole(name: str, value, low: int, high: int | None = None) -> int:
    """`value` itself; ValueError unless it is a whole number from `low` to `high` (None: any size)."""
    fits = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not fits or value < low or (high is not None and value > high):
        limits = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name}: found {value!r}, expected a whole number {limits}")
    return int(value)


def number(name: str, value, low: float) -> float:
    """`value` itself; ValueError unless it is a finite number of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not low <= value < math.inf:
        raise ValueError(f"{name}: found {value!r}, expected a finite number of at least {low}")
    return float(value)


def choice(name: str, value, among: tuple[str, ...]) -> str:
    """`value` itself; ValueError unless it is one of `among`."""
    if value not in among:
        raise ValueError(f"{name}: found {value!r}, expected one of {', '.join(among)}")
    return value


def classes(value) -> int:
    """`value` itself; ValueError unless there are at least 2 classes, and few enough for int32 ids."""
    if isinstance(value, int | np.integer) and value < 2:
        raise ValueError(f"classes: found {value}, at least 2 needed")
    return whole("classes", value, 2, 2**31 - 1)


def counts(values) -> np.ndarray:
    """How often each class is met, as float64; ValueError unless they are one row of finite numbers of at least 0."""
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise ValueError(f"counts: found {values.dtype} {values.shape}, expected one number a class")
    classes(values.size)
    bad = ~((values >= 0) & (values < math.inf))
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(f"counts[{at}]: found {values[at]}, expected a finite number of at least 0")
    return values.astype(np.float64)


def row(name: str, values) -> np.ndarray:
    """`values` as an array; ValueError unless they are one row of whole numbers, or none at all."""
    values = values if isinstance(values, np.ndarray) else list(values) if isinstance(values, Iterable) else values
    try:
        found = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name}: found rows of different lengths, expected one row of whole numbers") from None
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(f"{name}: found {found.dtype} {found.shape}, expected one row of whole numbers")
    return found


def array(name: str, value, shape: tuple[int | None, ...], dtype, *, written=False) -> np.ndarray:
    """`value` itself; ValueError unless it is a C-contiguous array of this dtype and shape (None: any length).

    written  refuse a read-only array too
    """
    sizes = ["any" if size is None else str(size) for size in shape]
    wanted = f"{np.dtype(dtype)} ({', '.join(sizes)}{',' * (len(sizes) == 1)})"
    remedy = f"numpy.ascontiguousarray(..., dtype=numpy.{np.dtype(dtype)}) makes one"
    if not isinstance(value, np.ndarray):
        raise ValueError(f"{name}: found {type(value).__name__}, expected an array {wanted}; {remedy}")
    fits = value.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, value.shape, strict=True))
    if not fits or value.dtype != dtype:
        raise ValueError(f"{name}: found {value.dtype} {value.shape}, expected {wanted}; {remedy}")
    if not value.flags.c_contiguous:
        raise ValueError(f"{name}: found strides {value.strides}, expected C order; {remedy}")
    if written and not value.flags.writeable:
        raise ValueError(f"{name}: found a read-only array, but results are written to it; pass a copy")
    return value


def ids(name: str, values: np.ndarray, limit: int) -> None:
    """IndexError, naming the first bad place, unless all ids lie in [0, limit)."""
    if values.size and not (values.min() >= 0 and values.max() < limit):
        at = np.unravel_index(int(((values < 0) | (values >= limit)).argmax()), values.shape)
        place = ", ".join(map(str, at))
        raise IndexError(f"{name}[{place}]: found {values[at]}, expected 0 to {limit - 1}")


def finite(name: str, values: np.ndarray) -> None:
    """ValueError, naming the first bad row, for a NaN or an infinity in `values`; costs two passes and no memory."""
    if values.size and not (math.isfinite(values.min()) and math.isfinite(values.max())):
        good = np.isfinite(values)
        row = int(good.reshape(len(values), -1).all(axis=1).argmin())
        raise ValueError(f"{name}[{row}]: found NaN or infinity, expected finite numbers")


def loss(values: np.ndarray) -> float:
    """The mean of the losses; FloatingPointError, naming the first bad row, when one is not finite."""
    mean = float(values.mean(dtype=np.float64)) if values.size else 0.0
    if not math.isfinite(mean):
        row = int(np.isfinite(values).argmin())
        raise FloatingPointError(f"loss[{row}]: found {values[row]}; a lower rate may help")
    return mean
