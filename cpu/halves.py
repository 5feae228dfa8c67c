"""Rows kept in 16 bits, bfloat16 or float16: in registers they are float32. `load_row` of cpu/simd.py reads them, too.

A table of bits is uint16 for bfloat16, the upper half of a float32, and int16 for float16, so a kernel knows what it has from
the dtype, and what float32 does not need is left out when the kernel is compiled.

Rounding to the nearest would lose every move that is smaller than half a step between two numbers, which at 8 bits is most of
them. So what is stored is rounded up or down at random, in proportion to how near each is: the mean over many moves is right.
The random bits are a hash of the step, the visit, the row and the column: the same bytes at any number of threads.

Gupta et al. 2015, "Deep Learning with Limited Numerical Precision", arXiv:1502.02551.
"""

from typing import Any

import numpy as np
from numba import extending
from numba.core import cgutils, types

from cpu import bits
from cpu.array import Array
from cpu.compiled import called, inlined
from cpu.simd import LANES, intrinsic, store_at
from cpu.splitmix import GOLDEN, mix

BITS = {"float32": np.float32, "bfloat16": np.uint16, "float16": np.int16}  # dtypes of tables


def narrow(out: Array, values: Array) -> None:
    """Write float32 values into a table of any of BITS, rounded to the nearest; large ones become infinite."""
    if out.dtype == np.uint16:
        whole = np.asarray(values, np.float32).view(np.uint32)
        out[...] = (whole + np.uint32(0x7FFF) + (whole >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    elif out.dtype == np.int16:
        with np.errstate(over="ignore"):
            out[...] = values.astype(np.float16).view(np.int16)
    else:
        out[...] = values


def wide(table: Array) -> Array:
    """The numbers of a table as float32: the table itself if it is one, or a copy."""
    if table.dtype == np.uint16:
        return (table.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return table.view(np.float16).astype(np.float32) if table.dtype == np.int16 else table


def dice(rule: Any) -> Any:
    """What the rounding of a step is drawn from, as kernels take it: a uint64, or None."""
    return None if rule.dice is None else np.uint64(rule.dice)


@inlined()
def thrown(dice, visit):
    """The dice of one visit."""
    if dice is None:
        return None
    return mix(dice + GOLDEN * np.uint64(visit))


def number(table, row, column):
    """table[row, column] as a float."""
    raise NotImplementedError("in kernels only")


@extending.overload(number, inline="always")
def _number(table, row, column):
    if bits.half(table.dtype):
        return lambda table, row, column: _wide_number(table, row, column)
    return lambda table, row, column: table[row, column]


def part(table, first, last):
    """table[first:last] as floats: a view, or a copy of a table of 16 bits."""
    raise NotImplementedError("in kernels only")


@extending.overload(part, inline="always")
def _part(table, first, last):
    if bits.half(table.dtype):
        return lambda table, first, last: _wide_part(table, first, last)
    return lambda table, first, last: table[first:last]


@called()
def _wide_part(table, first, last):
    out = np.empty((last - first, table.shape[1]), np.float32)
    for row in range(first, last):
        for column in range(table.shape[1]):
            out[row - first, column] = number(table, row, column)
    return out


@intrinsic
def _wide_number(typing: Any, table: Any, row: Any, column: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, signature.args[0], array, list(arguments[1:]))
        return bits.widened(builder, builder.load(place), signature.args[0].dtype)

    return types.float32(table, types.intp, types.intp), generate


@intrinsic
def store_half_row(typing: Any, table: Any, row: Any, column: Any, vector: Any, count: Any, dice: Any) -> Any:
    """As `store_row` of cpu/simd.py, to a table of 16 bits: rounded at random by the dice of a visit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, row, column, value, count, dice = arguments
        drawn = bits.drawn(builder, LANES, dice, row, column)
        found = bits.narrowed(builder, value, signature.args[0].dtype, drawn)
        store_at(context, builder, signature.args[0], (table, row, column), found, count)
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp, vector, types.intp, types.uint64), generate
