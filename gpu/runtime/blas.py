"""GEMM on the device: cuBLAS through ctypes, for row-major float32 matrices, on the stream of the current queue.

Results are byte-identical in every run. cuBLAS guarantees that for one version of the library, on devices of one architecture
and number of multiprocessors, unless streams share a workspace or cublasSetAtomicsMode allows atomics. So every queue has its
own workspace, which also avoids allocations in a loop, and atomics stay off. Products are computed in fp32. The tensor cores'
TF32, with factors of 10 bits, is used only for a device created with a precision of "tf32" or "bf16". A product of two bfloat16
matrices has sums of fp32.
"""

import ctypes
import ctypes.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gpu import device
from gpu.runtime.array import Array

FP32, TF32 = 0, 3  # CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH
KINDS = {4: 0, 2: 14}  # CUDA_R_32F, CUDA_R_16BF by bytes per number
COMPUTE_FP32, ALGORITHM = 68, -1  # CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT
VERSIONS = ("13", "12")
WHEELS = ("nvidia/cu13/lib", "nvidia/cublas/lib")  # below a folder of packages, CUDA 13 and 12
OTHER = "update the driver; for one of CUDA 12: pip install nvidia-cublas-cu12; or name another in HYBRID_CUBLAS"
MISSING = (
    "cuBLAS, which multiplies matrices, is not found; install the CUDA toolkit, or name libcublas.so in HYBRID_CUBLAS, or: "
    "pip install nvidia-cublas (for a driver of CUDA 12: nvidia-cublas-cu12)"
)


class Matrix(NamedTuple):
    """`number` row-major matrices of one shape in device memory.

    pitch  stride of rows in numbers: more than columns for some columns of a wider array
    step   stride of matrices in numbers; 0: one matrix for all products of a batch
    size   bytes per number: 4, float32; 2, bfloat16
    """

    pointer: int
    rows: int
    columns: int
    pitch: int
    step: int = 0
    number: int = 1
    size: int = 4

    @classmethod
    def of(cls, array: "Array | Matrix") -> "Matrix":
        """Returns the Matrix of an array (rows, columns) or (number, rows, columns)."""
        if isinstance(array, Matrix):
            return array
        *number, rows, columns = array.shape
        batch = (rows * columns, *number) if number else ()
        return cls(array.pointer, rows, columns, columns, *batch)


def gemm(
    out: Array | Matrix,
    a: Array | Matrix,
    b: Array | Matrix,
    alpha: float = 1.0,
    beta: float = 0.0,
    a_transposed: bool = False,
    b_transposed: bool = False,
) -> None:
    """out <- alpha a b + beta out; beta 0 never reads `out`.

    out (M, N), a (M, K) and b (K, N) are Arrays or a Matrix each; a, b are stored as (K, M), (N, K) if transposed. If `out` is
    several matrices, one launch computes all products. Either both factors of a single product are bfloat16, or none.
    """
    out, a, b = Matrix.of(out), Matrix.of(a), Matrix.of(b)
    if not (out.rows and out.columns and out.number):
        return
    queue = device.current()
    handle = _handle(queue.device)
    # Row-major is column-major transposed: out^T = b^T a^T, so the factors are swapped
    sizes = (b_transposed, a_transposed, out.columns, out.rows, a.rows if a_transposed else a.columns)
    scale, keep = ctypes.byref(ctypes.c_float(alpha)), ctypes.byref(ctypes.c_float(beta))
    if a.size == 2:
        read = (scale, b.pointer, KINDS[b.size], b.pitch, a.pointer, KINDS[a.size], a.pitch)
        how = (keep, out.pointer, KINDS[out.size], out.pitch, COMPUTE_FP32, ALGORITHM)
        handle.call("cublasGemmEx", queue, *sizes, *read, *how)
    elif out.number == 1:
        places = (scale, b.pointer, b.pitch, a.pointer, a.pitch, keep, out.pointer, out.pitch)
        handle.call("cublasSgemm_v2", queue, *sizes, *places)
    else:
        factors = (scale, b.pointer, b.pitch, b.step, a.pointer, a.pitch, a.step)
        written = (keep, out.pointer, out.pitch, out.step, out.number)
        handle.call("cublasSgemmStridedBatched", queue, *sizes, *factors, *written)


def ready() -> None:
    """Creates the handle and workspace that the current queue's first product would otherwise create."""
    queue = device.current()
    _handle(queue.device).follow(queue)


