"""Ask for a row of a table before it is needed: rows drawn at random from a large table wait for memory, not for work."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from cpu.compiled import inlined

LINE = 64  # bytes of a cache line on every machine this runs on; a wrong guess costs time, not correctness


@intrinsic
def _prefetch(typingctx, table, place):
    """Hint that table[place], a number, is about to be read and written; a no-op for the program's meaning."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        indices = [
            context.cast(builder, value, kind, types.intp)
            for value, kind in zip(cgutils.unpack_tuple(builder, arguments[1]), signature.args[1], strict=True)
        ]
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], array, indices)
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte] + [ir.IntType(32)] * 3)
        hint = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        read, keep, data = (ir.Constant(ir.IntType(32), value) for value in (0, 3, 1))
        builder.call(hint, [builder.bitcast(pointer, byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(table, place), generate


@inlined()
def prefetch_row(table, row):
    """Ask for all cache lines of table[row]; table is a C-contiguous array of one or two dimensions, or None: nothing."""
    if table is None:
        return
    if table.ndim == 1:
        _prefetch(table, (row,))
    else:
        for column in range(0, table.shape[1], LINE // table.itemsize):
            _prefetch(table, (row, column))
