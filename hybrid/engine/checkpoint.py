"""Checkpoints of engines: settings, in addition to the parameters."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import backend, check, readout, sparse, trunk
from ..schedule.rates import RateSchedule
from .embedding import Embedding, Inputs, rebuild
from .route import Pipeline

if TYPE_CHECKING:
    from .engine import Engine

# Name suffixes of arrays that are not trained
STATE = ("velocity", "mean", "squares", "updates", "counts", "parents", "leaf", "leaf_up", "node_up", "slot")


def learned(name: str) -> bool:
    """True if an array of Engine.parameters() is trained, not auxiliary state."""
    if name.startswith("trunk.module."):  # names of PyTorch modules are chosen by the user
        return True
    return not name.startswith(("trunk.buffer.", "trunk.optimiser.")) and not name.endswith(STATE)


def save(engine: "Engine", folder: str | Path, facts: dict[str, Any]) -> None:
    """Writes a checkpoint, see Engine.save."""
    from ..storage import checkpoint

    more: dict[str, Any] = {"tied": True} if engine.tied else {}
    more |= {"update": engine.update} if engine.route.online else {}
    settings: dict[str, Any] = {"micro_batches": engine.micro_batches}
    settings |= {"schedule": engine.schedule.name, "warmup": engine.schedule.warmup}
    own = {
        "embedding": engine.embedding.describe(),
        "trunk": engine.trunk.describe() if engine.trunk else None,
        "readout": engine.readout.describe() | {"state": engine.readout.state()},
        "settings": settings | more,
        "tick": engine.tick,
    }
    arrays = engine.parameters()
    engine.route.write(lambda: checkpoint.save(folder, arrays, {"engine": own, "facts": facts}))


def load(
    cls: type["Engine"],
    folder: str | Path,
    given: trunk.TrunkProtocol | None,
    rows_device: str,
    readout_device: str,
    machine: dict[str, Any],
) -> tuple["Engine", dict[str, Any]]:
    """Loads a checkpoint, see Engine.load; machine: the arguments of Engine and Pipeline that a checkpoint does not keep."""
    from ..storage import checkpoint

    manifest, held = checkpoint.read_facts(folder), checkpoint.numbers(folder)
    with checkpoint.rebuilding(folder):
        own = manifest["engine"]
        output = {name: value for name, value in own["readout"].items() if name != "state"}
        settings = own["settings"]
        parts = {name: settings[name] for name in ("micro_batches", "update") if name in settings}
        _check_size(folder, own, output, held)
        engine = cls(
            _source(own["embedding"], rows_device),
            _trunk(own["trunk"], given),
            readout.rebuild(output, backend.choose(readout_device)),
            device=machine["device"],
            threads=machine["threads"],
            pipeline=Pipeline(**parts, overlap=machine["overlap"], route=machine["route"]),
            schedule=RateSchedule(settings["schedule"], settings["warmup"]),
            tied=settings.get("tied", False),
        )
        if given is not None:
            given.expect(own["trunk"])  # type: ignore[attr-defined]  # those have it that are given, see `_trunk`
        engine.route.read(lambda: checkpoint.load_into(folder, engine.parameters()))
        engine.embedding.send()
        if engine.trunk:
            engine.trunk.send()
        engine.readout.restore(own["readout"]["state"])
        engine.tick = check.whole("tick", own["tick"], 0)
        return engine, manifest["facts"]


def _source(facts: dict[str, Any], device: str) -> Embedding | Inputs:
    if facts.get("kind") == Inputs.kind:
        return Inputs(facts["width"])
    return rebuild(facts, backend.choose(device))


def _trunk(facts: dict[str, Any] | None, given: trunk.TrunkProtocol | None) -> trunk.TrunkProtocol | None:
    """Returns an untrained trunk from its describe() facts, or the one given, if checkpoints do not describe it fully."""
    if given is None:
        return trunk.rebuild(facts) if facts else None
    kind, ours = facts.get("kind") if facts else None, getattr(given, "kind", type(given).__name__)
    if kind != ours or not hasattr(given, "expect"):
        theirs = f"a {kind} trunk" if facts else "none"
        raise ValueError(f"trunk: found a {ours} trunk, the checkpoint has {theirs}, which it makes; leave it out")
    return given


def _check_size(folder: str | Path, own: dict[str, Any], output: dict[str, Any], held: int) -> None:
    """Raises ValueError, before allocation, if the facts imply more numbers than the checkpoint holds."""
    rows, dense = own["embedding"], own["trunk"]
    least = sparse.numbers(**rows) if rows.get("rows") else 0
    least += readout.least(output) + (trunk.least(dense) if dense else 0)
    least -= output["classes"] * output["width"] if own["settings"].get("tied") else 0  # one shared table, stored once
    if least > held:
        raise ValueError(f"{folder}: declares {least} parameters, but holds {held} numbers; it was altered")
