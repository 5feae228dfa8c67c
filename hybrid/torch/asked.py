"""What a loss is asked: tensors of the user's, checked where they come in, and the rows that have a class."""

import math
from typing import Any, NamedTuple

import torch

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
WHOLE = (torch.int64, torch.int32)


class Asked(NamedTuple):
    """The rows of a batch that have a class.

    kept    (M,) int64, their numbers; None: all N rows
    target  (M,) int32
    total   for a mean: the sum of the weights of those rows, a float32 number; None for another reduction, and for 0
    learns  whether backward moves the readout
    """

    kept: Any
    target: Any
    total: Any
    learns: bool

    def of(self, rows: Any) -> Any:
        """The rows (N, ...) that have a class: (M, ...), without a copy where all have."""
        return rows if self.kept is None else rows[self.kept]

    def among(self, values: Any, rows: int) -> Any:
        """The reverse: (N, ...) with values (M, ...) in their places and 0 elsewhere."""
        if self.kept is None:
            return values
        every = values.new_zeros((rows, *values.shape[1:]))
        every[self.kept] = values
        return every


def hidden(value: Any, width: int) -> Any:
    """`value` itself; ValueError unless it is a floating tensor (..., width)."""
    wanted = f"expected a floating tensor (..., {width})"
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"hidden: found {type(value).__name__}, {wanted}; torch.as_tensor(hidden) makes one")
    if value.dtype not in FLOATS:
        raise ValueError(f"hidden: found {_told(value)}, {wanted}; hidden.float() makes one")
    if value.ndim < 1 or value.shape[-1] != width:
        raise ValueError(f"hidden: found {_told(value)}, {wanted}: {width} numbers a vector")
    return value


def finite(rows: Any, kept: Any = None) -> None:
    """FloatingPointError, naming the first bad row, for a NaN or an infinity in rows (M, D): the net has diverged.

    kept  (M,): the numbers by which the user knows these rows; None: 0 to M - 1
    """
    if rows.numel() and not all(math.isfinite(end) for end in torch.aminmax(rows)):
        row = int(torch.isfinite(rows).all(dim=1).int().argmin())
        row = row if kept is None else int(kept[row])
        raise FloatingPointError(
            f"hidden[{row}]: found NaN or infinity, expected finite numbers; a lower rate may help"
        )


def target(value: Any, shape: Any, classes: int, ignored: int) -> Any:
    """The classes in one row, (N,), of the dtype that they came in; `ignored` may be among them.

    Raises ValueError for another shape or dtype, and IndexError, naming the first bad place, for an id out of range.
    """
    wanted = f"expected int64 or int32 {tuple(shape)}, one class a hidden vector"
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"target: found {type(value).__name__}, {wanted}; torch.as_tensor(target) makes one")
    if value.dtype not in WHOLE or value.shape != shape:
        remedy = "; target.long() makes one" if value.shape == shape else ""
        raise ValueError(f"target: found {_told(value)}, {wanted}{remedy}")
    bad = ((value < 0) | (value >= classes)) & (value != ignored)
    if bad.any():
        place = bad.nonzero()[0].tolist()
        found = value[tuple(place)].item()
        at = f"[{', '.join(map(str, place))}]" if place else ""
        raise IndexError(f"target{at}: found {found}, expected 0 to {classes - 1}, or {ignored} where there is none")
    return value.reshape(-1)


def weight(value: Any, shape: Any, device: Any) -> Any:
    """The weights of the examples in one row, (N,) float32 on the device; None for None.

    Raises ValueError for another shape or dtype, and for numbers that are negative or not finite.
    """
    if value is None:
        return None
    wanted = f"expected a floating tensor {tuple(shape)}, one number an example"
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"weight: found {type(value).__name__}, {wanted}; torch.as_tensor(weight) makes one")
    if value.dtype not in FLOATS or value.shape != shape:
        remedy = "; weight.float() makes one" if value.shape == shape else ""
        raise ValueError(f"weight: found {_told(value)}, {wanted}{remedy}")
    row = value.reshape(-1).to(device=device, dtype=torch.float32)
    bad = ~((row >= 0) & (row < math.inf))
    if bad.any():
        at = int(bad.int().argmax())
        raise ValueError(f"weight[{at}]: found {row[at].item()}, expected a finite number of at least 0")
    return row


def _told(value: Any) -> str:
    return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
