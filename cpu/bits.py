"""Conversions between 16 bits and float32 in LLVM's words, of a number or of each lane of a vector; see cpu/halves.py."""

from typing import Any

from llvmlite import ir
from numba.core import types

I16, I32, F32 = ir.IntType(16), ir.IntType(32), ir.FloatType()


def half(dtype: Any) -> bool:
    """Whether a Numba dtype is one of bits: uint16 of bfloat16, int16 of float16."""
    return dtype in (types.uint16, types.int16)


def widened(builder: Any, bits: Any, dtype: Any) -> Any:
    """The float32 of 16 bits."""
    if dtype == types.int16:
        return builder.fpext(builder.bitcast(bits, _like(bits, ir.HalfType())), _like(bits, F32))
    upper = builder.shl(builder.zext(bits, _like(bits, I32)), _of(bits, I32, 16))
    return builder.bitcast(upper, _like(bits, F32))


def narrowed(builder: Any, value: Any, dtype: Any, drawn: Any) -> Any:
    """The 16 bits of a float32, rounded up where its rest is more than `drawn`, an int32 below 2^16, says."""
    bits = builder.bitcast(value, _like(value, I32))
    if dtype == types.uint16:
        return builder.trunc(builder.lshr(builder.add(bits, drawn), _of(value, I32, 16)), _like(value, I16))
    size = builder.and_(bits, _of(value, I32, 0x7FFFFFFF))
    # The rest of a normal number are 13 bits: added to at random, then cut off, so that the conversion is exact.
    more = builder.add(size, builder.lshr(drawn, _of(value, I32, 3)))
    normal = builder.bitcast(builder.and_(more, _of(value, I32, 0x7FFFE000)), _like(value, F32))
    small = builder.icmp_unsigned("<", size, _of(value, I32, 0x38800000))  # below 2^-14 numbers are 2^-24 apart
    rounded = builder.select(small, _in_steps(builder, builder.bitcast(size, _like(value, F32)), drawn), normal)
    found = builder.bitcast(builder.fptrunc(rounded, _like(value, ir.HalfType())), _like(value, I16))
    sign = builder.lshr(builder.and_(bits, _of(value, I32, 0x80000000)), _of(value, I32, 16))
    return builder.or_(found, builder.trunc(sign, _like(value, I16)))


def _in_steps(builder: Any, size: Any, drawn: Any) -> Any:
    """A number of at least 0 as a whole number of steps of 2^-24."""
    share = builder.fmul(builder.uitofp(drawn, size.type), _of(size, F32, 2.0**-16))
    steps = builder.fadd(builder.fmul(size, _of(size, F32, 2.0**24)), share)
    whole = builder.uitofp(builder.fptoui(steps, _like(size, I32)), size.type)
    return builder.fmul(whole, _of(size, F32, 2.0**-24))


def drawn(builder: Any, lanes: int, dice: Any, row: Any, column: Any) -> Any:
    """Int32s below 2^16, a hash for each lane, of the dice of a visit, the row and the column."""
    i64, kind = ir.IntType(64), ir.VectorType(I32, lanes)
    key = builder.mul(builder.xor(dice, row), i64(0xD1342543DE82EF95))
    key = builder.add(builder.lshr(key, i64(32)), column)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), builder.trunc(key, I32), I32(0))
    all_lanes = builder.shuffle_vector(first, first, ir.Constant(kind, [0] * lanes))
    hashed = builder.add(all_lanes, ir.Constant(kind, list(range(lanes))))
    for shift, factor in ((16, 0x9E3779B1), (15, 0x85EBCA77)):
        hashed = builder.mul(
            builder.xor(hashed, builder.lshr(hashed, _of(hashed, I32, shift))), _of(hashed, I32, factor)
        )
    return builder.lshr(hashed, _of(hashed, I32, 16))


def _like(value: Any, element: Any) -> Any:
    """This type, or a vector of it of as many lanes as a value has."""
    return ir.VectorType(element, value.type.count) if isinstance(value.type, ir.VectorType) else element


def _of(value: Any, element: Any, number: float) -> Any:
    """A constant, in as many lanes as a value has."""
    kind = _like(value, element)
    return ir.Constant(kind, [number] * kind.count if isinstance(kind, ir.VectorType) else number)
