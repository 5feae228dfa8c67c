"""What the system says of this machine's memory."""

import os
import sys


def memory() -> int | None:
    """The machine's memory in bytes; None where the system does not say (Windows)."""
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def peak_memory() -> int | None:
    """The most bytes of memory that this process has held at once; None where the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # macOS counts bytes, Linux kibibytes
