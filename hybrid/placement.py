"""Whether rows and readout should be on the CPU or beside the trunk on its GPU, by a short measurement on the user's sizes.

On the CPU a step takes all threads, and vectors and gradients are copied. On the trunk's GPU a step takes time of the device,
and ids, targets and losses are copied. What else runs at the same time is not measured. So this finds large differences, as
between a tree on the CPU and on the GPU, but not which of two equals wins in a whole tick.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from . import backend as backends
from .engine.embedding import Embedding
from .feeds import Batch, most_targets
from .feeds.fit import fitting
from .machine import available
from .readout import Readout, Trials
from .schedule.schedule import Stage
from .schedule.slot import Slot
from .schedule.stage import Copies, divided

# What the measurements share: queues that wait, and the median of some steps on the feed's first batches.

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


# Whether a readout should be on the CPU or beside the trunk: its stages and the copies for them are measured.

NO_IDS = np.empty(0, np.int32)
NO_TRIALS = Trials()


class Choice(NamedTuple):
    """The device of a readout, the options that are taken there, and the line that says why."""

    device: str
    options: dict[str, Any]
    line: str


class _Way(NamedTuple):
    """A place that is tried: a device, and options other than the user's."""

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
    trials: Trials = NO_TRIALS,
    rival: Callable[[Any], Readout] | None = None,
) -> Choice:
    """The fastest place.

    make    (a backend, options other than the user's) -> the readout, untrained; ValueError where it does not compute there,
            MemoryError where there is no room for it
    feed    whose first batches are learned
    device  of the trunk: the readout goes there or to the CPU
    trials  the options to try there beside the user's own
    rival   a backend -> the readout that `trials` names as rival; its time is told, but it is never taken
    """
    there = backends.choose(device)
    if there.device.host_memory:
        return Choice("cpu", {}, "cpu, where the trunk is")
    seconds, refusals = _tried(make, there, feed, threads, trials)
    if not seconds:
        return Choice("cpu", {}, f"cpu, because {next(iter(refusals.values()))}")
    seconds = {_Way("cpu"): _seconds(make(backends.choose("cpu"), {}), there.device, feed, threads)} | seconds
    best = min(seconds, key=lambda way: seconds[way])
    figures = told({str(way): value for way, value in seconds.items()}, feed)
    notes = [f"{best} ({figures})", *(f"{way} left out: {refusal}" for way, refusal in refusals.items())]
    notes += [trials.note] if trials.note else []
    notes += [trial.remark for trial in trials.tried if trial.options == dict(best.options)]
    return Choice(best.device, dict(best.options), "; ".join(notes + _beside_it(trials.rival, rival, there, feed)))


def _tried(
    make: Callable[[Any, Mapping[str, Any]], Readout], there: Any, feed: Any, threads: int | None, trials: Trials
) -> tuple[dict[_Way, float], dict[_Way, str]]:
    """Seconds of a step in every way, and why others were refused."""
    seconds, refusals = {}, {}
    for options in ({}, *(trial.options for trial in trials.tried)):
        way = _Way(there.name, tuple(options.items()))
        try:
            seconds[way] = _seconds(make(there, options), there.device, feed, threads)
        except (ValueError, MemoryError) as refusal:
            refusals[way] = str(refusal)
    return seconds, refusals


def _beside_it(kind: str, rival: Callable[[Any], Readout] | None, there: Any, feed: Any) -> list[str]:
    """What the rival takes on the device; nothing where there is none or it does not fit."""
    if rival is None:
        return []
    try:
        seconds = _seconds(rival(there), there.device, feed, None)
    except MemoryError:
        return []
    name = {"full": "a full softmax"}.get(kind, f"a {kind} readout")
    return [f"{name} takes {1e3 * seconds:.2f} ms on {there.name}, but is another model: --readout {kind}"]


def _seconds(readout: Readout, device: Any, feed: Any, threads: int | None) -> float:
    """Seconds of the readout's stages in a tick, from the hidden vectors on the device to their gradient there."""
    there, here = queues(device, threads)
    copy = Copies(device, readout.buffers().crossing)
    stages = [*copy("hidden out"), *readout.finish(copy)]
    slot = _slot(readout, device, feed)
    queued = [(here if stage.queue == "sparse" else there, stage) for stage in stages]
    return median(partial(_step, slot, queued), feed, getattr(readout, "multi_target", False))


