"""All kernels as machine code, in a folder that travels: python -m bench.gpu.compile [sm_90].

With XDG_CACHE_HOME=build/cache, bench/first_ten.sh finds them on the device. A file's name has a hash of its source and of the
compiler's version, so under another compiler they are compiled there, on all cores at once.
"""

import concurrent.futures
import os
import sys
import time
from pathlib import Path

from gpu.runtime import kernels

HERE = Path(__file__).parent  # has the kernel of a rival


def compile_kernels(target: str) -> str:
    """Compile every kernel for "sm_90", several at a time; says what was done. OSError where one does not compile."""
    began, sources = time.perf_counter(), sorted([*kernels.HERE.glob("*.cu"), *HERE.glob("*.cu")])
    before = set(kernels.cache().iterdir())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        paths = list(pool.map(lambda source: kernels.cubin(source, target), sources))
    made = len({*paths} - before)
    return f"{len(paths)} files for {target} in {kernels.cache()}, {made} compiled, {time.perf_counter() - began:.0f} s"


def main(arguments: list[str] | None = None) -> int:
    """For the target that is named, else for the first device; the exit code."""
    named = sys.argv[1:] if arguments is None else arguments
    try:
        print(compile_kernels(named[0] if named else _target()), flush=True)
    except OSError as error:
        print(f"not compiled: {error}", file=sys.stderr)
        return 1
    return 0


def _target() -> str:
    import pycuda.driver as driver

    driver.init()
    return kernels.target(driver.Device(0).compute_capability())


if __name__ == "__main__":
    sys.exit(main())
