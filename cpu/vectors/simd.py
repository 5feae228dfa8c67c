"""Vectors of floats as a Numba type, for inner loops over rows that are too short for LLVM's own vectoriser.

In an automatically vectorised loop a row of 49 weights takes as many scalar steps as vector steps. Here the last vector of a
row is loaded and stored under a mask: lanes past the end of the row read as 0 and are not written. A vector is several
registers of the widest kind, so that independent sums hide each other's latency. LLVM splits it for the processor.

There are two ways to address memory:

    load, store          along a 1-D array; a loop chooses the size of its vectors by `bits`, a constant
    load_row, store_row  along a row of a table (R, D); vectors of LANES numbers
"""

from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.core.datamodel import models

LINE = 512  # bits of a cache line
LANES = 32  # numbers per vector along a row of a table

Typed = tuple[Any, Callable[..., Any]]  # returned by an intrinsic: its signature and code generator

# Callers omit the typing context. of_width: `bits` is a literal type.
intrinsic: Callable[[Callable[..., Typed]], Any] = extending.intrinsic
of_width: Callable[[Callable[..., Typed]], Any] = extending.intrinsic(prefer_literal=True)


class Vector(types.Type):
    """A vector of float32, float64 or int32."""

    def __init__(self, element: Any, lanes: int):
        self.element, self.lanes = element, lanes
        super().__init__(name=f"vector({lanes} x {element})")


@extending.register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector):
        super().__init__(manager, kind, ir.VectorType(manager.lookup(kind.element).get_value_type(), kind.lanes))


def _of_bits(element: Any, bits: Any) -> Vector:
    """Returns the vector of this many bits; `bits` is a literal type."""
    return Vector(element, bits.literal_value // element.bitwidth)


# Along arrays of one dimension


@of_width
def lanes(typing: Any, array: Any, bits: Any) -> Typed:
    """Returns the number of this array's numbers per vector; a compile-time constant."""
    count = _of_bits(array.dtype, bits).lanes
    return types.int64(array, bits), lambda context, builder, signature, arguments: ir.IntType(64)(count)


@of_width
def zeros(typing: Any, array: Any, bits: Any) -> Typed:
    """Returns a vector of zeros, of the dtype of this array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(context.get_value_type(signature.return_type), None)

    return _of_bits(array.dtype, bits)(array, bits), generate


@of_width
def broadcast(typing: Any, value: Any, bits: Any) -> Typed:
    """Returns a vector with `value` in every lane."""
    return _of_bits(value, bits)(value, bits), _spread


@of_width
def load(typing: Any, array: Any, index: Any, count: Any, bits: Any) -> Typed:
    """Returns array[index : index + lanes] of a contiguous 1-D array; lanes from `count` on are 0 and not read."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        place = pointer_to(context, builder, signature.args[0], arguments[0], arguments[1], kind)
        return load_masked(builder, place, mask_of(builder, kind, arguments[2]))

    return _of_bits(array.dtype, bits)(array, types.int64, types.int64, bits), generate


@intrinsic
def store(typing: Any, array: Any, index: Any, count: Any, vector: Any) -> Typed:
    """array[index : index + lanes] = vector, except for the lanes from `count` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, count, value = arguments
        place = pointer_to(context, builder, signature.args[0], array, index, value.type)
        store_masked(builder, value, place, mask_of(builder, value.type, count))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, vector), generate


@intrinsic
def add_sums(typing: Any, array: Any, index: Any, count: Any, a: Any, b: Any, c: Any, d: Any) -> Typed:
    """array[index + k] += the sum of the lanes of vector k, for the first `count` of the four vectors; as in `totals`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, count, *vectors = arguments
        value = _totals(builder, vectors)
        place = pointer_to(context, builder, signature.args[0], array, index, value.type)
        mask = mask_of(builder, value.type, count)
        store_masked(builder, builder.fadd(load_masked(builder, place, mask), value), place, mask)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, a, b, c, d), generate


@of_width
def prefetch(typing: Any, array: Any, index: Any, bits: Any) -> Typed:
    """Prefetches the cache lines of a vector into the second-level cache, which keeps the first for current data.

    The index may lie outside of the array.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, _ = arguments
        place = pointer_to(context, builder, signature.args[0], array, index, ir.IntType(8))
        read, second_cache, data = (ir.IntType(32)(value) for value in (0, 2, 1))
        for byte in range(0, bits.literal_value // 8, LINE // 8):
            inputs = [builder.gep(place, [ir.IntType(64)(byte)]), read, second_cache, data]
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in inputs])
            builder.call(builder.module.declare_intrinsic("llvm.prefetch", (place.type,), kind), inputs)
        return context.get_dummy_value()

    return types.void(array, types.int64, bits), generate


# Along rows of tables


@intrinsic
def splat(typing: Any, number: Any) -> Typed:
    """Returns a vector of LANES copies of this number."""
    return Vector(number, LANES)(number), _spread


@intrinsic
def load_row(typing: Any, table: Any, row: Any, column: Any, count: Any) -> Typed:
    """Returns table[row, column : column + LANES], C-contiguous; lanes from `count` on are 0 and not read."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        place = _place_in_row(context, builder, signature.args[0], arguments[:3], kind)
        return load_masked(builder, place, mask_of(builder, kind, arguments[3]))

    vector = Vector(table.dtype, LANES)
    return vector(table, types.intp, types.intp, types.intp), generate


