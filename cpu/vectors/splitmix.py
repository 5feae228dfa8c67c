"""A 64-bit hash for draws that are a function of their position: the same at any number of threads."""

import numpy as np

from cpu.runtime.compiled import launched

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # increment of the counter


@launched()
def mix(x):
    """Returns SplitMix64's output function (Steele, Lea and Flood 2014) of a uint64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
