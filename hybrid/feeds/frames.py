"""Columns of data frames: pandas, polars, Arrow tables, dicts of columns. None of these libraries is imported for it."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from . import tables


def names(frame: Any) -> list[str]:
    """The names of the columns of a frame; ValueError for what is none."""
    if isinstance(frame, dict):
        return [str(name) for name in frame]
    for attribute in ("column_names", "columns"):  # of Arrow; of pandas and polars
        found = getattr(frame, attribute, None)
        if found is not None and not callable(found) and hasattr(found, "__iter__"):
            found = list(found)
            if all(isinstance(name, str) for name in found):
                return found
    raise ValueError(
        f"frame: found {type(frame).__name__}, expected a frame of pandas or polars, an Arrow table, or a dict of columns, with"
        " names of columns"
    )


def standard(frame: Any) -> Any:
    """A frame whose columns can be had by name: itself, or an Arrow table of what offers Arrow's streams alone.

    Raises ValueError for one that is not computed yet.
    """
    if hasattr(frame, "collect"):  # of polars
        raise ValueError(
            f"frame: found {type(frame).__name__}, whose columns are not there yet; frame.collect() has them"
        )
    if hasattr(frame, "__getitem__") or not hasattr(frame, "__arrow_c_stream__"):
        return frame
    try:
        import pyarrow
    except ImportError:
        raise ValueError(
            f"frame: found {type(frame).__name__}, which is read with pyarrow; pip install pyarrow"
        ) from None
    return pyarrow.table(frame)


def column(frame: Any, name: str) -> np.ndarray:
    """A column of a frame as an array."""
    return np.asarray(frame[name])


def chosen(frame: Any, said: Sequence[str | None]) -> list[str | None]:
    """The names of the columns of user, item, time and weight: those said; others by their usual names, weight never.

    Raises ValueError for a name that the frame lacks, and where user or item cannot be told.
    """
    there = names(frame)
    for name in said:
        if name is not None and name not in there:
            raise ValueError(f"frame: no column {name!r}; found {', '.join(map(repr, there))}")
    usual = tables.usual(there)
    found = [name if name is not None else other for name, other in zip(said, (*usual, None), strict=True)]
    for kind, name in zip(("user", "item"), found, strict=False):
        if name is None:
            raise ValueError(
                f"frame: no {kind} column; found {', '.join(map(repr, there))}; say which it is: {kind}='NAME'"
            )
    return found


def moments(values: np.ndarray) -> np.ndarray:
    """Times as numbers or datetime64: what a column holds as objects (dates of Python or pandas, texts in ISO 8601) becomes
    microseconds since 1970, those without a zone taken as UTC. Others are left to be refused where they are used.
    """
    if values.dtype.kind not in "OUT":
        return values
    found = [_moment(value) for value in values.tolist()]
    return values if any(moment is None for moment in found) else np.array(found, np.int64)


def _moment(value: Any) -> int | None:
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if not isinstance(value, datetime) or value != value:  # pandas' NaT is not itself
            return None
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return int((moment - tables.EPOCH) // timedelta(microseconds=1))
    except ValueError:
        return None
