"""What this machine has of a GPU: driver, cards, compiler, PyCUDA, cuBLAS."""

import ctypes
import importlib
import importlib.metadata
from collections.abc import Iterator
from typing import Any, NamedTuple

from .finding import failure, finding, version

NO_GPU = "none is needed: --device cpu"
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
DRIVERS = {12: "525", 13: "580"}  # the oldest driver of a major version of CUDA
ASK_SMI = "nvidia-smi says more; reboot after an update of the driver, start a container with its GPUs (--gpus all)"
PYCUDA = "pip install 'hybrid-engine[gpu]' && python -m gpu.install, which needs a C++ compiler, and no CUDA toolkit"
OTHER_CUBLAS = (
    "update the driver, or for one of CUDA 12: pip install nvidia-cublas-cu12; or name another in HYBRID_CUBLAS"
)
OLD_CARD = "install an older CUDA toolkit and name its nvcc in HYBRID_NVCC"


class Card(NamedTuple):
    """What the driver says of a CUDA device; capability 9.0 is 90, as in sm_90."""

    name: str
    capability: int
    memory: int


def gpu() -> list[dict[str, Any]]:
    """All that a GPU needs, none of which the engine needs: driver, devices, compiler, PyCUDA, cuBLAS; then the conclusion."""
    made_by, compiles = _compiler()
    supports, driver = _driver(made_by)
    devices = list(_devices(made_by)) if supports else []
    findings = [driver, *devices, compiles, _pycuda(bool(supports)), _cublas(bool(devices))]
    amiss = ", ".join(one["name"] for one in findings if not one["ok"] and one not in devices[1:])
    return [*findings, _conclusion(amiss)]


def _conclusion(amiss: str) -> dict[str, Any]:
    """Whether a GPU is used, or the first reason why not; `amiss` names what was found to need mending."""
    from .. import backend

    try:
        reason = backend.why_no_gpu() or (f"mend {amiss}" if amiss else None)
    except Exception as error:  # whatever a PyCUDA that does not fit this driver raises
        reason = f"PyCUDA fails: {error}"
    found = f"not used: {reason}" if reason else "can be used: --device cuda:0"
    return finding("gpu", reason is None, found, NO_GPU, needed=False)


def _compiler() -> tuple[Any, dict[str, Any]]:
    """What compiles kernels, None where nothing does; and the finding."""
    from gpu import compiler

    try:
        made_by = compiler.compiler()
    except OSError as error:
        return None, failure("kernel compiler", error, compiler.WANTED)
    return made_by, finding("kernel compiler", True, f"{made_by.name}, {made_by.path}", needed=False)


def _driver(made_by: Any) -> tuple[int, dict[str, Any]]:
    """The version of CUDA that the driver supports, as 13000, 0 where no driver runs; and the finding."""
    from gpu import compiler

    try:
        cuda = _cuda()
    except OSError as error:
        remedy = f"install it, where there is a GPU; {NO_GPU}"
        return 0, finding("NVIDIA driver", False, f"none ({error})", remedy, needed=False)
    try:
        version = _ask(cuda.cuDriverGetVersion, ctypes.c_int())
        count = _count(cuda)
    except OSError as error:
        return 0, finding("NVIDIA driver", False, str(error), ASK_SMI, needed=False)
    found = f"CUDA {version // 1000}.{version % 1000 // 10}, {count} device{'s' * (count != 1)}"
    if made_by and made_by.version[0] > version // 1000:
        found += f"; older than {made_by.name}"
        oldest = DRIVERS.get(made_by.version[0], "its toolkit's")
        remedy = f"update the driver (CUDA {made_by.version[0]}: {oldest} or newer), or {compiler.OLDER}"
        return version, finding("NVIDIA driver", False, found, remedy, needed=False)
    return version, finding("NVIDIA driver", count > 0, found, ASK_SMI, needed=False)


def _count(cuda: Any) -> int:
    """How many devices the driver sees, once it runs."""
    status = cuda.cuInit(0)
    if status == NO_DEVICE:
        return 0
    if status:
        raise OSError(f"cuInit answers with error {status}")
    count: int = _ask(cuda.cuDeviceGetCount, ctypes.c_int())
    return count


