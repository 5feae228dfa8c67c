"""How much memory a run takes for a moment, once it is warm."""

import tracemalloc

WARM, MEASURED = 4, 6  # ticks


def rise(ticks) -> int:
    """Bytes of Python and NumPy by which memory rises, even for a moment, over some ticks of a run."""
    for _ in range(WARM):
        next(ticks)
    tracemalloc.start()
    try:
        next(ticks)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(MEASURED):
            next(ticks)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
