"""Installs PyCUDA for the tests where there is none: python -m tests.cudasim.prepare, run by `make test`."""

import importlib.metadata
import os
import platform
import re
import shutil
import sys
import sysconfig

from gpu.install import VERSION, PreparationError, install

OLDEST = (2025, 1)  # that knows CUDA 13


def main() -> int:
    """Make PyCUDA importable in this environment; 0 done or not needed here, 1 failed."""
    if installed():
        return 0
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        print("PyCUDA is not installed: the GPU tests are skipped here, the simulated driver needs Linux on x86_64")
        return 0
    compiler = os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++"
    if not shutil.which(compiler.split()[0]):
        print("PyCUDA is not installed: the GPU tests are skipped here, the simulated driver needs a C++ compiler")
        return 0
    try:
        install()
    except (PreparationError, OSError) as error:
        print(
            f"PyCUDA {VERSION}, which the GPU tests need, was not installed: {error}\n"
            "  a PyCUDA of your own is taken as it is: .venv/bin/pip install pycuda, then make again",
            file=sys.stderr,
        )
        return 1
    return 0


def installed() -> bool:
    """Whether a PyCUDA is there, without its import, which needs a driver."""
    try:
        version = importlib.metadata.version("pycuda")
    except importlib.metadata.PackageNotFoundError:
        return False
    return tuple(map(int, re.findall(r"\d+", version)[:2])) >= OLDEST


if __name__ == "__main__":
    sys.exit(main())
