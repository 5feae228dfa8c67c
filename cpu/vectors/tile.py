"""Tiles: the vectors that a small product keeps in registers from its first term to its last. For cpu/vectors/small_gemm.py.

A tile is a tuple of vectors, row after row. A step of R rows and C columns loads R factors and C vectors, and multiplies and
adds R C times. So a core with two loads and two multiplications per cycle is compute-bound. There are two kinds of factors:

    numbers  one number in all lanes: the columns are vectors along rows of numbers
    fours    four neighbours, repeated: the columns hold four neighbours of one example, of the next example, ...

Rows past the last of a matrix repeat the last row: they are computed, and stored with the same values.
"""

from collections.abc import Sequence
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba.core import cgutils, types

from cpu.vectors.simd import (
    Typed,
    Vector,
    add_picks,
    call_llvm,
    intrinsic,
    load_masked,
    mask_of,
    of_width,
    pick,
    pointer_to,
    store_masked,
)

BITS = 512 if llvmlite.binding.get_host_cpu_features().get("avx512f") else 256  # bits per vector: a tile has 16 vectors
FOUR, INDEX = 4, types.int64
WORD = ir.IntType(64)


@of_width
def empty_tile(typing: Any, array: Any, vectors: Any) -> Typed:
    """Returns a tile of `vectors` zero vectors, of the dtype of this array."""
    kind = _tuple(array, vectors.literal_value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_tuple(builder, kind, [ir.Constant(context.get_value_type(kind.dtype), None)] * kind.count)

    return kind(array, vectors), generate


@intrinsic
def add_products(typing: Any, tile: Any, factors: Any, columns: Any) -> Typed:
    """tile[r, c] + factors[r] columns[c], in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, factors, columns = (cgutils.unpack_tuple(builder, value) for value in arguments)
        pairs = [(factor, column) for factor in factors for column in columns]
        values = [_multiply_add(builder, *pair, old) for pair, old in zip(pairs, tile, strict=True)]
        return context.make_tuple(builder, signature.return_type, values)

    return tile(tile, factors, columns), generate


@intrinsic
def scale_and_add(typing: Any, tile: Any, factor: Any, other: Any) -> Typed:
    """factor tile + other, for one vector of factors."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, factor, other = arguments
        pairs = zip(cgutils.unpack_tuple(builder, tile), cgutils.unpack_tuple(builder, other), strict=True)
        values = [_multiply_add(builder, vector, factor, added) for vector, added in pairs]
        return context.make_tuple(builder, signature.return_type, values)

    return tile(tile, factor, other), generate


# Loads and stores


@intrinsic
def numbers(typing: Any, array: Any, index: Any, step: Any, left: Any) -> Typed:
    """Returns four factors: array[index + k step] in all lanes; those from k = left on repeat the last one."""
    kind = _tuple(array, FOUR)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, step, left = arguments
        vector, values = context.get_value_type(kind.dtype), []
        for k in range(FOUR):
            place = _row(builder, index, step, k, left)
            number = builder.load(pointer_to(context, builder, signature.args[0], array, place, vector.element))
            first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
            values.append(pick(builder, first, first, [0] * vector.count))
        return context.make_tuple(builder, kind, values)

    return kind(array, INDEX, INDEX, INDEX), generate


@intrinsic
def fours(typing: Any, array: Any, index: Any, step: Any, left: Any, count: Any, tile: Any) -> Typed:
    """Returns factors of a two-column tile: array[index + k step :][:4], repeated; from k = left on the last one.

    Of the four, those from `count` on are 0 and not read.
    """
    kind = types.containers.UniTuple(tile.dtype, tile.count // 2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, step, left, count, _ = arguments
        vector = context.get_value_type(kind.dtype)
        four, values = ir.VectorType(vector.element, FOUR), []
        for k in range(kind.count):
            place = _row(builder, index, step, k, left)
            pointer = pointer_to(context, builder, signature.args[0], array, place, four)
            neighbours = load_masked(builder, pointer, mask_of(builder, four, count))
            values.append(pick(builder, neighbours, neighbours, [lane % FOUR for lane in range(vector.count)]))
        return context.make_tuple(builder, kind, values)

    return kind(array, INDEX, INDEX, INDEX, INDEX, tile), generate


@intrinsic
def four(typing: Any, array: Any, index: Any, count: Any) -> Typed:
    """Returns array[index : index + 4]; those from `count` on are 0 and not read."""
    kind = Vector(array.dtype, FOUR)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, count = arguments
        vector = context.get_value_type(kind)
        pointer = pointer_to(context, builder, signature.args[0], array, index, vector)
        return load_masked(builder, pointer, mask_of(builder, vector, count))

    return kind(array, INDEX, INDEX), generate


@of_width
def columns(typing: Any, array: Any, index: Any, count: Any, vectors: Any) -> Typed:
    """Returns consecutive vectors of array[index:]; lanes from `count` on are 0 and not read.

    Their number is `vectors`, or that of a row if this is a tile of four rows.
    """
    kind = _tuple(
        array, vectors.count // FOUR if isinstance(vectors, types.containers.UniTuple) else vectors.literal_value
    )

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, count, _ = arguments
        given = (array, index, WORD(0), WORD(1), count)
        places = _places(context, builder, array_type=signature.args[0], arguments=given, kind=kind, rows=1)
        return context.make_tuple(builder, kind, [load_masked(builder, *place) for place in places])

    return kind(array, INDEX, INDEX, vectors), generate


@intrinsic
def load_tile(typing: Any, array: Any, index: Any, step: Any, left: Any, count: Any, tile: Any) -> Typed:
    """Loads a tile of four rows like `tile`: row r is array[index + r step :], its lanes from `count` on are 0 and not read.

    Rows from `left` on repeat the last row.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        places = _places(context, builder, signature.args[0], arguments[:5], tile, FOUR)
        return context.make_tuple(builder, tile, [load_masked(builder, *place) for place in places])

    return tile(array, INDEX, INDEX, INDEX, INDEX, tile), generate


@intrinsic
def store_tile(typing: Any, array: Any, index: Any, step: Any, left: Any, count: Any, tile: Any) -> Typed:
    """Stores a tile like `load_tile`: lanes from `count` on are not written."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        places = _places(context, builder, signature.args[0], arguments[:5], tile, FOUR)
        for vector, place in zip(cgutils.unpack_tuple(builder, arguments[5]), places, strict=True):
            store_masked(builder, vector, *place)
        return context.get_dummy_value()

    return types.void(array, INDEX, INDEX, INDEX, INDEX, tile), generate


@intrinsic
def store_sums(
    typing: Any, out: Any, index: Any, pitch: Any, examples: Any, left: Any, bias: Any, bias_at: Any, tile: Any
) -> Typed:
    """Stores a tile of `fours`: out[index + e pitch + r] = bias[bias_at + r] + example e's sum of four lanes in row r.

    The tile has two columns of as many examples as a vector has fours; `left` of its rows and `examples` of those exist.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, index, pitch, examples, left, bias, bias_at, tile = arguments
        tile = cgutils.unpack_tuple(builder, tile)
        some, kind = tile[0].type.count // FOUR, ir.VectorType(tile[0].type.element, FOUR)
        for r in range(0, len(tile) // 2, FOUR):
            mask = mask_of(builder, kind, _rest(builder, left, r))
            place = pointer_to(context, builder, signature.args[5], bias, builder.add(bias_at, WORD(r)), kind)
            start = load_masked(builder, place, mask)
            for c in range(2):
                sums = _sums_of_fours(builder, tile[2 * r + c : 2 * (r + FOUR) : 2])
                for e in range(some):
                    example = WORD(c * some + e)
                    there = builder.icmp_signed("<", example, examples)
                    to = builder.add(builder.add(index, builder.mul(example, pitch)), WORD(r))
                    value = builder.fadd(start, pick(builder, sums, sums, range(FOUR * e, FOUR * (e + 1))))
                    pointer = pointer_to(context, builder, signature.args[0], out, to, kind)
                    store_masked(builder, value, pointer, builder.select(there, mask, ir.Constant(mask.type, None)))
        return context.get_dummy_value()

    return types.void(out, INDEX, INDEX, INDEX, INDEX, bias, INDEX, tile), generate


# LLVM


def _tuple(array: Any, vectors: int) -> Any:
    """Returns the type of a tuple of vectors for this array's numbers."""
    return types.containers.UniTuple(Vector(array.dtype, BITS // array.dtype.bitwidth), vectors)


def _row(builder: Any, index: Any, step: Any, k: int, left: Any) -> Any:
    """index + min(k, left - 1) step."""
    last = builder.sub(left, WORD(1))
    own = builder.select(builder.icmp_signed("<", WORD(k), last), WORD(k), last)
    return builder.add(index, builder.mul(step, own)) if k else index


def _rest(builder: Any, count: Any, skipped: int) -> Any:
    """max(count - skipped, 0)."""
    rest = builder.sub(count, WORD(skipped))
    return builder.select(builder.icmp_signed("<", rest, WORD(0)), WORD(0), rest)


def _places(
    context: Any, builder: Any, array_type: Any, arguments: Sequence[Any], kind: Any, rows: int
) -> list[tuple[Any, Any]]:
    """Returns, for every vector of a tile of `rows` rows, a pointer to its address and the mask of its lanes."""
    array, index, step, left, count = arguments
    vector, wide, places = context.get_value_type(kind.dtype), kind.count // rows, []
    for k in range(kind.count):
        skipped = k % wide * vector.count
        begin = builder.add(_row(builder, index, step, k // wide, left), WORD(skipped))
        pointer = pointer_to(context, builder, array_type, array, begin, vector)
        places.append((pointer, mask_of(builder, vector, _rest(builder, count, skipped))))
    return places


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return call_llvm(builder, "llvm.fmuladd.{}", c.type, c.type, [a, b, c])


def _sums_of_fours(builder: Any, vectors: Sequence[Any]) -> Any:
    """Reduces four vectors: lane 4 e + k is the sum of the lanes 4 e to 4 e + 3 of vector k."""
    a, b, c, d = vectors
    lanes = a.type.count
    even = [at + lane for at in range(0, lanes, FOUR) for lane in (0, 2, lanes, lanes + 2)]
    odd = [lane + 1 for lane in even]
    return add_picks(builder, add_picks(builder, a, b, even, odd), add_picks(builder, c, d, even, odd), even, odd)
