"""How well a model that learns predicts a video that it does not learn from."""

from collections.abc import Sequence
from itertools import islice

from ...feeds.video.clip import Clip
from ..model import PVM
from .evaluate import Watcher, frames_of
from .single import follow, single

FRAMES = 500  # at most, so that validating takes a small part of a run


class Validation:
    """Shows a video to a frozen copy of a model that learns, which itself sees and knows nothing of it.

    model  the one that learns; its copy takes as much memory again
    shown  clips; their first FRAMES frames are shown
    """

    def __init__(self, model: PVM, shown: Sequence[Clip]):
        self._copy, self._clips = single(model, readouts=False), shown
        self._copy.frozen = True

    def figures(self, model: PVM) -> dict[str, float | None]:
        """Mean |prediction - frame| in 0..1 as the model stands, and the same for repeating the last frame."""
        follow(self._copy, model)
        watcher = Watcher(self._copy)
        for clip in self._clips:
            watcher.cut()
            for frame in islice(frames_of(clip), FRAMES - watcher.frames):
                watcher.see(frame.image)
        shown = watcher.figures()
        return {"valid prediction": shown["prediction_error"], "valid last_frame": shown["last_frame_error"]}
