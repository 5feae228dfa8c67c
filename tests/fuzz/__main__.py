"""python -m tests.fuzz [--cases N] [--seed S] [--only SUBJECT] [--first CASE]: fuzz all readers of files and the command line.

A finding is a case that raises what is not documented, that names no file where it refuses one, takes over 10 seconds or a
GiB, or ends the process. The first of each cause is printed, with how many there are and the command that repeats it; the files
of all are kept.
"""

import argparse
import collections
import sys
import time
from pathlib import Path
from typing import Any

from .campaign import findings, number_of
from .subjects import SUBJECTS


def main() -> int:
    """The exit code: 1 where something was found."""
    parser = argparse.ArgumentParser(
        "python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000, help="of each subject, fewer of slow ones (default: 1000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--only", action="append", choices=sorted(SUBJECTS), help="this subject; may be repeated")
    parser.add_argument(
        "--keep", default="build/fuzz", help="where the files of findings are kept (default: build/fuzz)"
    )
    parser.add_argument("--workers", type=int, default=0, help="processes at once (default: one a core)")
    given = parser.parse_args()
    begun, subjects = time.monotonic(), given.only or list(SUBJECTS)
    found = findings(subjects, given.cases, given.seed, Path(given.keep), given.first, given.workers)
    alike = collections.Counter(_alike(one) for one in found)
    for one in found:
        if alike.get(_alike(one)):
            again = f"python -m tests.fuzz --only {one['subject']} --seed {one['seed']} --first {one['case']} --cases 1"
            print(f"{alike.pop(_alike(one)):6} {one['subject']}: {one['kind']}: {one['error']}\n       {again}")
    cases = sum(number_of(name, given.cases) for name in subjects)
    print(f"{cases:,} cases of {len(subjects)} subjects in {time.monotonic() - begun:.0f} s: {len(found)} findings")
    return int(bool(found))


def _alike(found: dict[str, Any]) -> tuple[str, ...]:
    """Equal for findings of one cause, as far as can be told: of these the first is printed."""
    kind, error = found["kind"], found["error"]
    return found["subject"], kind, error.partition(":")[0], error.rpartition(" at ")[2]


if __name__ == "__main__":
    sys.exit(main())
