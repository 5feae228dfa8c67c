"""A 64-byte vector of floats as a Numba type, for inner loops over rows too short for LLVM's own vectoriser.

A row of 49 weights leaves an automatically vectorised loop with as many single steps as vector steps. Here the last vector
is loaded and stored under a mask instead. LLVM turns these vectors into what the processor has, narrower ones too.
"""

from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.core.datamodel import models

intrinsic: Any = extending.intrinsic  # Numba's stubs do not know that callers leave out the typing context


class Vector(types.Type):
    """16 float32 or 8 float64."""

    def __init__(self, element):
        self.element = element
        self.lanes = 2048 // element.bitwidth
        super().__init__(name=f"vector({element})")


@extending.register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.VectorType(manager.lookup(kind.element).get_value_type(), kind.lanes))


def _place(context, builder, array_type, array, index, count, lanes=None):
    """Pointer to array.data[index] as a vector, and the mask of the lanes below `count`."""
    kind = context.get_value_type(Vector(array_type.dtype))
    kind = ir.VectorType(kind.element, lanes or kind.count)
    place = builder.gep(context.make_array(array_type)(context, builder, array).data, [index])
    bits = ir.IntType(kind.count)
    full = count
    count = builder.trunc(count, bits) if kind.count < 64 else count
    some = builder.sub(builder.shl(bits(1), count), bits(1))
    mask = builder.select(builder.icmp_signed("<", full, ir.IntType(64)(kind.count)), some, bits(-1))
    mask = builder.bitcast(mask, ir.VectorType(ir.IntType(1), kind.count))
    return kind, builder.bitcast(place, kind.as_pointer()), mask


def _spread(builder, kind, value):
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), zeros)


def _call(builder, name, kind, returns, inputs):
    """Call LLVM's own function `name` for vectors of this kind, written <16 x float> -> v16f32 in its name."""
    function = ir.FunctionType(returns, [value.type for value in inputs])
    name = name.format(f"v{kind.count}{kind.element.intrinsic_name}")
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), inputs)


@intrinsic
def load(typing, array, index, count):
    """array[index : index + lanes] of a contiguous vector; lanes from `count` on are not read and are 0."""

    def generate(context, builder, signature, arguments):
        kind, place, mask = _place(context, builder, signature.args[0], *arguments)
        align = ir.IntType(32)(array.dtype.bitwidth // 8)
        inputs = [place, align, mask, ir.Constant(kind, [0.0] * kind.count)]
        return _call(builder, "llvm.masked.load.{}.p0", kind, kind, inputs)

    return Vector(array.dtype)(array, types.int64, types.int64), generate


@intrinsic
def store(typing, array, index, count, vector):
    """array[index : index + lanes] = vector, except for the lanes from `count` on."""

    def generate(context, builder, signature, arguments):
        kind, place, mask = _place(context, builder, signature.args[0], *arguments[:3])
        inputs = [arguments[3], place, ir.IntType(32)(array.dtype.bitwidth // 8), mask]
        _call(builder, "llvm.masked.store.{}.p0", arguments[3].type, ir.VoidType(), inputs)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, vector), generate


@intrinsic
def spread(typing, value):
    """A vector with `value` in every lane."""

    def generate(context, builder, signature, arguments):
        return _spread(builder, context.get_value_type(signature.return_type), arguments[0])

    return Vector(value)(value), generate


@intrinsic
def multiply_add(typing, a, b, c):
    """a b + c in every lane, rounded once where the processor can."""

    def generate(context, builder, signature, arguments):
        kind = arguments[0].type
        return _call(builder, "llvm.fmuladd.{}", kind, kind, arguments)

    return a(a, a, a), generate


@intrinsic
def add_sums(typing, array, index, count, a, b, c, d):
    """array[index + k] += the sum of the lanes of vector k, for the first `count` of four vectors.

    Every group of lanes folds its upper half onto its lower, the four side by side.
    """

    def generate(context, builder, signature, arguments):
        value = _join(builder, _join(builder, *arguments[3:5]), _join(builder, *arguments[5:]))
        while value.type.count > 4:
            group = value.type.count // 4
            lower = [lane for lane in range(value.type.count) if lane % group < group // 2]
            upper = [lane + group // 2 for lane in lower]
            value = builder.fadd(_pick(builder, value, value, lower), _pick(builder, value, value, upper))
        kind, place, mask = _place(context, builder, signature.args[0], *arguments[:3], lanes=4)
        align = ir.IntType(32)(array.dtype.bitwidth // 8)
        old = _call(builder, "llvm.masked.load.{}.p0", kind, kind, [place, align, mask, ir.Constant(kind, [0.0] * 4)])
        _call(builder, "llvm.masked.store.{}.p0", kind, ir.VoidType(), [builder.fadd(old, value), place, align, mask])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, a, b, c, d), generate


def _join(builder, a, b):
    return _pick(builder, a, b, range(2 * a.type.count))


def _pick(builder, a, b, lanes):
    """The lanes of a, then b, with these numbers."""
    lanes = list(lanes)
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes))
