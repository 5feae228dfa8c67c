"""Selection of the CPU or the trunk's GPU for rows and readout, by a short measurement at the user's sizes.

On the CPU a step takes all threads, and vectors and gradients are copied. On the trunk's GPU a step takes device time, and
ids, targets and losses are copied. Concurrent work is not measured. This detects large differences, such as a tree on the CPU
and on the GPU. It does not rank near equals by a full step.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from . import backend as backends
from .engine.embedding import Embedding
from .feeds import Batch, most_targets
from .feeds.fit import fitting
from .machine import available
from .readout import Readout, Trial
from .schedule.schedule import Buffers, Copies, Stage
from .schedule.slot import Slot

SKIPPED, MEASURED = 3, 7  # steps
NO_IDS = np.empty(0, np.int32)


class Choice(NamedTuple):
    """The device of a readout, the options selected for it, and a line with the reason."""

    device: str
    options: dict[str, Any]
    line: str


class _Way(NamedTuple):
    """A candidate: a device, and options that differ from the user's."""

    device: str
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return " ".join([self.device, *(f"{name} {value}" for name, value in self.options)])


def choose_readout(
    make: Callable[[Any, Mapping[str, Any]], Readout],
    feed: Any,
    device: str | None,
    threads: int | None = None,
    *,
    trials: tuple[Trial, ...] = (),
) -> Choice:
    """Selects the fastest device and options for the readout.

    make    (a backend, options that differ from the user's) -> an untrained readout; ValueError, MemoryError: not there
    feed    its first batches are the workload
    device  of the trunk: the readout goes there or to the CPU
    trials  options to try there in addition to the user's
    """
    there = backends.choose(device)
    if there.device.host_memory:
        return Choice("cpu", {}, "cpu, where the trunk is")
    seconds, refusals = _tried(make, there, feed, threads, trials)
    if not seconds:
        return Choice("cpu", {}, f"cpu, because {next(iter(refusals.values()))}")
    seconds = {_Way("cpu"): _seconds(make(backends.choose("cpu"), {}), there.device, feed, threads)} | seconds
    best = min(seconds, key=lambda way: seconds[way])
    figures = _figures({str(way): value for way, value in seconds.items()}, feed)
    notes = [f"{best} ({figures})", *(f"{way} left out: {refusal}" for way, refusal in refusals.items())]
    notes += [trial.remark for trial in trials if trial.options == dict(best.options)]
    return Choice(best.device, dict(best.options), "; ".join(notes))


def choose_rows(
    make: Callable[[Any], Embedding], feed: Any, device: str | None, threads: int | None = None
) -> tuple[str, str]:
    """Returns the device for the rows and a line with the reason.

    make    a backend -> an untrained embedding; MemoryError if it does not fit
    feed    its first batches are gathered and scattered
    device  of the trunk: the rows go there or to the CPU
    """
    there = backends.choose(device)
    if there.device.host_memory:
        return "cpu", "cpu, where the trunk is"
    try:
        beside = _seconds_of_rows(make(there), there.device, feed, threads)
    except MemoryError as refusal:
        return "cpu", f"cpu, because the rows do not fit: {refusal}"
    on_the_host = _seconds_of_rows(make(backends.choose("cpu")), there.device, feed, threads)
    seconds = {"cpu": on_the_host, there.name: beside}
    best = min(seconds, key=lambda name: seconds[name])
    return best, f"{best} ({_figures(seconds, feed)})"


def _tried(
    make: Callable[[Any, Mapping[str, Any]], Readout],
    there: Any,
    feed: Any,
    threads: int | None,
    trials: tuple[Trial, ...],
) -> tuple[dict[_Way, float], dict[_Way, str]]:
    """Returns seconds per step of each candidate, and the reasons why others were rejected."""
    seconds, refusals = {}, {}
    for options in ({}, *(trial.options for trial in trials)):
        way = _Way(there.name, tuple(options.items()))
        try:
            seconds[way] = _seconds(make(there, options), there.device, feed, threads)
        except (ValueError, MemoryError) as refusal:
            refusals[way] = str(refusal)
    return seconds, refusals


def _figures(seconds: dict[str, float], feed: Any) -> str:
    figures = ", ".join(f"{name} {1e3 * value:.2f} ms" for name, value in seconds.items())
    return f"measured, a batch of {feed.batch:,}: {figures}"


def _seconds(readout: Readout, device: Any, feed: Any, threads: int | None) -> float:
    """Measures the readout's stages of a step, from hidden vectors on the device to their gradient there."""
    needs, several = readout.buffers(), getattr(readout, "multi_target", False)
    copy = Copies(device, needs.crossing)
    widths = dict.fromkeys(("hidden", "grad"), readout.width) | needs.widths
    slot = _slot(needs._replace(widths=widths), "hidden", device, feed)

    def batch(tick: int) -> Batch:
        return fitting(feed, tick, several=several)._replace(ids=NO_IDS, bag_at=None, values=None, x=None)

    return _median([*copy("hidden out"), *readout.finish(copy)], slot, batch, device, feed, threads)


def _seconds_of_rows(embedding: Embedding, device: Any, feed: Any, threads: int | None) -> float:
    """Measures gather and scatter with copies, to the trunk's inputs on the device and from the gradient there."""
    needs = embedding.buffers()
    copy = Copies(device, needs.crossing)
    stages = [*embedding.begin(copy), *copy("x_grad out"), *embedding.last(copy, ())]
    slot = _slot(needs, "x_grad", device, feed, bags=embedding.bags is not None)
    return _median(stages, slot, lambda tick: fitting(feed, tick), device, feed, threads)


def _slot(needs: Buffers, name: str, device: Any, feed: Any, bags: bool = False) -> Slot:
    """Returns buffers for the largest batch, with small random numbers in NAME_dev in place of the trunk's output."""
    targets, crossing = max(most_targets(feed), feed.batch), needs.crossing
    slot = Slot(feed.batch, feed.most_ids, needs.widths, device, bags=bags, crossing=crossing, targets=targets)
    slot.fill(0, 0, Batch(NO_IDS, None, np.zeros(feed.batch, np.int32)), 0, feed.batch)
    drawn = np.random.default_rng(0).standard_normal((feed.batch, needs.widths[name]), np.float32) * np.float32(0.1)
    device.write(getattr(slot, f"{name}_dev"), drawn)
    slot.take()
    slot.release()
    return slot


def _median(stages: list[Stage], slot: Slot, batch: Any, device: Any, feed: Any, threads: int | None) -> float:
    """Returns median seconds of sequential stages on the feed's first batches; CPU stages use `threads` (None: all cores)."""
    here = backends.choose("cpu").device.inline("placement", threads or available())
    there = device.inline("placement", 1)
    samples = []
    for tick in range(SKIPPED + MEASURED):
        examples = batch(tick % len(feed))
        start = time.perf_counter()
        slot.fill(0, 0, examples, 0, examples.examples)
        slot.take()
        for stage in stages:
            (here if stage.queue == "sparse" else there).run(stage.work, slot)
        slot.release()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples[SKIPPED:])
