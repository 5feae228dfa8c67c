"""Whether a readout should be on the CPU or beside the trunk: its stages and the copies for them are measured."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import backend as backends
from ..engine.part import Copies, divided
from ..engine.schedule import Stage
from ..engine.slot import Slot
from ..feeds import Batch, most_targets
from ..readout import Readout
from ..readout.base.trials import Trials
from .measure import median, queues, told

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


def choose(
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
    return median(partial(_step, slot, queued), feed, getattr(readout, "several", False))


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
