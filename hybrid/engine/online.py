"""Online learning, as in word2vec: without a trunk, rows and readout move with each example and not with each batch."""

from typing import TYPE_CHECKING, Any

from .. import check
from .route import Route
from .schedule import Plan, Stage
from .slot import Slot

if TYPE_CHECKING:
    from .engine import Engine

UPDATES = ("batch", "online")


def routed(engine: "Engine") -> Route:
    """The way of a batch through an engine; ValueError, saying why, where its parts cannot do what it is to do."""
    parts = engine.embedding, engine.trunk, engine.readout, engine.dense.device
    if check.choice("update", engine.update, UPDATES) == "batch":
        return Route(*parts)
    _check(engine)
    return OnlineRoute(*parts)


class OnlineRoute(Route):
    """Rows and readout in one stage, in which examples are read, learned from and written back one after another."""

    @property
    def online(self) -> bool:
        """True."""
        return True

    @property
    def several(self) -> bool:
        """False: examples have a target each."""
        return False

    def plan(self) -> Plan:
        """One stage."""
        return Plan([], [Stage("learn", "sparse", self._learn)], [])

    def _learn(self, slot: Slot) -> None:
        embedding: Any = self.embedding
        inputs = embedding.inputs(slot.bag_at, slot.ids, slot.scale)
        self.readout.rate_scale = slot.scale
        slot.loss = self.readout.step_online(slot.grad, slot.hidden, inputs, slot.target, slot.weight)


def _check(engine: "Engine") -> None:
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
