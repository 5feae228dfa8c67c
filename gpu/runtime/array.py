"""Arrays in device memory: a pointer, a shape and a dtype, which kernels and other libraries read."""

import ctypes
import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

Shape = int | tuple[int, ...]


class Held(list[Any]):
    """A thing to be freed in the order of a device's work; empty once freed.

    lent  True if shared with another library, whose work is not ordered with the device's queues
    """

    lent = False


class Guard:
    """Keeps a thing alive: when it is deleted, its device frees the thing. Closing the device empties `held`."""

    def __init__(self, held: Held):
        self.held = held


class Array:
    """A C-contiguous array in device memory: it can be sliced along its first axis and reshaped; it has no arithmetic.

    keep     an object that keeps the memory alive
    ordinal  the number of the device

    Other libraries read it through DLPack and __cuda_array_interface__ (version 3). Neither synchronises here: wait for the
    event of the work that writes it, or launch that work by `within` of gpu/runtime/queues.py.
    """

    def __init__(self, pointer: int, shape: Shape, dtype: DTypeLike, keep: Any, ordinal: int = 0):
        self.shape = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
        self.pointer, self.dtype, self.keep, self.ordinal = pointer, np.dtype(dtype), keep, ordinal
        self.ndim, self.size = len(self.shape), math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> "Array":
        """Returns a view of some rows; TypeError for anything but a slice, ValueError for one with a step."""
        if not isinstance(rows, slice):
            raise TypeError(f"a device array is cut by a slice of rows, found {rows!r}")
        first, last, step = rows.indices(len(self))
        if step != 1:
            raise ValueError(f"a device array is cut without steps, found {rows}")
        rest = self.shape[1:]
        pointer = self.pointer + first * math.prod(rest) * self.dtype.itemsize
        return Array(pointer, (max(last - first, 0), *rest), self.dtype, self.keep, self.ordinal)

    def reshape(self, *shape: int) -> "Array":
        """Returns the same memory in another shape; one size may be -1."""
        known = -math.prod(shape)
        whole = tuple(self.size // known if size < 0 else size for size in shape)
        if math.prod(whole) != self.size:
            raise ValueError(f"an array of shape {self.shape} cannot take the shape {shape}")
        return Array(self.pointer, whole, self.dtype, self.keep, self.ordinal)

    def _lend(self) -> None:
        if isinstance(self.keep, Guard):
            self.keep.held.lent = True

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.ordinal

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """Returns a capsule that keeps the memory alive; BufferError for another device, a copy, or a dtype DLPack lacks."""
        device = self.__dlpack_device__()
        if copy or dl_device not in (None, device) or self.dtype.kind not in CODES or self.dtype.byteorder == ">":
            raise BufferError(
                f"found copy={copy}, device {dl_device}, {self.dtype}; a device array is lent as it is, on {device}"
            )
        self._lend()
        return _Lent(self, device).capsule()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self._lend()
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": None,
            "version": 3,
        }


def adopt(foreign: Any, ordinal: int = 0) -> Array:
    """Returns a view of another library's memory on device number `ordinal`, which is kept alive.

    foreign  has __cuda_array_interface__ (PyTorch, CuPy, Numba) or DLPack (JAX, too); its own streams are not awaited

    Raises TypeError for an object without either or of another device, ValueError for one that is not C-contiguous.
    """
    facts = getattr(foreign, "__cuda_array_interface__", None)  # PyTorch makes it anew at each access
    if facts is not None:
        array = Array(facts["data"][0], facts["shape"], facts["typestr"], foreign, ordinal)
        strides = facts.get("strides")
    else:
        device = tuple(map(int, foreign.__dlpack_device__())) if hasattr(foreign, "__dlpack_device__") else ()
        if device != (CUDA, ordinal):
            raise TypeError(f"expected an array on a CUDA device, number {ordinal}, found {type(foreign).__name__}")
        array, strides = taken(foreign.__dlpack__(stream=UNORDERED), ordinal)
    if strides is not None and array.size and tuple(strides) != _strides(array):
        raise ValueError(f"expected a C-contiguous array, found strides {tuple(strides)} for shape {array.shape}")
    return array


def _strides(array: Array) -> tuple[int, ...]:
    return tuple(array.dtype.itemsize * math.prod(array.shape[axis + 1 :]) for axis in range(array.ndim))


# DLPack: https://dmlc.github.io/dlpack/latest/c_api.html. A capsule has the address of a DLManagedTensor, and one of two names.

CUDA, UNORDERED = 2, -1  # kDLCUDA; the stream for no synchronisation
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLPack's dtype codes, by NumPy kind
FRESH, USED = b"dltensor", b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    )  # fmt: skip


_Delete, _Destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p), ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_is_named = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))


class _Lent:
    """An array lent to another library: it and its DLManagedTensor live until that library calls the deleter."""

    all: dict[int, "_Lent"] = {}  # noqa: RUF012  # by the address of the tensor

    def __init__(self, array: Array, device: tuple[int, int]):
        shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        strides = (ctypes.c_int64 * max(array.ndim, 1))(*(step // array.dtype.itemsize for step in _strides(array)))
        self.array, self.numbers = array, (shape, strides)
        bits = 8 * array.dtype.itemsize
        self.tensor = _Tensor(
            array.pointer, device, array.ndim, CODES[array.dtype.kind], bits, 1, shape, strides, 0, None,
            ctypes.cast(_delete, ctypes.c_void_p),
        )  # fmt: skip

    def capsule(self) -> Any:
        """Returns a capsule that calls the deleter, unless it is consumed."""
        address = ctypes.addressof(self.tensor)
        self.all[address] = self
        return _capsule(address, FRESH, ctypes.cast(_destroy, ctypes.c_void_p))


def _forget(address: int) -> None:
    _Lent.all.pop(address, None)


def _forget_fresh(capsule: int) -> None:
    if _is_named(capsule, FRESH):
        _forget(_pointer(capsule, FRESH))


_delete, _destroy = _Delete(_forget), _Destroy(_forget_fresh)


class _Taken:
    """A tensor of another library, whose deleter is called once it is no longer needed."""

    def __init__(self, tensor: _Tensor):
        self.tensor = tensor

    def __del__(self) -> None:
        if self.tensor.deleter:
            _Delete(self.tensor.deleter)(ctypes.addressof(self.tensor))


def taken(capsule: Any, ordinal: int) -> tuple[Array, tuple[int, ...] | None]:
    """Returns an array of a capsule's memory, which is kept alive, and its strides in bytes; None: C-contiguous."""
    tensor = _Tensor.from_address(_pointer(id(capsule), FRESH))
    _rename(id(capsule), USED)
    keep, size = _Taken(tensor), tensor.bits // 8
    kinds = {code: kind for kind, code in CODES.items()}
    if tensor.code not in kinds or tensor.lanes != 1 or tensor.bits % 8:
        raise TypeError(f"expected numbers that NumPy has, found DLPack's type {tensor.code} of {tensor.bits} bits")
    kind = "?" if kinds[tensor.code] == "b" else f"{kinds[tensor.code]}{size}"
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    strides = tuple(tensor.strides[axis] * size for axis in range(tensor.ndim)) if tensor.strides else None
    return Array((tensor.data or 0) + tensor.byte_offset, shape, kind, keep, ordinal), strides
