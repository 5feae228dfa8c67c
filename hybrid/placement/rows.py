"""Whether rows should be on the CPU or beside the trunk: a gather, a scatter and the copies for them are measured."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import backend as backends
from ..engine.embedding import Embedding
from .measure import median, queues, told


def choose(
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
