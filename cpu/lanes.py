"""Thirty-two neighbouring numbers of a row as one value, for kernels that the compiler cannot vectorise on its own.

LLVM splits the value into whatever registers the machine has. Loops over a row of any width take `LANES` numbers a turn
and what is left in one last turn with a smaller count, whose missing lanes read as 0 and are not written.
"""

from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.extending import models

LANES = 32

intrinsic: Any = extending.intrinsic  # Numba's stubs do not know that callers leave out the typing context


class Lanes(types.Type):
    """Numba's type of the value."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@extending.register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.VectorType(manager.lookup(kind.dtype).get_value_type(), LANES))


@intrinsic
def load(typing, table, row, column, count):
    """table[row, column : column + count], count <= LANES; a table is C-contiguous with two dimensions."""

    def generate(context, builder, signature, arguments):
        pointer, mask = _place(context, builder, signature, arguments[:3], arguments[-1])
        zero = ir.Constant(pointer.type.pointee, None)
        name = f"llvm.masked.load.{_suffix(zero.type)}.p0"
        kind = ir.FunctionType(zero.type, [pointer.type, ir.IntType(32), mask.type, zero.type])
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, [pointer, _align(zero.type), mask, zero])

    return Lanes(table.dtype)(table, types.intp, types.intp, types.intp), generate


@intrinsic
def store(typing, table, row, column, value, count):
    """table[row, column : column + count] = the first `count` lanes of `value`."""

    def generate(context, builder, signature, arguments):
        pointer, mask = _place(context, builder, signature, arguments[:3], arguments[-1])
        value = arguments[3]
        name = f"llvm.masked.store.{_suffix(value.type)}.p0"
        kind = ir.FunctionType(ir.VoidType(), [value.type, pointer.type, ir.IntType(32), mask.type])
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(function, [value, pointer, _align(value.type), mask])
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp, value, types.intp), generate


@intrinsic
def splat(typing, number):
    """The number in every lane."""

    def generate(context, builder, signature, arguments):
        return _splat(builder, arguments[0])

    return Lanes(number)(number), generate


@intrinsic
def multiply_add(typing, a, b, c):
    """a * b + c, rounded once where the machine can."""

    def generate(context, builder, signature, arguments):
        kind = arguments[0].type
        name = f"llvm.fmuladd.{_suffix(kind)}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
        return builder.call(function, arguments)

    return a(a, b, c), generate


class Quad(types.Type):
    """Numba's type of four numbers as one value."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Quad({dtype})")


@extending.register_model(Quad)
class _QuadModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.VectorType(manager.lookup(kind.dtype).get_value_type(), 4))


@intrinsic
def totals(typing, a, b, c, d):
    """The sums of the lanes of each, as a Quad.

    Halves are added until one number is left: the same order on every machine.
    """

    def generate(context, builder, signature, arguments):
        fold = [_fold(builder, value) for value in arguments]
        ab, cd = (_halves(builder, fold[i], fold[i + 1], (0, 1, 4, 5), (2, 3, 6, 7)) for i in (0, 2))
        return _halves(builder, ab, cd, (0, 2, 4, 6), (1, 3, 5, 7))

    return Quad(a.dtype)(a, b, c, d), generate


@intrinsic
def store_quads(typing, line, index, a, b, c, d):
    """line[index : index + 16] = four Quads, in one store: a vector load can follow a single store at once, not several."""

    def generate(context, builder, signature, arguments):
        a, b, c, d = arguments[2:]
        low, high = (_join(builder, *pair) for pair in ((a, b), (c, d)))
        whole = _join(builder, low, high)
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        store = builder.store(whole, builder.bitcast(pointer, whole.type.as_pointer()))
        store.align = signature.args[0].dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(line, types.uintp, a, b, c, d), generate


def _join(builder, a, b):
    """One vector of the lanes of two."""
    pick = range(2 * a.type.count)
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(pick)), list(pick)))


def _halves(builder, a, b, first, second):
    """Pick lanes of a and b for two vectors, and add these."""
    picks = (ir.Constant(ir.VectorType(ir.IntType(32), len(pick)), list(pick)) for pick in (first, second))
    return builder.fadd(*(builder.shuffle_vector(a, b, pick) for pick in picks))


def _fold(builder, value):
    """Add halves until four lanes are left."""
    while value.type.count > 4:
        half = value.type.count // 2
        value = _halves(builder, value, value, range(half), range(half, 2 * half))
    return value


def _place(context, builder, signature, arguments, count):
    """Where the lanes lie, and which of them exist."""
    table, row, column = arguments
    array = context.make_array(signature.args[0])(context, builder, table)
    pointer = cgutils.get_item_pointer(context, builder, signature.args[0], array, [row, column])
    lanes = ir.Constant(ir.VectorType(count.type, LANES), list(range(LANES)))
    mask = builder.icmp_signed("<", lanes, _splat(builder, count))
    return builder.bitcast(pointer, ir.VectorType(pointer.type.pointee, LANES).as_pointer()), mask


def _splat(builder, number):
    kind = ir.VectorType(number.type, LANES)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))


def _align(kind):
    return ir.IntType(32)(4 if isinstance(kind.element, ir.FloatType) else 8)


def _suffix(kind):
    return f"v{LANES}f{32 if isinstance(kind.element, ir.FloatType) else 64}"
