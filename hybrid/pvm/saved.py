"""What the checkpoint of a model tells beside its arrays, and how it is read back."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from .. import check
from ..storage import checkpoint
from .config import Config
from .sizes import refuse_more
from .wiring import Wiring, custom, describe


class Saved(NamedTuple):
    """A model, but for its arrays.

    wiring  None: that of the configuration
    step    ticks so far
    """

    config: Config
    wiring: Wiring | None
    streams: int
    seed: int
    dtype: str
    step: int
    frozen: bool

    def facts(self) -> dict[str, Any]:
        """As JSON says it."""
        config, wiring = json.loads(self.config.to_json()), self.wiring and describe(self.wiring)
        return self._asdict() | {"config": config, "wiring": wiring}


def read(folder: str | Path) -> tuple[Saved, dict[str, Any]]:
    """What a checkpoint tells of its model, and the facts of the caller that were saved with it.

    Raises ValueError for a checkpoint of another kind, or one that tells of more than it holds.
    """
    saved, held = checkpoint.read_facts(folder), checkpoint.numbers(folder)
    if "pvm" not in saved:
        raise ValueError(f"{folder}: found a checkpoint of another kind, expected one of a Predictive Vision Model")
    with checkpoint.told(folder):
        own = saved["pvm"]
        config = Config.from_fields(own["config"])
        refuse_more(folder, config, held)
        found = Saved(
            config=config,
            wiring=custom(**own["wiring"]) if own["wiring"] else None,
            streams=own["streams"],
            seed=own["seed"],
            dtype=own["dtype"],
            step=check.whole("step", own["step"], 0),
            frozen=own["frozen"],
        )
        return found, saved["facts"]
