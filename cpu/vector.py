"""A long vector of floats as a Numba type, for inner loops over rows too short for LLVM's own vectoriser.

A row of 49 weights leaves an automatically vectorised loop with as many single steps as vector steps. Here the last vector
is loaded and stored under a mask instead. A vector is several registers of the widest kind, so that independent sums hide
each other's latency; how many is for a loop to choose, by the `bits` that it passes, a constant. LLVM splits it into what
the processor has.
"""

from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.core.datamodel import models

LINE = 512  # bits of a cache line

intrinsic: Any = extending.intrinsic  # Numba's stubs do not know that callers leave out the typing context
of_width: Any = extending.intrinsic(prefer_literal=True)  # `bits` comes as part of a type


class Vector(types.Type):
    """As many float32 or float64 as make `bits`."""

    def __init__(self, element, bits):
        self.element = element
        self.lanes = bits.literal_value // element.bitwidth
        super().__init__(name=f"vector({self.lanes} x {element})")


@extending.register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.VectorType(manager.lookup(kind.element).get_value_type(), kind.lanes))


@of_width
def lanes(typing, array, bits):
    """How many numbers of this array make a vector, known at compile time."""
    count = Vector(array.dtype, bits).lanes
    return types.int64(array, bits), lambda context, builder, signature, arguments: ir.IntType(64)(count)


@of_width
def zeros(typing, array, bits):
    """A vector of zeros, of the dtype of this array."""

    def generate(context, builder, signature, arguments):
        return ir.Constant(context.get_value_type(signature.return_type), None)

    return Vector(array.dtype, bits)(array, bits), generate


@of_width
def spread(typing, value, bits):
    """A vector with `value` in every lane."""

    def generate(context, builder, signature, arguments):
        kind = context.get_value_type(signature.return_type)
        first = builder.insert_element(ir.Constant(kind, ir.Undefined), arguments[0], ir.IntType(32)(0))
        return _pick(builder, first, first, [0] * kind.count)

    return Vector(value, bits)(value, bits), generate


@of_width
def load(typing, array, index, count, bits):
    """array[index : index + lanes] of a contiguous array of one dimension; lanes from `count` on are 0 and not read."""

    def generate(context, builder, signature, arguments):
        kind = context.get_value_type(signature.return_type)
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1], kind)
        return _load(builder, place, _mask(builder, kind, arguments[2]))

    return Vector(array.dtype, bits)(array, types.int64, types.int64, bits), generate


@intrinsic
def store(typing, array, index, count, vector):
    """array[index : index + lanes] = vector, except for the lanes from `count` on."""

    def generate(context, builder, signature, arguments):
        array, index, count, value = arguments
        place = _place(context, builder, signature.args[0], array, index, value.type)
        _store(builder, value, place, _mask(builder, value.type, count))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, vector), generate


@intrinsic
def multiply_add(typing, a, b, c):
    """a b + c in every lane, rounded once where the processor can."""

    def generate(context, builder, signature, arguments):
        kind = arguments[0].type
        return _call(builder, "llvm.fmuladd.{}", kind, kind, arguments)

    return a(a, b, c), generate


@intrinsic
def add_sums(typing, array, index, count, a, b, c, d):
    """array[index + k] += the sum of the lanes of vector k, for the first `count` of the four vectors.

    In every vector the upper half is added to the lower until one lane is left, the four side by side.
    """

    def generate(context, builder, signature, arguments):
        array, index, count, a, b, c, d = arguments
        value = _join(builder, _join(builder, a, b), _join(builder, c, d))
        while value.type.count > 4:
            half = value.type.count // 8
            low = [lane for lane in range(value.type.count) if lane // half % 2 == 0]
            high = [lane + half for lane in low]
            value = builder.fadd(_pick(builder, value, value, low), _pick(builder, value, value, high))
        place = _place(context, builder, signature.args[0], array, index, value.type)
        mask = _mask(builder, value.type, count)
        _store(builder, builder.fadd(_load(builder, place, mask), value), place, mask)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, a, b, c, d), generate


@of_width
def prefetch(typing, array, index, bits):
    """Ask for the cache lines of a vector, in the core's second cache: the first is for what is in work.

    A hint without meaning for the result; the index may lie outside of the array.
    """

    def generate(context, builder, signature, arguments):
        array, index, _ = arguments
        place = _place(context, builder, signature.args[0], array, index, ir.IntType(8))
        read, second_cache, data = (ir.IntType(32)(value) for value in (0, 2, 1))
        for byte in range(0, bits.literal_value // 8, LINE // 8):
            inputs = [builder.gep(place, [ir.IntType(64)(byte)]), read, second_cache, data]
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in inputs])
            builder.call(builder.module.declare_intrinsic("llvm.prefetch", (place.type,), kind), inputs)
        return context.get_dummy_value()

    return types.void(array, types.int64, bits), generate


def _place(context, builder, array_type, array, index, kind):
    """A pointer to array[index], as to a value of this kind."""
    place = builder.gep(context.make_array(array_type)(context, builder, array).data, [index])
    return builder.bitcast(place, kind.as_pointer())


def _mask(builder, kind, count):
    """The lanes below `count`, made of the bits of a number, which is what AVX-512 and SVE do masks with."""
    bits = ir.IntType(kind.count)
    shift = builder.trunc(count, bits) if kind.count < 64 else count
    some = builder.not_(builder.shl(bits(-1), shift))  # undefined for a full vector, so not taken then
    full = builder.icmp_signed(">=", count, ir.IntType(64)(kind.count))
    return builder.bitcast(builder.select(full, bits(-1), some), ir.VectorType(ir.IntType(1), kind.count))


def _load(builder, place, mask):
    kind = place.type.pointee
    return _call(builder, "llvm.masked.load.{}.p0", kind, kind, [place, _align(kind), mask, ir.Constant(kind, None)])


def _store(builder, value, place, mask):
    _call(builder, "llvm.masked.store.{}.p0", value.type, ir.VoidType(), [value, place, _align(value.type), mask])


def _align(kind):
    """Arrays begin where their numbers may, and rows begin anywhere in them."""
    return ir.IntType(32)(4 if isinstance(kind.element, ir.FloatType) else 8)


def _call(builder, name, kind, returns, inputs):
    """Call LLVM's own function `name` for vectors of this kind, which its name spells v64f32."""
    function = ir.FunctionType(returns, [value.type for value in inputs])
    name = name.format(f"v{kind.count}{kind.element.intrinsic_name}")
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), inputs)


def _join(builder, a, b):
    """The lanes of a, then those of b."""
    return _pick(builder, a, b, range(2 * a.type.count))


def _pick(builder, a, b, numbers):
    """The lanes with these numbers, counted through a and then b."""
    numbers = list(numbers)
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), numbers))
