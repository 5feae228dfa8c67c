"""An engine over several ranks, each of which computes the trunk for some of the micro-batches: the same numbers on any number.

Rows and readout are the same on all ranks: each lets its own learn from all micro-batches, in their order. Or they are in
shards, and all ranks learn together from each micro-batch, in the same order.
"""

import hashlib
from typing import TYPE_CHECKING, Any

from ..online import routed as alone
from ..route import Route
from .gradient import SharedGradient
from .route import RankedRoute, in_shards

if TYPE_CHECKING:
    from ..engine import Engine


def routed(engine: "Engine") -> Route:
    """The way of a batch through an engine; ValueError, saying why, where its parts cannot do what it is to do."""
    _check_shards(engine)
    if engine.ranks.size == 1:
        return alone(engine)
    _check(engine)
    _check_alike(engine)
    return RankedRoute(
        engine.embedding,
        engine.trunk,
        engine.readout,
        engine.dense.device,
        engine.ranks,
        SharedGradient(engine.ranks, engine.micro_batches),
    )


def _check(engine: "Engine") -> None:
    size = engine.ranks.size
    if engine.trunk is None:
        raise ValueError(
            f"ranks: found {size} and no trunk, expected one: ranks share the work of the trunk alone; leave ranks out"
        )
    reason = getattr(engine.trunk, "unranked", None)
    if reason or not hasattr(engine.trunk, "falling"):
        raise ValueError(
            f"ranks: found {size}, expected 1: {reason or 'the trunk has no gradient that ranks could add'}"
        )
    if engine.delay:
        raise ValueError(f"delay: found {engine.delay} with {size} ranks, expected 0, which is exact; leave it out")
    if engine.micro_batches < size:
        raise ValueError(
            f"micro_batches: found {engine.micro_batches} with {size} ranks, expected {size} at least: a rank computes whole "
            "ones; raise it, to the same number for any number of ranks whose numbers are to be the same"
        )
    for name, part in (("embedding", engine.embedding), ("readout", engine.readout)):
        if not part.backend.device.host_memory:
            raise ValueError(
                f'{name}: found one on "{part.backend.name}" with {size} ranks, expected one on the CPU; leave its backend out'
            )


def _check_shards(engine: "Engine") -> None:
    size = engine.ranks.size
    parts: dict[str, Any] = {"embedding": engine.embedding, "readout": engine.readout}
    for name, part in parts.items():
        if in_shards(part) and part.group.size != size:
            raise ValueError(
                f"ranks: found {size}, and the {name} in shards of {part.group.size} ranks, expected those; pass their group"
            )
    if engine.tied and in_shards(engine.embedding):
        raise ValueError("tied: found an embedding in shards, expected one that each rank has; leave one out")


def _check_alike(engine: "Engine") -> None:
    """ValueError, on all ranks, where they have made different engines."""
    told = [part.describe() for part in (engine.embedding, engine.trunk, engine.readout) if part]
    told += [{name: getattr(engine, name) for name in ("micro_batches", "schedule", "warmup")}]
    told += [{"threads": engine.threads}] if getattr(engine.trunk, "threaded", False) else []
    number = int.from_bytes(hashlib.blake2b(repr(told).encode(), digest_size=7).digest(), "little")
    greatest, least = engine.ranks.greatest(number, -number)
    if greatest != -least:
        raise ValueError(
            "ranks: found engines made of different arguments, expected the same on all ranks: rates, seeds, micro_batches; "
            "threads, too, where PyTorch's numbers depend on them"
        )
