"""Pictures of a run that learns: those of its latest complete tick."""

from collections import deque

import numpy as np

from ..model import PVM
from . import panel, saturation
from .baseline import Pair


class Latest:
    """Takes pairs as they come, which costs next to nothing, and makes pictures of the last one when they are asked for.

    Both may happen in two threads. Of several streams the first is shown.

    aspect  width / height of what frames show, see `frames.aspect_of`
    video   its name
    """

    def __init__(self, model: PVM, aspect: float, video: str):
        self.config, self.wiring, self.aspect, self.video = model.config, model.wiring, aspect, video
        self.pair: Pair | None = None
        self._alone = model.streams == 1
        self._recent: deque[list[np.ndarray]] = deque(maxlen=saturation.WINDOW)

    def take(self, pair: Pair) -> None:
        """A tick is complete, and the frame after it has come; of one before a resume the prediction alone is known."""
        if hidden := pair.seen.hidden:
            self._recent.append(hidden if self._alone else [layer[0].copy() for layer in hidden])
        self.pair = pair

    def counts(self) -> list[saturation.Counts]:
        """Of each layer in the last complete ticks; [] as long as there are too few."""
        return saturation.count_layers(tuple(self._recent), self.config)

    def views(self) -> dict[str, panel.View]:
        """By caption; {} before the first pair."""
        if (pair := self.pair) is None:
            return {}
        heatmap = pair.seen.heatmap
        found = panel.views(
            self.wiring,
            pair.after[0],
            pair.prediction[0],
            pair.seen.hidden if self._alone else [layer[0] for layer in pair.seen.hidden],
            heatmap if self._alone or heatmap is None else heatmap[0],
            saturation.bounds(self.config),
            self.counts(),
        )
        notes = {
            "prediction": f"mean |error| {pair.error:.4f}",
            "difference": f"repeating the last frame: {pair.last_frame:.4f}",
        }
        return found | {name: found[name]._replace(note=note) for name, note in notes.items()}

    def picture(self) -> np.ndarray | None:
        """All views side by side; None before the first pair."""
        if (pair := self.pair) is None:
            return None
        title = f"{self.config.name}, step {pair.seen.tick + 1:,}, {self.video}"
        return panel.side_by_side(self.views(), aspect=self.aspect, title=title)
