"""Where a readout should compute, by a short measurement of its own step on the user's sizes: on the CPU, or beside the trunk.

On the CPU a step takes all threads, and hidden vectors and gradients cross; on the trunk's GPU nothing but targets and losses
crosses, and the step takes the device's time. What else runs at the same time is left out, so this finds large
differences, as between a tree on the CPU and on the GPU, and not which of two equals wins in a whole tick.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import backend as backends

SKIPPED, MEASURED = 3, 7  # steps


def choose(make: Callable[[Any], Any], feed, device: str | None) -> tuple[str, str]:
    """The device for a readout, and the line that says why.

    make    a backend -> the readout, untrained; ValueError where it does not compute there
    feed    whose first batches are learned
    device  of the trunk: the readout goes there or to the CPU
    """
    there = backends.choose(device)
    if there.device.shares_host:
        return "cpu", "cpu, where the trunk is"
    cpu = backends.choose("cpu")
    try:
        seconds = {there.name: _beside(make(there), there, feed)}
    except ValueError as refusal:
        return "cpu", f"cpu, because {refusal}"
    seconds["cpu"] = _on_the_host(make(cpu), there, feed)
    best = min(seconds, key=lambda name: seconds[name])
    figures = ", ".join(f"{name} {1e3 * value:.2f} ms" for name, value in sorted(seconds.items()))
    return best, f"{best} (measured, a batch of {feed.batch:,}: {figures})"


def _on_the_host(readout, there, feed) -> float:
    """Seconds of a step on the CPU, and of carrying hidden vectors home and their gradients back."""
    queue, device = there.device.inline("placement", 1), there.device
    hidden, grad = (device.host_empty((feed.batch, readout.width), np.float32) for _ in range(2))
    hidden_dev = device.from_host(_hidden(feed, readout))

    def step(target):
        rows = len(target)
        queue.copy(hidden[:rows], hidden_dev[:rows])
        readout.step(grad[:rows], hidden[:rows], target)
        queue.copy(hidden_dev[:rows], hidden[:rows])

    return _median(step, feed)


def _beside(readout, there, feed) -> float:
    """Seconds of a step on the device, its launches included."""
    queue, device = there.device.inline("placement", 1), there.device
    hidden, losses = device.from_host(_hidden(feed, readout)), device.empty(feed.batch, np.float32)
    grad, targets = device.mirror(hidden), device.empty(feed.batch, np.int32)

    def step(target):
        rows = len(target)
        device.write(targets[:rows], target)
        queue.run(readout.learn, grad[:rows], losses[:rows], hidden[:rows], targets[:rows])

    return _median(step, feed)


def _hidden(feed, readout) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((feed.batch, readout.width), np.float32) * np.float32(0.1)


def _median(step: Callable[[np.ndarray], Any], feed) -> float:
    samples = []
    for tick in range(SKIPPED + MEASURED):
        target = feed[tick % len(feed)].target
        start = time.perf_counter()
        step(target)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples[SKIPPED:])
