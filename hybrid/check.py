"""Checks of arguments from users; messages state name, found and expected. Kernels and launchers do not check again."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cpu.output.topk import Excluded

ID = 2**31 - 1  # int32 ids are below it
SOUND = "build it by scipy.sparse.coo_array((data, (row, column)), shape)"
FLOAT32 = float(np.finfo(np.float32).max)


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Returns `value` as an int; ValueError unless it is a whole number from `low` to `high` (None: no limit)."""
    fits = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not fits or value < low or (high is not None and value > high):
        limits = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name}: found {value!r}, expected a whole number {limits}")
    return int(value)


def number(name: str, value: Any, low: float) -> float:
    """Returns `value` as a float; ValueError unless it is at least `low` and finite in float32, as kernels take it."""
    value = value[()] if isinstance(value, np.ndarray) and not value.ndim else value
    fits = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not fits or not low <= value <= FLOAT32:
        raise ValueError(f"{name}: found {value!r}, expected a finite number of at least {low}, in float32")
    return float(value)


def choice(name: str, value: str | None, among: tuple[str, ...]) -> str:
    """Returns `value`; ValueError unless it is one of `among`."""
    if not isinstance(value, str | None):  # comparison with an array yields an array
        raise ValueError(f"{name}: found {type(value).__name__}, expected one of {', '.join(among)}")
    if value not in among:
        raise ValueError(f"{name}: found {value!r}, expected one of {', '.join(among)}")
    return value


def classes(value: Any) -> int:
    """Returns `value` as an int; ValueError unless it is at least 2 classes and their ids fit int32."""
    if isinstance(value, int | np.integer) and value < 2:
        raise ValueError(f"classes: found {value}, at least 2 needed")
    return whole("classes", value, 2, ID)


def counts(values: Any, *, more: bool = False) -> np.ndarray:
    """Returns class counts as float64; ValueError unless all are finite and at least 0; more: they extend existing ones."""
    met: np.ndarray = np.asarray(unmasked("counts", values))
    if met.ndim != 1 or met.dtype.kind not in "iuf" or (more and not met.size):
        raise ValueError(f"counts: found {met.dtype} {met.shape}, expected one number per class")
    if not more:
        classes(met.size)
    bad = ~((met >= 0) & (met < math.inf))
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(f"counts[{at}]: found {met[at]}, expected a finite number of at least 0")
    return met.astype(np.float64)


def row(name: str, values: Any) -> np.ndarray:
    """Returns `values` as an array; ValueError unless they are a vector of whole numbers, which may be empty."""
    if isinstance(values, np.ndarray):
        unmasked(name, values)
    elif isinstance(values, Iterable):
        values = list(values)
    try:
        found = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name}: found rows of different lengths, expected one row of whole numbers") from None
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(f"{name}: found {found.dtype} {found.shape}, expected one row of whole numbers")
    return found


def array(name: str, value: Any, shape: tuple[int | None, ...], dtype: Any, *, written: bool = False) -> np.ndarray:
    """Returns `value`; ValueError unless it is a C-contiguous array of this dtype and shape (None: any), writeable if asked."""
    kind = np.dtype(dtype)
    sizes = ["any" if size is None else str(size) for size in shape]
    wanted = f"{kind} ({', '.join(sizes)}{',' * (len(sizes) == 1)})"
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        remedy = f"numpy.asarray({name}, dtype=numpy.{kind}) makes one"
        raise ValueError(f"{name}: found {type(value).__name__}, expected an array {wanted}; {remedy}")
    found = f"{name}: found {value.dtype} {value.shape}, expected {wanted}"
    if value.ndim != len(shape):
        raise ValueError(f"{found}: {len(shape)} axes, not {value.ndim}")
    for axis, (size, length) in enumerate(zip(shape, value.shape, strict=True)):
        if size not in (None, length):
            raise ValueError(f"{found}: {size} along axis {axis}, not {length}")
    if value.dtype != kind:
        remedy = f"numpy.empty({value.shape}, numpy.{kind})" if written else f"{name}.astype(numpy.{kind})"
        raise ValueError(f"{found}; {remedy} makes one")
    if not value.flags.c_contiguous:
        remedy = f"numpy.ascontiguousarray({name}) makes one"
        raise ValueError(f"{name}: found strides {value.strides}, expected C order; {remedy}")
    if written and not value.flags.writeable:
        raise ValueError(f"{name}: found a read-only array, but results are written to it; pass a copy")
    return value


