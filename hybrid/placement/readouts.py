"""Whether a readout should be on the CPU, beside the trunk, or, a tree, cut between them: its own step and what crosses."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import backend as backends
from .measure import median, queues, told

SPLITS = (15, 255, 1023)  # nodes of a tree's top: its first 4, 8 and 10 levels where it is balanced

# The most that rate times the examples of a micro-batch may be for a top that learns by the batch. On Python's documentation
# (three epochs, rate 0.025) the perplexity of a split tree is 1.02 times the whole tree's at 6.4, 1.04 at 12.8, 5 at 25.6.
SAFE = 10.0


class Choice(NamedTuple):
    """The device of a readout, how many nodes of a tree are split off to it, and the line that says why."""

    device: str
    split: int
    line: str


def splits_of(classes: int, move: float) -> tuple[tuple[int, ...], str]:
    """The splits to try of a tree, and where there are none, why.

    move  the rate times the examples of a micro-batch, for which the nodes of a top move at once
    """
    if move > SAFE:
        return (), (
            f"no split tree was tried: rate times examples of a micro-batch is {move:.3g}, and above {SAFE:g} a top that "
            "learns by the batch may diverge; a smaller --batch or --rate, or more --micro-batches, helps"
        )
    return tuple(split for split in SPLITS if split < classes - 1), ""


def choose(
    make: Callable[[Any, int], Any],
    feed,
    device: str | None,
    threads: int | None = None,
    *,
    splits: tuple[int, ...] = (),
    full: Callable[[Any], Any] | None = None,
    note: str = "",
) -> Choice:
    """The fastest place.

    make    (a backend, a split) -> the readout, untrained; ValueError where it does not compute there, MemoryError where
            there is no room for it
    feed    whose first batches are learned
    device  of the trunk: the readout goes there or to the CPU
    splits  the split trees to try; none for a readout that is no tree
    full    a backend -> a full softmax, whose time is told beside the others, but which is never taken: it is another model
    note    what else the line should say of what was measured
    """
    there = backends.choose(device)
    if there.device.host_memory:
        return Choice("cpu", 0, "cpu, where the trunk is")
    seconds, refusals = _tried(make, there, feed, threads, (0, *splits))
    if not seconds:
        return Choice("cpu", 0, f"cpu, because {next(iter(refusals.values()))}")
    seconds = {("cpu", 0): _seconds(make(backends.choose("cpu"), 0), there.device, feed, threads)} | seconds
    best = min(seconds, key=lambda way: seconds[way])
    figures = told({_name(*way): value for way, value in seconds.items()}, feed)
    notes = [f"{_name(*best)} ({figures})", *(f"{name} left out: {refusal}" for name, refusal in refusals.items())]
    notes += [note] if note else []
    if best[1]:
        notes.append(f"the first {best[1]:,} nodes learn by the batch, --split 0 keeps the tree whole")
    return Choice(*best, "; ".join(notes + _beside_it(full, there, feed)))


def _tried(make, there, feed, threads, splits) -> tuple[dict[tuple[str, int], float], dict[str, str]]:
    """Seconds of a step with each of the splits, and why others were refused."""
    seconds, refusals = {}, {}
    for split in splits:
        try:
            seconds[there.name, split] = _seconds(make(there, split), there.device, feed, threads)
        except (ValueError, MemoryError) as refusal:
            refusals[_name(there.name, split)] = str(refusal)
    return seconds, refusals


def _beside_it(full, there, feed) -> list[str]:
    """What a full softmax takes on the device; nothing where it does not fit."""
    if full is None:
        return []
    try:
        seconds = _seconds(full(there), there.device, feed, None)
    except MemoryError:
        return []
    return [f"a full softmax takes {1e3 * seconds:.2f} ms on {there.name}, but is another model: --readout full"]


def _name(device: str, split: int) -> str:
    return f"{device} split {split}" if split else device


def _seconds(readout, device, feed, threads) -> float:
    """Seconds of a step where the readout is, and of what crosses for it."""
    if readout.backend.device.host_memory:
        step = _on_the_host
    else:
        step = _on_both if getattr(readout, "split", 0) else _beside
    return median(partial(step, readout, _Buffers(readout, device, feed, threads)), feed)


class _Buffers:
    """What a step reads and writes, on the host and on the device, and the queues that do it."""

    def __init__(self, readout, device, feed, threads):
        self.device, (self.there, self.here) = device, queues(device, threads)
        shape = feed.batch, readout.width
        self.hidden, self.grad = (device.host_empty(shape, np.float32) for _ in range(2))
        self.target, self.losses = device.host_empty(feed.batch, np.int32), device.host_empty(feed.batch, np.float32)
        drawn = np.random.default_rng(0).standard_normal(shape, np.float32) * np.float32(0.1)
        self.hidden_dev, self.grad_dev = device.from_host(drawn), device.mirror(drawn)
        self.target_dev, self.losses_dev = device.mirror(self.target), device.mirror(self.losses)

    def learn(self, work, rows: slice) -> None:
        """Do the work of a readout on the device, within the work of a queue; targets and losses cross."""
        self.device.copy(self.target_dev[rows], self.target[rows])
        work(self.grad_dev[rows], self.losses_dev[rows], self.hidden_dev[rows], self.target_dev[rows])
        self.device.copy(self.losses[rows], self.losses_dev[rows])


def _on_the_host(readout, at: _Buffers, batch) -> None:
    rows = slice(len(batch.target))
    at.there.copy(at.hidden[rows], at.hidden_dev[rows])
    at.here.run(readout.step, at.grad[rows], at.hidden[rows], batch.target)
    at.there.copy(at.grad_dev[rows], at.grad[rows])


def _beside(readout, at: _Buffers, batch) -> None:
    rows = slice(len(batch.target))
    at.target[rows] = batch.target
    at.there.run(at.learn, readout.learn, rows)


def _on_both(readout, at: _Buffers, batch) -> None:
    rows = slice(len(batch.target))
    at.target[rows] = batch.target
    at.there.copy(at.hidden[rows], at.hidden_dev[rows])
    at.here.run(readout.step_tail, at.grad[rows], at.hidden[rows], batch.target)
    at.there.copy(at.grad_dev[rows], at.grad[rows])
    at.there.run(at.learn, readout.learn_top, rows)
