"""What the begin stages wrote for batches that were begun and not finished when a run ended or was saved.

It is kept, because it cannot be computed again: the parameters have moved since.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from .route import Route
from .slot import Slot


def kept(sets: Iterable[list[Slot]], route: Route) -> dict[str, np.ndarray]:
    """Copies of the arrays, named "begun.TICK.MICRO.ARRAY"; nothing may be in flight."""
    return {
        _key(slot, name): route.device.to_host(getattr(slot, f"{name}_dev")).copy()
        for slots in sets
        for slot in slots
        for name in route.begun
    }


def ahead(arrays: Mapping[str, np.ndarray], tick: int) -> dict[str, np.ndarray]:
    """Those of ticks from this one on: of a run that ended before it came to them, as when its feed fails, they still count."""
    return {key: array for key, array in arrays.items() if int(key.split(".")[1]) >= tick}


def restored(slots: list[Slot], route: Route, arrays: Mapping[str, np.ndarray]) -> bool:
    """Fill slots that the feed has filled with what `kept` kept of them; False where there is nothing of them."""
    for slot in slots:
        keys = {name: _key(slot, name) for name in route.begun} if arrays else {}
        if not keys or next(iter(keys.values())) not in arrays:
            return False
        for name, key in keys.items():
            route.device.write(getattr(slot, f"{name}_dev"), arrays[key])
        for name in route.fed:
            route.device.write(getattr(slot, f"{name}_dev"), getattr(slot, name))
        if "hidden" in route.crossing:
            slot.hidden[:] = arrays[keys.get("hidden") or keys["x"]]
    return True


def _key(slot: Slot, name: str) -> str:
    return f"begun.{slot.tick}.{slot.micro}.{name}"
