"""More than a billion parameters: a tree over ten million classes trained until its loss has fallen, beside dense softmaxes.

Targets follow Zipf's law, and a hidden vector is that of the topic of its target, with noise: 10 million classes of 64 topics.
So there is something to learn: before, a Huffman tree knows how often classes are met and nothing else. The loss is of examples
that are held out. A dense softmax of the same size takes a few steps, for its time and its memory, where that suffices. Each
is in a process of its own, whose peak of memory is its record's.
"""

import concurrent.futures
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.crossover_costs import Size, memory
from bench.measure import LEAST, Work, append, commit, environment, record, show
from bench.peers import peer

SIZE, QUICK = Size(10_000_000, 128, 1024), Size(20_000, 32, 64)
TOPICS, NOISE, RATE = 64, 0.3, 0.02
FALL = 0.75  # nats, by which the loss must fall
EVERY, MOST = 64, 6_400  # batches between two looks at it, and until training is given up
HELD = 4_096  # examples held out
FEW, STEPS = 256, 3  # examples of a batch of dense softmaxes, of which one takes seconds; and steps that are timed


def run(arguments) -> int:
    """The tree first, then the dense ones; each as soon as the process before it has given its memory back."""
    size = QUICK if arguments.quick else SIZE
    records = [_alone(train, size, arguments.threads)]
    print(_told(records[0]), flush=True)
    for who in ("full", *(["torch chunked"] if peer("torch") else [])):
        few = size._replace(batch=min(FEW, size.batch))
        needed, free = memory(who, "output", few), available()
        if free is not None and needed > free:
            records.append(impossible(who, few, needed, free))
            print(f"{who} is not run: it takes {needed / 1e9:.1f} GB, {free / 1e9:.1f} are free", flush=True)
        else:
            records.append(_alone(dense, who, few, arguments.threads))
    show([one for one in records if "value" in one])
    append(arguments.json, records)
    return 0


def _alone(call: Callable[..., dict], *arguments: Any) -> dict:
    """The result of a call in a new process, which ends with it."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as worker:
        return worker.submit(call, *arguments).result()


class Zipf:
    """Examples of classes with topics; `batch(n)` draws n of them: hidden vectors (n, D) float32 and targets (n,) int32."""

    def __init__(self, classes: int, width: int):
        self.rng = np.random.default_rng(0)
        self.counts = np.maximum(1e9 / np.arange(1, classes + 1), 1).astype(np.int64)
        self._chance = np.cumsum(self.counts / self.counts.sum())
        self._topics = self.rng.standard_normal((TOPICS, width), np.float32)

    def batch(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The next examples."""
        drawn = np.searchsorted(self._chance, self.rng.random(count))
        target = np.minimum(drawn, len(self.counts) - 1).astype(np.int32)
        noise = self.rng.standard_normal((count, self._topics.shape[1]), np.float32)
        return self._topics[target % TOPICS] + np.float32(NOISE) * noise, target


def train(size: Size, threads: int) -> dict:
    """The record of the tree; what it learned is in its `curve`: examples, seconds of learning, loss of those held out.

    Raises AssertionError where the loss has not fallen by FALL after MOST batches.
    """
    import numba

    from hybrid.readout import TreeReadout

    numba.set_num_threads(threads)
    data = Zipf(size.classes, size.width)
    readout = TreeReadout(data.counts, size.width, batch=max(size.batch, HELD), rate=RATE)
    held, grad = data.batch(HELD), np.empty((size.batch, size.width), np.float32)
    work = _work(size, "ours", "tree", EVERY * size.batch, threads)
    curve = [(0, 0.0, -float(readout.log_prob(*held).mean()))]
    while len(work.samples) < LEAST or curve[0][2] - curve[-1][2] < FALL:
        if len(work.samples) * EVERY >= MOST:
            raise AssertionError(f"the loss fell from {curve[0][2]} to {curve[-1][2]} nats only, expected {FALL} less")
        work.samples.append(sum(_seconds(readout.step, grad, *data.batch(size.batch)) for _ in range(EVERY)))
        examples = len(work.samples) * EVERY * size.batch
        curve.append((examples, sum(work.samples), -float(readout.log_prob(*held).mean())))
    work.more |= {"curve": curve, "fall": FALL, "parameters": (size.classes - 1) * size.width}
    return record(work) | _held()


def dense(who: str, size: Size, threads: int) -> dict:
    """The record of a full softmax, ours or PyTorch's in chunks: its first step is checked, the next ones are timed."""
    import numba

    from bench import softmax, softmax_torch

    numba.set_num_threads(threads)
    task = softmax.Task(size.classes, size.batch, threads, size.width)
    rival = task.full() if who == "full" else task.torch(softmax_torch.chunked(softmax_torch.CHUNKS[0]))
    once = task.work("billion.step", "", {}, rival)
    once.run()
    once.check()
    name = "ours" if who == "full" else f"torch {peer('torch').__version__} linear_cross_entropy"
    work = _work(size, name, who, size.batch, threads)
    work.samples = [_seconds(once.run) for _ in range(STEPS)]
    work.more["parameters"] = size.classes * size.width
    return record(work) | _held()


def _work(size: Size, who: str, contender: str, amount: float, threads: int) -> Work:
    """A record in the making; ours and PyTorch's have the sizes in common."""
    params: dict[str, Any] = {"classes": size.classes, "width": size.width}
    if who == "ours":
        params["readout"] = contender
    more = {"contender": contender, "batch": size.batch}

    def nothing() -> None: ...

    return Work("billion.step", who, params, amount, "examples/s", nothing, nothing, threads=threads, more=more)


def _seconds(call: Callable[..., Any], *arguments: Any) -> float:
    begun = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - begun


def _held() -> dict[str, Any]:
    """The peak of this process's memory."""
    from hybrid.machine import peak_memory

    return {"memory": peak_memory()}


def available() -> float | None:
    """Bytes that a process can have without others giving theirs back; None where the system does not say."""
    try:
        with open("/proc/meminfo") as file:
            return next(1024.0 * int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    except OSError:
        return None


def impossible(who: str, size: Size, needed: float, free: float) -> dict:
    """The record of one that memory does not suffice for, by the bytes."""
    params = {"classes": size.classes, "width": size.width, "batch": size.batch}
    quality = {"bytes needed": [needed], "bytes free": [free]}
    where = {"threads": 0, "device": "cpu", "commit": commit(), "env": environment()}
    return {"bench": "billion", "work": "billion.impossible", "who": who, "params": params, "quality": quality} | where


def _told(found: dict) -> str:
    examples, seconds, loss = found["curve"][-1]
    return (
        f"{found['parameters'] / 1e9:.3g} G parameters: loss {found['curve'][0][2]:.3f} to {loss:.3f} nats after {examples:,} "
        f"examples in {seconds:.1f} s, {(found['memory'] or 0) / 1e9:.2f} GB"
    )