def _cuda() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _ask(function: Any, place: Any, *arguments: Any) -> Any:
    """What a function of the driver writes to its first argument; OSError where it answers with an error."""
    status = function(ctypes.byref(place), *arguments)
    if status:
        raise OSError(f"{function.__name__} answers with error {status}")
    return place.value


def _devices(made_by: Any) -> Iterator[dict[str, Any]]:
    """Name, capability and memory of every device, and whether kernels can be compiled for it."""
    from gpu.device import LEAST

    least, known = 10 * LEAST[0] + LEAST[1], made_by.architectures if made_by else []
    for number, card in enumerate(_cards()):
        found, remedy = f"{card.name}, sm_{card.capability}, {card.memory / 2**30:.1f} GiB", ""
        if card.capability < least:
            found, remedy = f"{found}; the kernels need sm_{least} or newer", NO_GPU
        elif known and card.capability < min(known):
            found, remedy = f"{found}; too old for {made_by.name}", OLD_CARD
        elif known and card.capability not in known:
            found += f"; newer than {made_by.name}: the driver translates its newest PTX"
        yield finding(f"cuda:{number}", not remedy, found, remedy, needed=False)


def _cards() -> list[Card]:
    """The devices, as far as the driver tells of them."""
    cuda, cards = _cuda(), []
    try:
        for number in range(_count(cuda)):
            device = _ask(cuda.cuDeviceGet, ctypes.c_int(), number)
            name = ctypes.create_string_buffer(256)
            cuda.cuDeviceGetName(name, len(name), device)
            major, minor = (_ask(cuda.cuDeviceGetAttribute, ctypes.c_int(), which, device) for which in CAPABILITY)
            memory = _ask(cuda.cuDeviceTotalMem_v2, ctypes.c_size_t(), device)
            cards.append(Card(name.value.decode(errors="replace"), 10 * major + minor, memory))
    except OSError:
        pass  # the driver is there and its devices are not: the conclusion says so
    return cards


def _pycuda(driver: bool) -> dict[str, Any]:
    """PyCUDA's version, and whether it can be imported, which takes the driver that it was built for."""
    found, ok = version("pycuda")
    remedy = PYCUDA
    if ok:
        try:
            importlib.import_module("pycuda.driver")
        except Exception as error:  # whatever a broken build raises
            found, ok = f"{found}, but it cannot be imported: {error}", False
            remedy = PYCUDA if driver else "it needs the NVIDIA driver, see above"
    return finding("PyCUDA", ok, found, remedy, needed=False)


def _cublas(device: bool) -> dict[str, Any]:
    """The cuBLAS that works with this driver; without a device, where none can, the first that opens."""
    from gpu import blas

    try:
        library = _working() if device else next(blas.libraries())
    except OSError as error:
        return failure("cuBLAS", error, "name libcublas.so in HYBRID_CUBLAS, or leave that unset")
    except LookupError as error:
        return finding("cuBLAS", False, str(error), OTHER_CUBLAS, needed=False)
    try:
        version = ".".join(str(_ask_property(library, which)) for which in range(3)) + ", "
    except (AttributeError, OSError):
        version = ""
    return finding("cuBLAS", True, f"{version}{library._name}", needed=False)


def _working() -> Any:
    """The library that makes a handle in the first device's primary context."""
    from gpu import blas

    cuda, context = _cuda(), ctypes.c_void_p()
    if status := cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        raise LookupError(f"cuDevicePrimaryCtxRetain answers with error {status}")
    cuda.cuCtxPushCurrent_v2(context)
    try:
        library, handle = blas.create()
        library.cublasDestroy_v2(handle)
        return library
    finally:
        cuda.cuCtxPopCurrent_v2(ctypes.byref(context))  # the thread has the context that it had
        cuda.cuDevicePrimaryCtxRelease_v2(0)


def _ask_property(library: Any, which: int) -> int:
    place = ctypes.c_int()
    if status := library.cublasGetProperty(which, ctypes.byref(place)):
        raise OSError(f"cublasGetProperty answers with error {status}")
    return place.value
