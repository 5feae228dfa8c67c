"""The serial run of an engine: what hybrid/engine/schedule.py promises, without queues, events, slots that go round or threads.

Batch t + delay is begun, then batch t is finished: each stage for one micro-batch after another, all on this thread.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from hybrid.engine import Engine
from hybrid.engine.scale import Scale
from hybrid.engine.schedule import Stage, part


def run(engine: Engine, feed: Any) -> dict[int, bytes]:
    """Train an engine that has not begun; the loss of each tick, as bytes of a float64."""
    plan, queues = engine.route.plan(), {"sparse": engine.sparse.device.inline("serial", 1)}
    queues |= dict.fromkeys(("dense", "copy in", "copy out"), engine.dense.device.inline("serial", 1))
    begun: dict[int, list[Any]] = {}
    losses = {}
    for tick in range(len(feed) + engine.delay):
        if tick < len(feed):
            begun[tick] = _filled(engine, feed, tick)
            _do(plan.begin, begun[tick], queues)
        if tick >= engine.delay:
            slots = begun.pop(tick - engine.delay)
            _do(plan.finish, slots, queues)
            _do([stage._replace(once=True) for stage in plan.update], slots, queues)
            losses[slots[0].tick] = _loss(slots).tobytes()
    return losses


def _filled(engine: Engine, feed: Any, tick: int) -> list[Any]:
    """New slots with the micro-batches of a tick."""
    batch, count = feed[tick], engine.micro_batches
    sizes = part(feed.batch, count), feed.most_ids, Scale(engine.schedule, len(feed), engine.warmup)
    slots = [engine.route.slot(*sizes, max(len(batch.target), feed.batch)) for _ in range(count)]
    each = part(batch.examples, count)
    for micro, slot in enumerate(slots):
        slot.fill(tick, micro, batch, *(min(at * each, batch.examples) for at in (micro, micro + 1)))
    return slots


def _do(stages: Iterable[Stage], slots: list[Any], queues: dict[str, Any]) -> None:
    full = [slot for slot in slots if slot.count]
    for stage in stages if full else ():
        for slot in full[-1:] if stage.once else full:
            queues[stage.queue].run(stage.work, slot).wait()


def _loss(slots: list[Any]) -> np.float64:
    total = sum(slot.count for slot in slots)
    return np.float64(sum(slot.loss * slot.count for slot in slots) / slots[0].examples if total else np.nan)
