"""What an engine goes back to in memory where ranks are lost in the middle of a tick, when parameters have moved in part."""

from typing import Any

from ..storage.copies import Whole
from . import saved
from .engine import Engine


def copied(engine: Engine, facts: dict[str, Any]) -> Whole:
    """A checkpoint in memory, which `Engine.load` takes in the place of a folder; all ranks make it together, between ticks.

    Rows, trunk and readout are the same on all ranks, so each copies its own, and whoever remains has everything.

    facts  of the caller, which `Engine.load` returns; JSON-able

    Raises RankLost, on all ranks or on none, and ValueError for an engine that failed half-way.
    """
    engine._check_whole()
    with engine._runs.alone:
        begun = engine._begun_arrays()
        return Whole(engine.ranks, engine.parameters() | begun, {"engine": saved.facts(engine, begun), "facts": facts})
