"""Which tests are left to `make test-all`: what is apart from the package, and what tests/later.txt names.

`make test` answers in minutes. So a function with a case that takes half a second or more is in tests/later.txt, unless it is
the one that finds mistakes of a kind.
"""

import functools
from pathlib import Path

LATER = Path(__file__).with_name("later.txt")
APART = ("bench", "crash", "examples", "fuzz", "hosts", "mutants", "soak")  # folders of tests


@functools.cache
def named() -> frozenset[str]:
    """The functions that tests/later.txt names: tests/FILE.py::FUNCTION."""
    return frozenset(LATER.read_text().split())


def is_later(node: str) -> bool:
    """Whether a test, by its node id, is left to `make test-all`."""
    return node.split("/")[1] in APART or node.partition("[")[0] in named()