def _step(slot: Slot, stages: list[tuple[Any, Stage]], batch: Any) -> None:
    bare = Batch(NO_IDS, None, batch.target, weight=batch.weight, target_at=batch.target_at)
    slot.fill(0, 0, bare, 0, batch.examples)
    slot.take()
    for queue, stage in stages:
        queue.run(stage.work, slot)
    slot.release()


def _slot(readout: Readout, device: Any, feed: Any) -> Slot:
    """The readout's buffers for the largest batch, with hidden vectors on the device."""
    needs = readout.buffers()
    arrays = divided(dict.fromkeys(("hidden", "grad"), readout.width) | needs.widths, needs.crossing)
    targets = max(most_targets(feed), feed.batch)
    slot = Slot(feed.batch, 0, arrays.crossing, False, device, arrays.kept, lists=arrays.lists, targets=targets)
    slot.fill(0, 0, Batch(NO_IDS, None, np.zeros(feed.batch, np.int32)), 0, feed.batch)
    drawn = np.random.default_rng(0).standard_normal((feed.batch, readout.width), np.float32) * np.float32(0.1)
    device.write(slot.hidden_dev, drawn)
    slot.take()
    slot.release()
    return slot


# Whether rows should be on the CPU or beside the trunk: a gather, a scatter and the copies for them are measured.


def choose_rows(
    make: Callable[[Any], Embedding], feed: Any, device: str | None, threads: int | None = None
) -> tuple[str, str]:
    """The device for the rows, and the line that says why.

    make    a backend -> the embedding, untrained; MemoryError where there is no room for it
    feed    whose first batches are gathered and scattered
    device  of the trunk: the rows go there or to the CPU
    """
    there = backends.choose(device)
    if there.device.host_memory:
        return "cpu", "cpu, where the trunk is"
    try:
        beside = _beside(make(there), there.device, feed)
    except MemoryError as refusal:
        return "cpu", f"cpu, because the rows do not fit: {refusal}"
    on_the_host = _on_the_host(make(backends.choose("cpu")), there.device, feed, threads)
    seconds = {"cpu": on_the_host, there.name: beside}
    best = min(seconds, key=lambda name: seconds[name])
    return best, f"{best} ({told(seconds, feed)})"


def _on_the_host(embedding: Embedding, device: Any, feed: Any, threads: int | None) -> float:
    """Seconds of gather and scatter on the CPU, and of copying the trunk's inputs in and their gradients out."""
    carry, work = queues(device, threads)
    x, x_grad = (device.host_empty((feed.batch, embedding.outputs), np.float32) for _ in range(2))
    x_dev, x_grad_dev = device.mirror(x), device.from_host(np.zeros_like(x_grad))

    def step(batch: Any) -> None:
        rows = slice(batch.examples)
        work.run(embedding.forward, x[rows], batch.bag_at, batch.ids, batch.values)
        carry.copy(x_dev[rows], x[rows])
        carry.copy(x_grad[rows], x_grad_dev[rows])
        work.run(embedding.backward, batch.bag_at, batch.ids, x_grad[rows], 1.0, batch.values)

    return median(step, feed)


def _beside(embedding: Embedding, device: Any, feed: Any) -> float:
    """Seconds of gather and scatter on the device, with their launches and the copy of ids."""
    carry, _ = queues(device, 1)
    ids, bag_at = device.host_empty(feed.most_ids, np.int32), device.host_empty(feed.batch + 1, np.int64)
    values = device.host_empty(feed.most_ids, np.float32)
    ids_dev, bag_at_dev, values_dev = device.mirror(ids), device.mirror(bag_at), device.mirror(values)
    x = device.empty((feed.batch, embedding.outputs), np.float32)
    x_grad = device.from_host(np.zeros(x.shape, np.float32))

    def send(there: Any, host: np.ndarray, array: np.ndarray | None) -> Any:
        if array is None:
            return None
        host[: len(array)] = array
        device.copy(there[: len(array)], host[: len(array)])
        return there[: len(array)]

    def both_ways(batch: Any) -> None:
        rows = slice(batch.examples)
        bags, valued = send(bag_at_dev, bag_at, batch.bag_at), send(values_dev, values, batch.values)
        given = send(ids_dev, ids, batch.ids)
        embedding.forward(x[rows], bags, given, valued)
        embedding.backward(bags, given, x_grad[rows], 1.0, valued)

    return median(lambda batch: carry.run(both_ways, batch), feed)