@intrinsic
def store_row(typing: Any, table: Any, row: Any, column: Any, vector: Any, count: Any) -> Typed:
    """table[row, column : column + LANES] = vector, except for the lanes from `count` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, count = arguments[3:]
        place = _place_in_row(context, builder, signature.args[0], arguments[:3], value.type)
        store_masked(builder, value, place, mask_of(builder, value.type, count))
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp, vector, types.intp), generate


# Of vectors


@intrinsic
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Typed:
    """a b + c in every lane, rounded once if the processor has an FMA."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        return call_llvm(builder, "llvm.fmuladd.{}", kind, kind, arguments)

    return a(a, b, c), generate


def _lane_by_lane(name: str, meaning: str) -> Callable[..., Typed]:
    """Returns an intrinsic: an LLVM instruction on two vectors."""

    def both(typing: Any, a: Any, b: Any) -> Typed:
        return a(a, b), lambda context, builder, signature, arguments: getattr(builder, name)(*arguments)

    both.__doc__ = meaning
    return intrinsic(both)


add = _lane_by_lane("fadd", "a + b in every lane.")
multiply = _lane_by_lane("fmul", "a b in every lane.")
divide = _lane_by_lane("fdiv", "a / b in every lane, as exact as a single division.")


@intrinsic
def square_root(typing: Any, a: Any) -> Typed:
    """Returns the square root of every lane, as exact as a scalar one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        return call_llvm(builder, "llvm.sqrt.{}", kind, kind, arguments)

    return a(a), generate


@intrinsic
def total(typing: Any, a: Any) -> Typed:
    """Returns the sum of a vector's lanes: its upper half is added to its lower until one lane is left."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = _fold(builder, arguments[0], 1)
        return builder.extract_element(value, ir.IntType(32)(0))

    return a.element(a), generate


@intrinsic
def totals(typing: Any, a: Any, b: Any, c: Any, d: Any) -> Typed:
    """Returns the lane sums of four vectors, as a vector of four numbers.

    In every vector the upper half is added to the lower until one lane is left: the same order on every machine.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _totals(builder, arguments)

    return Vector(a.element, 4)(a, b, c, d), generate


@intrinsic
def store_totals(typing: Any, array: Any, index: Any, a: Any, b: Any, c: Any, d: Any) -> Typed:
    """array[index : index + 16] = four vectors of four numbers, by one store.

    Store forwarding to a vector load works from a single store, but not from several.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, a, b, c, d = arguments
        whole = _join(builder, _join(builder, a, b), _join(builder, c, d))
        store = builder.store(whole, pointer_to(context, builder, signature.args[0], array, index, whole.type))
        store.align = signature.args[0].dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.uintp, a, b, c, d), generate


# Products of int8 with int16, summed in int32, by a processor instruction that LLVM exposes only by name.

MULTIPLY = {"avx512bw": (32, "llvm.x86.avx512.pmaddw.d.512"), "avx2": (16, "llvm.x86.avx2.pmadd.wd")}
BYTES, INSTRUCTION = next(
    (how for name, how in MULTIPLY.items() if llvmlite.binding.get_host_cpu_features().get(name)), (32, "")
)


