"""python -m tests.replay SEED [--ticks N]: repeat what a seed of `make soak` has done, and say it line by line."""

import argparse
import os

os.environ.setdefault(
    "NUMBA_NUM_THREADS", "4"
)  # before Numba is imported: ways have up to 4 threads, whatever the machine

from tests.soak import TICKS
from tests.soak.replay import replay


def main() -> None:
    """Repeat one seed."""
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--ticks", type=int, default=TICKS, help="of each way, as the soak said")
    given = parser.parse_args()
    print(f"{replay(given.seed, given.ticks, print)} ticks")


if __name__ == "__main__":
    main()
