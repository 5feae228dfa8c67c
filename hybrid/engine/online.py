"""Online learning, as in word2vec: without a trunk, rows and readout move with each example and not with each batch."""

import functools
from typing import TYPE_CHECKING, Any

from .schedule import Plan, Stage
from .slot import Slot

if TYPE_CHECKING:
    from .engine import Engine

UPDATES = ("batch", "online")


def plan(embedding: Any, readout: Any) -> Plan:
    """One stage, in which examples are read, learned from and written back one after another."""
    return Plan([], [Stage("learn", "sparse", functools.partial(_learn, embedding, readout))], [])


def check_online(engine: "Engine") -> None:
    """ValueError, saying why, where parts of an engine cannot learn online."""
    embedding, found = engine.embedding, "update: found 'online'"
    if engine.trunk is not None:
        raise ValueError(f"{found} with a trunk, expected 'batch': a trunk learns from batches")
    if not getattr(engine.readout, "online", False):
        raise ValueError(
            f"{found} with this {getattr(engine.readout, 'kind', 'kind of')} readout, expected a tree that is not split, or a "
            "sampled one with the loss 'logistic'; or 'batch'"
        )
    if not getattr(embedding, "rows", 0) or embedding.per_example != 1 or (embedding.mean and not embedding.undivided):
        raise ValueError(
            f"{found}, expected an embedding with one id an example, or with mean=True and undivided=True, as word2vec has; or "
            "'batch'"
        )
    for name, value in (("delay", engine.delay), ("tied", engine.tied)):
        if value:
            raise ValueError(
                f"{name}: found {value} with update='online', which reads rows as they stand; leave it out"
            )


def _learn(embedding: Any, readout: Any, slot: Slot) -> None:
    readout.rate_scale = slot.scale
    inputs = embedding.inputs(slot.bag_at, slot.ids, slot.scale)
    slot.loss = readout.step_online(slot.grad, slot.hidden, inputs, slot.target, slot.weight)