class Handle:
    """cuBLAS on one device, created, used and destroyed in the thread of the device's owner."""

    def __init__(self, where: device.Device):
        self._device = where
        self._queue: device.Queue | None = None
        self._mode = FP32
        try:
            self._library, self._handle = create()
        except LookupError as error:
            raise device.failed(where.name, error) from None

    def call(self, name: str, queue: device.Queue, *arguments: Any) -> None:
        """Launches a function of the library on a queue."""
        if queue is not self._queue:
            self.follow(queue)
        mode = FP32 if self._device.precision == "fp32" else TF32
        if mode != self._mode:
            self._do("cublasSetMathMode", self._handle, mode)
            self._mode = mode
        self._do(name, self._handle, *arguments)

    def follow(self, queue: device.Queue) -> None:
        """Switches to a queue: its stream, then its workspace, since cublasSetStream restores the library's own workspace."""
        self._queue = None
        workspace = device.scratch("cublas", self._room(), "u1")
        self._do("cublasSetStream_v2", self._handle, queue.handle)
        self._do("cublasSetWorkspace_v2", self._handle, workspace.pointer, workspace.nbytes)
        self._queue = queue

    def _room(self) -> int:
        """Returns the workspace bytes that cuBLAS recommends."""
        return 32 << 20 if self._device.capability[0] >= 9 else 4 << 20

    def _do(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            what = self._library.cublasGetStatusName(status).decode()
            raise device.failed(self._device.name, f"{name} answers with {what}")

    def close(self) -> None:
        """Destroys the handle; the device has done all its work, or is lost."""
        self._queue = None
        self._library.cublasDestroy_v2(self._handle)


def _handle(where: device.Device) -> Handle:
    if "cublas" not in where.libraries:
        where.libraries["cublas"] = Handle(where)
    return where.libraries["cublas"]


def create() -> tuple[Any, Any]:
    """Returns a library that works with this driver, and a handle of it: cuBLAS 13 also opens where only 12 works.

    Raises OSError if no library opens, LookupError, with each error, if none creates a handle.
    """
    answers = []
    for found in libraries():
        handle = ctypes.c_void_p()
        status = found.cublasCreate_v2(ctypes.byref(handle))
        if not status:
            return found, handle
        answers.append(f"cublasCreate_v2 of {found._name} answers with {found.cublasGetStatusName(status).decode()}")
    raise LookupError(", ".join(answers) + f"; {OTHER}")


def libraries() -> Iterator[Any]:
    """Yields the libraries that open, the preferred first; OSError, with the remedy, if there is none.

    The order is the one that HYBRID_CUBLAS names, else the wheel's, the toolkit's, the system's.
    """
    if named := os.environ.get("HYBRID_CUBLAS"):
        try:
            found = _declare(_load(named))
        except OSError as error:
            raise OSError(f"HYBRID_CUBLAS: {error}") from None
        yield found
        return
    failure, opened = "", False
    for place in _places():
        try:
            found = _declare(_load(place))
        except OSError as error:
            failure = failure or f" ({error})" * Path(place).is_file()
        else:
            opened = True
            yield found
    if not opened:
        raise OSError(MISSING + failure)


def _places() -> Iterator[str]:
    toolkit = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda", "lib64")
    for version in VERSIONS:
        name = f"libcublas.so.{version}"
        folders = [Path(folder, wheel) for folder in sys.path for wheel in WHEELS]
        yield from (str(folder / name) for folder in (*folders, toolkit) if (folder / name).is_file())
        yield name
    if found := ctypes.util.find_library("cublas"):
        yield found


def _load(path: str) -> ctypes.CDLL:
    """Opens libcublas. The libcublasLt in its folder is opened first, because the loader would not search there."""
    beside = Path(path).with_name(Path(path).name.replace("libcublas.", "libcublasLt."))
    if beside.is_file() and beside.name != Path(path).name:
        ctypes.CDLL(str(beside))
    return ctypes.CDLL(path)


def _declare(found: ctypes.CDLL) -> ctypes.CDLL:
    """Declares the arguments for ctypes; a device pointer is a number."""
    p, i, s, q = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_longlong
    found.cublasCreate_v2.argtypes = (p,)
    found.cublasDestroy_v2.argtypes = (p,)
    found.cublasSetStream_v2.argtypes = (p, p)
    found.cublasSetMathMode.argtypes = (p, i)
    found.cublasSetWorkspace_v2.argtypes = (p, p, s)
    found.cublasSgemm_v2.argtypes = (p, i, i, i, i, i, p, p, i, p, i, p, p, i)
    found.cublasSgemmStridedBatched.argtypes = (p, i, i, i, i, i, p, p, i, q, p, i, q, p, p, i, q, i)
    found.cublasGemmEx.argtypes = (p, i, i, i, i, i, p, p, i, i, p, i, i, p, p, i, i, i, i)
    found.cublasGetStatusName.argtypes = (i,)
    found.cublasGetStatusName.restype = ctypes.c_char_p
    return found
