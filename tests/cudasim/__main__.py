"""python -m tests.cudasim COMMAND ...: run a command, and the programs that it starts, under the simulated driver."""

import os
import sys
from pathlib import Path

from tests import cudasim
from tests.cudasim import cublas


def main() -> None:
    """Become the command, with the simulated driver loaded before everything else, and a cuBLAS."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m tests.cudasim COMMAND ...")
    os.environ["LD_PRELOAD"] = ":".join(filter(None, [str(cudasim.library()), os.environ.get("LD_PRELOAD")]))
    os.environ["CUDASIM"] = "1"
    os.environ["HYBRID_NVCC"], os.environ["HYBRID_CUBLAS"] = str(cudasim.NVCC), str(cublas.library())
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # python, hybrid: of here
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
