"""FFmpeg through PyAV, for video files.

Decoding takes one thread: the cores belong to training.
"""

from pathlib import Path
from typing import Any

REMEDY = "copy it again, or make a whole one of what is there: ffmpeg -i OLD NEW.mp4"


def av_library() -> Any:
    """The module of PyAV; ValueError where it is not installed."""
    try:
        import av
    except ImportError as error:
        raise ValueError(
            f'video needs PyAV, which cannot be imported ({error}): pip install "hybrid-engine[video]"'
        ) from None
    return av


def opened(path: Path) -> Any:
    """PyAV's container of a video file; ValueError, with its name, for a file that is none."""
    av = av_library()
    try:
        # Absolute, so that a name with a colon is no protocol. A file from a stranger may send FFmpeg nowhere else:
        # as `container_options`, since some versions crash on `options` where streams appear late.
        options = {"protocol_whitelist": "file"}
        return av.open(
            str(path.absolute()), container_options=options, metadata_errors="replace"
        )  # titles in any encoding
    except av.FFmpegError as error:
        raise ValueError(
            f"{path}: cannot be opened as a video ({error.strerror}); it is none, or was cut short: {REMEDY}"
        ) from None


def pictures(name: str | Path, container: Any) -> Any:
    """The video stream of a container, set to decode in one thread; ValueError, with the name, where there is none."""
    if not container.streams.video:
        raise ValueError(
            f"{name}: no pictures in it, only {', '.join({s.type for s in container.streams}) or 'nothing'}"
        )
    stream = container.streams.video[0]
    if not stream.codec_context:
        raise ValueError(f"{name}: this FFmpeg has no decoder for it; ffmpeg -i OLD NEW.mp4 makes one that it can read")
    if not stream.codec_context.is_open:
        stream.codec_context.thread_count = 1
    return stream


def frame_rate(stream: Any) -> float:
    """Frames per second of a stream; 25 where it states none."""
    return float(stream.average_rate or stream.guessed_rate or 25)


def upright(frame: Any) -> Any:
    """A PyAV frame as a Pillow image, turned as its file says: telephones store pictures lying on their side."""
    from PIL import Image

    picture = Image.fromarray(frame.to_ndarray(format="rgb24", threads=1))
    return picture.rotate(frame.rotation, expand=True) if frame.rotation else picture
