"""Tests with the simulated driver watched by sanitizers, of addresses and others: python -m tests.cudasim.sanitized TESTS.

The kernels are compiled with checks of their own (nvcc in this folder); here it is the driver that is watched, and all memory
that it shares with them. Python is not built with the sanitizers, so they are loaded before it.
"""

import os
import subprocess
import sys

SANITIZERS = ("address", "undefined")
TESTS = ("tests/cudasim", "tests/gpu")
# Python never frees all; the driver itself catches SIGSEGV where a kernel leaves its memory
OPTIONS = "detect_leaks=0:handle_segv=0:handle_sigbus=0:alloc_dealloc_mismatch=0:detect_stack_use_after_return=0"


def environment() -> dict[str, str]:
    """That of a Python whose simulated driver is built with the sanitizers."""
    libraries = [_library(name) for name in ("libasan.so", "libubsan.so")]
    named = {"CUDASIM": "1", "CUDASIM_SANITIZE": ",".join(SANITIZERS), "ASAN_OPTIONS": OPTIONS}
    return os.environ | named | {"LD_PRELOAD": " ".join(libraries)}


def _library(name: str) -> str:
    command = [os.environ.get("CXX", "g++"), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main(tests: list[str]) -> int:
    """Run the tests; pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(tests or TESTS)]
    return subprocess.run(command, env=environment()).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
