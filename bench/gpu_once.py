"""A few steps of our kernels, checked, for tools that look at kernels: python -m bench.gpu_once [--quick] [WORK...].

So `compute-sanitizer` and `ncu` see our launches and little else: no rival, no repetition, no ceiling.
"""

import argparse
import os
import sys

from bench.gpu import contests
from bench.gpu_machine import Machine
from bench.simulated import simulate

WORKS = ("units", "tree", "pvm", "softmax", "rows")


def main(arguments: list[str] | None = None) -> int:
    """Take the first contest of each work, with --quick all of them; returns 0, an exception says what is wrong."""
    parser = argparse.ArgumentParser("python -m bench.gpu_once", description=__doc__)
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"of {', '.join(WORKS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    given = parser.parse_args(arguments)
    if unknown := sorted({*given.works} - {*WORKS}):
        parser.error(f"found {unknown[0]!r}, expected some of {', '.join(WORKS)}")
    simulated = bool(os.environ.get("CUDASIM"))
    if simulated:
        simulate()
    machine = Machine(simulated)
    machine.torch = None
    try:
        for work in given.works or WORKS:
            makes = list(contests(os.cpu_count() or 1)[work](machine, given.quick))
            for make in makes if given.quick else makes[:1]:
                make().once()
            print(work, flush=True)
    finally:
        machine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
