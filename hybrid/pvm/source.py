"""The clips that the options of a command name."""

from collections.abc import Sequence
from pathlib import Path

from ..feeds.video.cache import Memory, keep
from ..feeds.video.clip import Clip, Live, Shape
from ..feeds.video.open import open_clips


def clips(video: str, shape: Shape, labels: str | None = None, crop: bool = False) -> Sequence[Clip | Live]:
    """Those of --video; with --labels the one of a video file with the boxes of another file than the one beside it.

    Raises ValueError or OSError, see `open_clips`.
    """
    if labels is None:
        return open_clips(video, shape, crop=crop)
    from ..feeds.video.clips.video_file import Video

    if not Path(video).is_file() or Path(video).suffix.lower() == ".zip":
        raise ValueError(
            f"--labels: found {labels} with --video {video}, expected a video file; a directory or a zip holds its own"
            " labels.txt"
        )
    return [keep(Video(Path(video), shape, labels=Path(labels), crop=crop), Memory())]


def labelled(found: Sequence[Clip | Live]) -> bool:
    """Whether any of the clips says where its target is; a live one does not."""
    return any(hasattr(clip, "__len__") and clip[0].box is not None for clip in found)
