"""GEMM for compiled kernels, also inside `prange`: sgemm and dgemm of the OpenBLAS that SciPy contains.

SciPy publishes the C addresses of its BLAS in `scipy.linalg.cython_blas`. They are registered here under a symbol name. Kernels
refer to the name, since addresses differ between processes. So compiled kernels can be cached.
"""

import os
from typing import Any

import llvmlite.binding
import numpy as np
import scipy
import scipy.linalg.cython_blas
import threadpoolctl
from llvmlite import ir
from numba import extending
from numba.core import cgutils, types

from cpu.runtime.compiled import called, launched

CHUNK = 256  # rows of a table per product: 1 MB of products with 1024 others, which fits a core's cache
SHARDS = 16  # maximum number of threads that partition one table

intrinsic: Any = extending.intrinsic  # Numba's stubs do not model that callers omit the typing context
SYMBOLS = {types.float32: ("cpu_blas_sgemm", "sgemm"), types.float64: ("cpu_blas_dgemm", "dgemm")}

for symbol, name in SYMBOLS.values():
    llvmlite.binding.add_symbol(symbol, extending.get_cython_function_address("scipy.linalg.cython_blas", name))


def _one_thread_each() -> None:
    """Makes SciPy's BLAS compute in the thread that calls it, for the whole process.

    Our kernels are already parallel over chunks. A BLAS that splits every chunk again would oversubscribe the cores, serialise
    callers, and make results depend on the thread count. OpenBLAS supports concurrent calls; its thread count is global, so it
    is set once, here. NumPy's wheels bring an OpenBLAS of their own, which is unchanged. If the two packages share one library
    (some distributions), that one is set.
    """
    libraries = threadpoolctl.ThreadpoolController().select(user_api="blas")
    paths = [library.filepath for library in libraries.lib_controllers]
    home = os.path.dirname(scipy.__file__)
    own = [path for path in paths if path.startswith((home + os.sep, home + ".libs" + os.sep))]
    libraries.select(filepath=own or paths).limit(limits=1)


_one_thread_each()


_ARGUMENTS = ("out", "a", "b", "a_flag", "b_flag", "sizes", "a_step", "b_step", "out_step", "alpha", "beta")


@intrinsic
def _call(typing, out, a, b, a_flag, b_flag, sizes, a_step, b_step, out_step, alpha, beta):
    """Calls BLAS's ?gemm on the data of three arrays; flags are the characters "N" or "T", sizes the BLAS's (m, n, k)."""
    if out.dtype not in SYMBOLS or not out.dtype == a.dtype == b.dtype == alpha == beta:
        return None

    def generate(context, builder, signature, arguments):
        values = dict(zip(_ARGUMENTS, arguments, strict=True))
        data = {
            name: context.make_array(kind)(context, builder, values[name]).data
            for name, kind in zip(_ARGUMENTS[:3], signature.args[:3], strict=True)
        }

        def address(value):
            place = cgutils.alloca_once(builder, value.type)
            builder.store(value, place)
            return place

        m, n, k = (address(size) for size in cgutils.unpack_tuple(builder, values["sizes"]))
        given = {name: address(values[name]) for name in _ARGUMENTS[3:] if name != "sizes"}
        call = [given["a_flag"], given["b_flag"], m, n, k, given["alpha"], data["a"], given["a_step"]]
        call += [data["b"], given["b_step"], given["beta"], data["out"], given["out_step"]]
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in call])
        gemm = cgutils.get_or_insert_function(builder.module, kind, SYMBOLS[out.dtype][0])
        builder.call(gemm, call)
        return context.get_dummy_value()

    number = types.int32
    flags_and_sizes = (types.int8, types.int8, types.containers.UniTuple(number, 3), number, number, number)
    return types.void(out, a, b, *flags_and_sizes, out.dtype, out.dtype), generate


PLAIN, TRANSPOSED = np.int8(ord("N")), np.int8(ord("T"))


@called(_nrt=False)
def _stored(a):
    """Returns the transposition flag for column-major BLAS to read the matrix `a`, and the stride of its stored rows."""
    if a.strides[1] == a.itemsize:
        return PLAIN, max(a.strides[0] // a.itemsize, a.shape[1], 1)
    return TRANSPOSED, max(a.strides[1] // a.itemsize, a.shape[0], 1)


@called(_nrt=False)
def gemm(out, a, b, alpha, beta):
    """out <- alpha a @ b + beta out, computed by the calling thread; call it from compiled code, in `prange` too.

    out (M, N), a (M, K), b (K, N) are 2-D views of one dtype, float32 or float64. The rows of `out` are contiguous. a and b are
    contiguous along either axis, so slices and transposed slices are not copied. beta 1 accumulates, beta 0 never reads `out`.
    Results depend only on sizes and operands. Nothing is checked.
    """
    kind = out.dtype.type
    a_flag, a_step = _stored(a)
    b_flag, b_step = _stored(b)
    out_step = max(out.strides[0] // out.itemsize, out.shape[1], 1)
    # Row-major is column-major transposed: out.T = b.T @ a.T, so the two factors are swapped
    sizes = (np.int32(out.shape[1]), np.int32(out.shape[0]), np.int32(a.shape[1]))
    steps = (np.int32(b_step), np.int32(a_step), np.int32(out_step))
    _call(out, b, a, b_flag, a_flag, sizes, *steps, kind(alpha), kind(beta))


# A table is partitioned into cache-sized chunks of rows, and these into shards; one thread computes a shard. Sums are taken
# over the chunks of a shard, then over the shards, in order. So results depend on the number of shards, not on the thread
# count.


@launched()
def shard_part(shard, shards, count):
    """Returns the begin and end of a shard's rows: whole chunks, dealt evenly."""
    chunks = -(-count // CHUNK)
    return shard * chunks // shards * CHUNK, min((shard + 1) * chunks // shards * CHUNK, count)


def largest_shard(shards: int, count: int) -> int:
    """Returns the number of rows of the largest shard."""
    return -(-count // (shards * CHUNK)) * CHUNK
