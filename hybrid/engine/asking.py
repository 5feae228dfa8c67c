"""Questions to an engine: examples in, hidden vectors or losses out. Nothing learns."""

import dataclasses
from typing import Any

import numpy as np

from .. import check
from ..feeds import Batch
from ..readout.base import several
from ..readout.base.stages import stepped
from .embedding import Embedding
from .inputs import Inputs
from .route import Route
from .slot import Slot


class Asking:
    """The begin stages of an engine, run one after another.

    route          of the engine
    dense, sparse  queues for the two kinds of stages; a run on them waits
    """

    def __init__(self, route: Route, dense: Any, sparse: Any):
        self._route, self._dense, self._sparse = dataclasses.replace(route, readout=None), dense, sparse
        self._stages = self._route.begin(self._route.copies)
        self.slot = self._route.slot

    def hidden(self, batch: Batch, tick: int, slot: Slot | None = None) -> np.ndarray:
        """The hidden vectors (B, D) of a batch, in a slot that is in use from here on (None: one of its own)."""
        slot = slot or self.slot(batch.examples, 0 if batch.ids is None else batch.ids.size, targets=len(batch.target))
        return self._begun(batch, tick, slot, 0, batch.examples)

    def teach(self, readout: Any, batch: Batch, tick: int, slot: Slot, size: int) -> None:
        """Let the readout learn from a batch, in parts of `size` examples, as it does in a tick; nothing else learns."""
        for first in range(0, batch.examples, size):
            hidden = self._begun(batch, tick, slot, first, min(first + size, batch.examples))
            slot.grad = np.empty_like(hidden)  # nobody reads it
            self._sparse.run(stepped, readout.step, slot, readout.batch).wait()
            slot.release()

    def _begun(self, batch: Batch, tick: int, slot: Slot, first: int, last: int) -> np.ndarray:
        slot.fill(tick, 0, batch, first, last)
        slot.take()
        for stage in self._stages if last > first else ():
            (self._sparse if stage.queue == "sparse" else self._dense).run(stage.work, slot)
        return slot.hidden

    def loss(self, readout: Any, batch: Batch, hidden: np.ndarray) -> float:
        """The sum of loss times weight over a batch, in nats."""
        losses: np.ndarray = self._sparse.run(_losses, readout, hidden, batch.target, batch.target_at).wait()
        if batch.weight is None:
            return float(losses.sum(dtype=np.float64))
        return float(np.dot(losses.astype(np.float64), batch.weight))


def _losses(readout: Any, hidden: np.ndarray, target: np.ndarray, target_at: np.ndarray | None) -> np.ndarray:
    """The loss of each example: what the readout itself says it is, or else the mean of -log p over its targets."""
    if hasattr(readout, "label_losses"):
        own: np.ndarray = readout.label_losses(hidden, target, target_at)
        return own
    if target_at is None:
        log_prob: np.ndarray = readout.log_prob(hidden, target)
        return -log_prob
    return -several.log_prob(readout, hidden, target, target_at)


def question(source: Embedding | Inputs, whole: int, ids: Any, bag_at: Any, values: Any, x: Any) -> Batch:
    """The batch that a caller asks about, its targets all 0; see Engine.hidden."""
    if source.dense:
        _check_none(f"an engine with Inputs({source.dense})", ids=ids, bag_at=bag_at, values=values)
        made, bags = check.array("x", x, (None, source.dense), np.float32), None
        check.finite("x", made)
        examples, taken = len(made), None
    else:
        _check_none("this engine, which has an embedding", x=x)
        made = None
        taken = check.indices("ids", ids, source.rows).reshape(-1)
        bags, values = _bags(source, taken, bag_at, values)
        examples = taken.size // source.per_example if bags is None else len(bags) - 1
    if examples % whole:
        raise ValueError(f"found {examples} examples, expected a multiple of {whole}, the sequence of the trunk")
    return Batch(taken, bags, np.zeros(examples, np.int32), None, values, made)


def _bags(source: Embedding | Inputs, ids: np.ndarray, bag_at: Any, values: Any) -> tuple[Any, Any]:
    """Where bags begin, and by what their rows are multiplied, checked."""
    for name, given, wanted in (("bag_at", bag_at, source.mean), ("values", values, source.weighted)):
        if (given is None) == wanted:
            raise ValueError(f"{name}: {'needed' if wanted else 'not used'} by this embedding")
    if ids.size % source.per_example:
        raise ValueError(f"ids: found {ids.size}, expected a multiple of {source.per_example}")
    if values is not None:
        check.finite("values", check.array("values", values, (ids.size,), np.float32))
    return None if bag_at is None else check.bags("bag_at", bag_at, ids.size), values


def _check_none(owner: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: found {type(value).__name__}, expected None: not used by {owner}")
