"""How many owners share the rows of a readout on the CPU: an option of the kinds whose rows learn example by example.

A row moves as a serial loop over examples would move it, whoever has it. The gradient of a hidden vector is summed by owner, so
its last bits depend on how many there are, and never on the threads.
"""

from typing import Any

from ... import check
from ...settings import option, positive

OWNERS, MOST_OWNERS = 4, 64


def owners_option(kind: str) -> Any:
    """The field of a kind's options."""
    return option(
        OWNERS,
        f"{kind}: so many threads of the CPU share its rows at most, even, up to {MOST_OWNERS}; moves last bits of gradients",
        type=positive,
        metavar="N",
    )


def checked_owners(owners: Any) -> int:
    """The number itself; ValueError for one that is odd or out of range."""
    found = check.whole("owners", owners, 2, MOST_OWNERS)
    if found % 2:
        raise ValueError(f"owners: found {found}, expected an even number from 2 to {MOST_OWNERS}")
    return found
