"""Tests for a usable GPU: the driver, PyCUDA, a recent enough device, a compiler and cuBLAS."""

import ctypes
import re

from gpu.runtime import CUDA

ASK = "nvidia-smi says more; reboot after an update of the driver, start a container with its GPUs (--gpus all)"
BUILT_13 = "12.8"  # first with all functions that PyCUDA calls when built with CUDA 13: cuEventElapsedTime_v2


def unavailable() -> str | None:
    """Returns the first reason why no GPU can be used, with the remedy; None if one can."""
    try:
        cuda = ctypes.CDLL(CUDA)
    except OSError as error:
        return f"there is no NVIDIA driver ({error})"
    try:
        import pycuda.driver as driver
    except ImportError as error:
        return _no_pycuda(error, cuda)
    from gpu.device import too_old  # imported lazily: unnecessary without a driver

    try:
        driver.init()
        if not driver.Device.count():
            return f"the NVIDIA driver sees no device; {ASK}"
        first, version = driver.Device(0), driver.get_driver_version()
        old, capability = too_old(first), first.compute_capability()
    except driver.Error as error:
        return f"the NVIDIA driver does not start ({error}); {ASK}"
    return old or _no_compiler(version // 1000) or _no_code(capability, version) or _no_blas()


def devices() -> int:
    """Returns the number of devices that the driver reports, if `unavailable` returns None."""
    import pycuda.driver as driver

    return driver.Device.count()


def _no_pycuda(error: ImportError, cuda: ctypes.CDLL) -> str:
    """Returns why PyCUDA cannot be imported: it is missing, or calls CUDA functions that this driver lacks."""
    missing = re.search(r"undefined symbol: (cu[A-Z]\w*)", str(error))
    if not missing:
        return f"PyCUDA cannot be imported ({error}); install it: pip install 'hybrid-engine[gpu]', then python -m gpu.install"
    version = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    found = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return (
        f"PyCUDA was built for a newer CUDA than the driver's {found}, which lacks {missing[1]}; update the driver (built with "
        f"CUDA 13, PyCUDA needs one of CUDA {BUILT_13} or newer), or build PyCUDA with a toolkit of CUDA {found} or older: "
        f"CUDA_HOME=/usr/local/cuda-{found} python -m gpu.install"
    )


def _no_compiler(supported: int) -> str | None:
    """Returns why kernels cannot be compiled for a driver that supports this major version of CUDA."""
    from gpu.runtime.compiler import OLDER, compiler

    try:
        made_by = compiler()
    except OSError as error:
        return str(error)
    if made_by.version[0] > supported:
        return f"the driver supports CUDA {supported}, older than {made_by.name}; update the driver, or {OLDER}"
    return None


def _no_code(capability: tuple[int, int], version: int) -> str | None:
    """Returns why the compiler's code cannot run on this capability with a driver of this CUDA version, as 13000."""
    from gpu.runtime import kernels
    from gpu.runtime.compiler import compiler

    try:
        target, made_by = kernels.target(capability), compiler()
    except OSError as error:
        return str(error)
    if target.startswith("compute") and made_by.version > (version // 1000, version % 1000 // 10):
        card, found = f"sm_{capability[0]}{capability[1]}", f"{version // 1000}.{version % 1000 // 10}"
        return (
            f"the device, {card}, is newer than {made_by.name}, whose {target} the driver, of CUDA {found}, does not "
            "translate; update the driver, or name a newer nvcc in HYBRID_NVCC"
        )
    return None


def _no_blas() -> str | None:
    from gpu.runtime import blas

    try:
        next(blas.libraries())
    except OSError as error:
        return str(error)
    return None
