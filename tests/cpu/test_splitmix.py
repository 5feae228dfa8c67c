"""SplitMix64 against its published numbers."""

import numpy as np

from cpu.vectors.splitmix import GOLDEN, mix


def test_the_first_numbers_of_the_reference_implementation():
    """Of splitmix64.c by Vigna, from state 1234567: each number is the mix of a counter that rises by GOLDEN."""
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    with np.errstate(over="ignore"):
        counters = [np.uint64(1234567) + np.uint64(step) * GOLDEN for step in range(1, 6)]
    assert [int(mix(counter)) for counter in counters] == expected
