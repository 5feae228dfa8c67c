"""What the system says of this machine's memory and processor."""

import os
import platform
import sys

LEAST = (
    2 << 30
)  # bytes of address space that NumPy, SciPy, Numba's compiler and the stacks of some threads take, and room


def memory() -> int | None:
    """The machine's memory in bytes; None where the system does not say (Windows)."""
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def refuse_little_memory() -> None:
    """MemoryError where this process may have less address space (ulimit -v) than libraries need before any model: below that
    they end the process, or try for ever, and no error comes back.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most not in (resource.RLIM_INFINITY, -1) and most < LEAST:
        raise MemoryError(
            f"ulimit -v: found {most >> 10} KiB, expected at least {LEAST >> 10}; ulimit -v unlimited lifts it"
        )


def peak_memory() -> int | None:
    """The most bytes of memory that this process has held at once; None where the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # macOS counts bytes, Linux kibibytes


def processor() -> str:
    """The processor's name."""
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