def indices(name: str, values: Any, limit: int) -> np.ndarray:
    """Returns ids as a C-contiguous int32 array of the same shape.

    Raises ValueError for other than whole numbers; IndexError, with the first bad position, unless all are in [0, limit). The
    range is checked before the cast, since int32 would wrap ids beyond 2^31.
    """
    values = plain(name, values)
    if values.size and values.dtype.kind not in "iu":
        raise ValueError(f"{name}: found {values.dtype} {values.shape}, expected whole numbers, as int32")
    ids(name, values, limit)
    return np.ascontiguousarray(values, np.int32)


def bags(name: str, values: Any, ids: int, what: str = "ids") -> np.ndarray:
    """Returns the offsets of bags in `ids` ids (`what`), (B + 1,) int64; ValueError unless they rise from 0 to `ids`."""
    values = plain(name, values)
    if values.ndim != 1 or not values.size or values.dtype.kind not in "iu":
        raise ValueError(f"{name}: found {values.dtype} {values.shape}, expected int64 (B + 1,), the offsets of bags")
    for at, wanted, meaning in ((0, 0, "where the first bag begins"), (-1, ids, f"the number of {what}")):
        if values[at] != wanted:
            raise ValueError(f"{name}[{at % values.size}]: found {values[at]}, expected {wanted}, {meaning}")
    falls = values[1:] < values[:-1]
    if falls.any():
        at = int(falls.argmax()) + 1
        raise ValueError(
            f"{name}[{at}]: found {values[at]} after {values[at - 1]}, expected offsets in ascending order"
        )
    return np.ascontiguousarray(values, np.int64)


def plain(name: str, values: Any) -> np.ndarray:
    """Returns `values` as an array; ValueError for ragged rows, and as `unmasked` does."""
    unmasked(name, values)
    try:
        return np.asarray(values)
    except ValueError:  # NumPy's message does not name the argument
        raise ValueError(f"{name}: found rows of different lengths, expected an array of numbers") from None


def unmasked(name: str, values: Any) -> Any:
    """Returns `values`; ValueError for a masked array, whose mask NumPy would drop silently."""
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name}: found a masked array, expected a plain one; {name}.filled(...) makes one")
    return values


def no_table(name: str, values: Any) -> None:
    """Raises ValueError for a data frame or a dict, since iteration would yield its column names."""
    if hasattr(values, "columns") or hasattr(values, "keys"):
        raise ValueError(f"{name}: found {type(values).__name__}, expected a list; {name}[COLUMN].tolist() makes one")


def ids(name: str, values: np.ndarray, limit: int) -> None:
    """Raises IndexError, with the first bad position, unless all ids are in [0, limit)."""
    if values.size and not (values.min() >= 0 and values.max() < limit):
        at = np.unravel_index(int(((values < 0) | (values >= limit)).argmax()), values.shape)
        place = ", ".join(map(str, at))
        raise IndexError(f"{name}[{place}]: found {values[at]}, expected 0 to {limit - 1}")


def sparse(name: str, value: Any, shape: tuple[int | None, int | None] = (None, None)) -> Any:
    """Returns `value`; ValueError unless it is a numeric scipy sparse matrix of this shape with all indices in range.

    shape  None: any length

    SciPy does not check indices when it converts or multiplies: an index out of range reads foreign memory.
    """
    from scipy.sparse import issparse

    wanted = f"expected a scipy sparse matrix ({', '.join('any' if size is None else str(size) for size in shape)})"
    if not issparse(value):
        raise ValueError(f"{name}: found {type(value).__name__}, {wanted}; scipy.sparse.csr_array({name}) makes one")
    if value.ndim != 2 or any(size not in (None, length) for size, length in zip(shape, value.shape, strict=True)):
        raise ValueError(f"{name}: found {value.shape}, {wanted}")
    if value.dtype.kind not in "biuf" or value.shape[1] > ID:
        raise ValueError(f"{name}: found {value.dtype} {value.shape}, {wanted} of real numbers, at most {ID} columns")
    if value.format in ("csr", "csc"):
        _compressed(name, value)
    else:
        _coordinates(name, value)
    return value


def _coordinates(name: str, value: Any) -> None:
    try:
        entries = value.tocoo()  # formats other than CSR and CSC are converted by NumPy, which checks bounds
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(f"{name}: found a {value.format} matrix that cannot be read ({error}); {SOUND}") from None
    for axis, coordinates in enumerate((entries.row, entries.col)):
        if coordinates.shape != entries.data.shape:
            raise ValueError(f"{name}: found {coordinates.size} places of {entries.data.size} numbers; {SOUND}")
        _within(f"{name}.coords[{axis}]", coordinates, value.shape[axis])


