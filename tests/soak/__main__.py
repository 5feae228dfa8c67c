"""python -m tests.soak TICKS: seed after seed, until so many ticks are computed. See tests/soak/__init__.py.

A seed that fails is told with the command that repeats it; the others go on, and the exit code is 1 at the end.
"""

import argparse
import os
import sys
import traceback

os.environ.setdefault(
    "NUMBA_NUM_THREADS", "4"
)  # before Numba is imported: ways have up to 4 threads, whatever the machine

from tests.soak import TICKS
from tests.soak.replay import replay


def main() -> int:
    """Exit code 1 where a seed has failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("ticks", type=int, help="of all seeds and ways together")
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--each", type=int, default=TICKS, help="ticks of each way of a seed")
    given = parser.parse_args()
    seed, done, failed = given.first, 0, []
    while done < given.ticks:
        try:
            done += replay(seed, given.each)
        except Exception:
            traceback.print_exc()
            failed.append(seed)
            print(f"seed {seed} fails; repeat it: python -m tests.replay {seed} --ticks {given.each}", flush=True)
            done += given.each
        seed += 1
        if seed % 10 == 0:
            print(f"{seed - given.first} seeds, {done} ticks, {len(failed)} failed", flush=True)
    print(f"{seed - given.first} seeds from {given.first}, {done} ticks, {len(failed)} failed{failed or ''}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
