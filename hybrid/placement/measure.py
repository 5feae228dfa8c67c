"""What the measurements share: queues that wait, and the median of some steps on the feed's first batches."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from .. import backend as backends
from ..feeds import Batch
from ..feeds.fit import fitting
from ..processors import available

SKIPPED, MEASURED = 3, 7  # steps


def queues(device: Any, threads: int | None) -> tuple[Any, Any]:
    """A queue that copies and computes on the device, and one of the CPU with so many threads (None: all cores)."""

    host = backends.choose("cpu").device.inline("placement", threads or available())
    return device.inline("placement", 1), host


def median(step: Callable[[Batch], Any], feed: Any, several: bool = True) -> float:
    """Seconds of a step; several: whether it takes examples with several targets, ValueError where it meets them."""
    samples = []
    for tick in range(SKIPPED + MEASURED):
        batch = fitting(feed, tick % len(feed), several=several)
        start = time.perf_counter()
        step(batch)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples[SKIPPED:])


def told(seconds: dict[str, float], feed: Any) -> str:
    """What was measured, in words."""
    figures = ", ".join(f"{name} {1e3 * value:.2f} ms" for name, value in seconds.items())
    return f"measured, a batch of {feed.batch:,}: {figures}"