def _compressed(name: str, value: Any) -> None:
    lines, width = value.shape if value.format == "csr" else value.shape[::-1]
    for part, found in (("indptr", value.indptr), ("indices", value.indices)):
        if found.ndim != 1 or found.dtype.kind != "i":
            raise ValueError(f"{name}.{part}: found {found.dtype} {found.shape}, expected one row of whole numbers")
    if len(value.indptr) != lines + 1:
        raise ValueError(f"{name}.indptr: found {len(value.indptr)} places, expected {lines + 1} of {value.shape}")
    if value.data.shape != value.indices.shape:
        raise ValueError(f"{name}.data: found {value.data.shape}, expected {value.indices.shape}, as indices have")
    bags(f"{name}.indptr", value.indptr, len(value.indices), "entries")
    _within(f"{name}.indices", value.indices, width)


def _within(name: str, values: np.ndarray, limit: int) -> None:
    try:
        ids(name, values, limit)
    except IndexError as error:  # a malformed matrix, not an id that the caller passed
        raise ValueError(f"{error}; {SOUND}") from None


def csr(
    name: str, value: Any, shape: tuple[int | None, int | None] = (None, None), *, dtype: Any = None, zeros: bool = True
) -> "csr_array":
    """Returns a scipy sparse matrix or a 2-D array as a csr_array in canonical format: sorted, without duplicates.

    dtype  of its values; None: unchanged
    zeros  False: stored zeros are dropped

    The result shares the memory of `value` where possible; `value` is never modified. Duplicates are summed, as SciPy defines
    them. Raises ValueError as `sparse` does, and for values that are not finite in that dtype.
    """
    from scipy.sparse import csr_array, issparse

    if not issparse(value):
        value = plain(name, value)
        if value.ndim != 2 or value.dtype.kind not in "biuf":
            found = f"{value.dtype} {value.shape}"
            raise ValueError(f"{name}: found {found}, expected numbers of two axes, or a scipy sparse matrix")
        value = csr_array(value)
    rows = csr_array(sparse(name, value, shape))
    if not rows.has_canonical_format or not (zeros or rows.data.all()):
        rows = rows.copy()
        rows.sum_duplicates()
        if not zeros:
            rows.eliminate_zeros()
    with np.errstate(over="ignore"):  # overflow gives infinity, which is rejected below
        rows = csr_array(rows, dtype=dtype)
    if len(rows.indices) <= ID:  # kernels are compiled for int32
        rows.indices, rows.indptr = (part.astype(np.int32, copy=False) for part in (rows.indices, rows.indptr))
    good = np.isfinite(rows.data)
    if not good.all():
        at = int(good.argmin())
        row = int(np.searchsorted(rows.indptr, at, "right")) - 1
        raise ValueError(f"{name}[{row}, {rows.indices[at]}]: found {rows.data[at]}, expected a finite number")
    return rows


def finite(name: str, values: np.ndarray) -> None:
    """Raises ValueError, with the first bad row, for NaN or infinity in `values`; one pass, no allocation."""
    with np.errstate(all="ignore"):  # a plain sum: faster than `sum`, which adds pairwise
        known = math.isfinite(np.einsum(values, [*range(values.ndim)], []))
    if not known and not (math.isfinite(values.min()) and math.isfinite(values.max())):  # the sum may overflow
        good = np.isfinite(values)
        row = int(good.reshape(len(values), -1).all(axis=1).argmin())
        raise ValueError(f"{name}[{row}]: found NaN or infinity, expected finite numbers")


def loss(values: np.ndarray) -> float:
    """Returns the mean loss; FloatingPointError, with the first bad row, if one is not finite."""
    mean = float(values.mean(dtype=np.float64)) if values.size else 0.0
    if not math.isfinite(mean):
        row = int(np.isfinite(values).argmin())
        raise FloatingPointError(f"loss[{row}]: found {values[row]}")
    return mean


def excluded(exclude: Any, rows: int, classes: int) -> "Excluded":
    """Returns the stored entries of a scipy sparse matrix (rows, classes), for the searches of cpu/; ValueError as `sparse`."""
    from scipy.sparse import csr_array

    from cpu.output.topk import Excluded

    stored = csr_array(sparse("exclude", exclude, (rows, classes)))
    ones = np.ones(len(stored.indices), bool)
    entries = csr("exclude", csr_array((ones, stored.indices, stored.indptr), stored.shape))
    at = entries.indptr.astype(np.int64)
    return Excluded(at[:-1], at[1:], entries.indices.astype(np.int32, copy=False))