@intrinsic
def no_products(typing: Any) -> Typed:
    """Returns a vector of zeros, to add products to."""
    kind = Vector(types.int32, BYTES // 2)
    return kind(), lambda context, builder, signature, arguments: ir.Constant(context.get_value_type(kind), None)


@intrinsic
def add_byte_products(typing: Any, codes: Any, at: Any, numbers: Any, begin: Any, sums: Any) -> Typed:
    """Returns sums + products of BYTES int8 from codes[at] on with as many int16 from numbers[begin] on, added in pairs."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        factors, wide, total = [], ir.VectorType(ir.IntType(16), BYTES), arguments[4]
        for array, bits in ((0, 8), (2, 16)):
            kind = ir.VectorType(ir.IntType(bits), BYTES)
            place = pointer_to(context, builder, signature.args[array], arguments[array], arguments[array + 1], kind)
            value = builder.load(place)
            value.align = bits // 8
            factors.append(builder.sext(value, wide) if bits < 16 else value)
        if INSTRUCTION:
            multiply = ir.FunctionType(total.type, [wide, wide])
            function = cgutils.get_or_insert_function(builder.module, multiply, INSTRUCTION)
            return builder.add(total, builder.call(function, factors))
        product = builder.mul(*(builder.sext(factor, ir.VectorType(ir.IntType(32), BYTES)) for factor in factors))
        for half in (range(BYTES // 2), range(BYTES // 2, BYTES)):
            total = builder.add(total, pick(builder, product, product, half))
        return total

    return sums(codes, types.int64, numbers, types.int64, sums), generate


@intrinsic
def sum_products(typing: Any, sums: Any) -> Typed:
    """Returns the sum of the lanes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        function = ir.FunctionType(kind.element, [kind])
        name = f"llvm.vector.reduce.add.v{kind.count}i32"
        return builder.call(cgutils.get_or_insert_function(builder.module, function, name), arguments)

    return types.int32(sums), generate


# LLVM


def pointer_to(context: Any, builder: Any, array_type: Any, array: Any, index: Any, kind: Any) -> Any:
    """Returns a pointer to array[index], as to a value of this kind."""
    place = builder.gep(context.make_array(array_type)(context, builder, array).data, [index])
    return builder.bitcast(place, kind.as_pointer())


def _place_in_row(context: Any, builder: Any, table_type: Any, arguments: Sequence[Any], kind: Any) -> Any:
    """Returns a pointer to table[row, column], as to a value of this kind."""
    table, row, column = arguments
    array = context.make_array(table_type)(context, builder, table)
    return builder.bitcast(
        cgutils.get_item_pointer(context, builder, table_type, array, [row, column]), kind.as_pointer()
    )


def mask_of(builder: Any, kind: Any, count: Any) -> Any:
    """Returns the mask of the lanes below `count`, from the bits of an integer, as AVX-512 and SVE masks."""
    bits = ir.IntType(kind.count)
    shift = builder.trunc(count, bits) if kind.count < 64 else count
    some = builder.not_(builder.shl(bits(-1), shift))  # undefined for a full vector, so not selected then
    full = builder.icmp_signed(">=", count, ir.IntType(64)(kind.count))
    return builder.bitcast(builder.select(full, bits(-1), some), ir.VectorType(ir.IntType(1), kind.count))


def load_masked(builder: Any, place: Any, mask: Any) -> Any:
    """Loads the vector at a pointer; masked lanes are 0 and not read."""
    kind = place.type.pointee
    inputs = [place, _align(kind), mask, ir.Constant(kind, None)]
    return call_llvm(builder, "llvm.masked.load.{}.p0", kind, kind, inputs)


def store_masked(builder: Any, value: Any, place: Any, mask: Any) -> None:
    """Stores a vector at a pointer; masked lanes are not written."""
    call_llvm(builder, "llvm.masked.store.{}.p0", value.type, ir.VoidType(), [value, place, _align(value.type), mask])


def _align(kind: Any) -> Any:
    """Returns the alignment of a single number, since rows start anywhere in an array."""
    return ir.IntType(32)({"f32": 4, "f64": 8}[kind.element.intrinsic_name])


def call_llvm(builder: Any, name: str, kind: Any, returns: Any, inputs: Sequence[Any]) -> Any:
    """Calls LLVM's intrinsic `name` for vectors of this kind, spelled like v64f32 in its name."""
    function = ir.FunctionType(returns, [value.type for value in inputs])
    name = name.format(f"v{kind.count}{kind.element.intrinsic_name}")
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), inputs)


def _spread(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Generates a broadcast of the first argument to every lane of the return type."""
    kind = context.get_value_type(signature.return_type)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), arguments[0], ir.IntType(32)(0))
    return pick(builder, first, first, [0] * kind.count)


def _totals(builder: Any, vectors: Sequence[Any]) -> Any:
    """Generates `totals`: reduces each vector to four lanes, then combines the four vectors."""
    a, b, c, d = (_fold(builder, vector) for vector in vectors)
    ab, cd = (add_picks(builder, *pair, (0, 1, 4, 5), (2, 3, 6, 7)) for pair in ((a, b), (c, d)))
    return add_picks(builder, ab, cd, (0, 2, 4, 6), (1, 3, 5, 7))


def _fold(builder: Any, value: Any, lanes: int = 4) -> Any:
    """Adds the upper half to the lower until so many lanes are left."""
    while value.type.count > lanes:
        half = value.type.count // 2
        value = add_picks(builder, value, value, range(half), range(half, 2 * half))
    return value


def add_picks(builder: Any, a: Any, b: Any, first: Sequence[int], second: Sequence[int]) -> Any:
    """Returns the sum of two vectors, each picked from the lanes of a and then b."""
    return builder.fadd(pick(builder, a, b, first), pick(builder, a, b, second))


def _join(builder: Any, a: Any, b: Any) -> Any:
    """Returns the lanes of a, then those of b."""
    return pick(builder, a, b, range(2 * a.type.count))


def pick(builder: Any, a: Any, b: Any, numbers: Sequence[int]) -> Any:
    """Returns the lanes with these numbers, counted through a and then b."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers)))
