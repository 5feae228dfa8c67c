"""Cameras: clips that never end."""

import sys
from collections.abc import Callable
from typing import Any

from ..clip import Frame, Options, Shape, check_shape, whole_number
from ..ffmpeg import av_library, frame_rate, pictures, upright
from ..resize import aspect_shown, region, resized

SUFFIXES = ()


def open_clip(source: str, options: Options) -> "Camera":
    """The camera of a number, 0 where there is none; see hybrid/feeds/video/clips/__init__.py."""
    return Camera(whole_number("camera", source), options.shape, crop=options.crop)


class Camera:
    """A camera, or another input that never ends; a `Live` clip, which keeps its last frame only.

    number  which camera, as the system counts them
    opener  () -> PyAV container of another input; None: the camera's

    Raises OSError where there is no such camera, and when it stops.
    """

    def __init__(self, number: int, shape: Shape, *, crop: bool = False, opener: Callable[[], Any] | None = None):
        self.shape, self.crop = check_shape(shape), bool(crop)
        self.device, kind = _camera(number)
        try:
            self._container = opener() if opener else av_library().open(self.device, format=kind)
        except (OSError, av_library().FFmpegError) as error:
            raise OSError(
                f"{self.device}: no camera can be opened there ({error.strerror}); is it plugged in, free, and yours to"
                ' read? "camera:N" names another'
            ) from None
        stream = pictures(self.device, self._container)
        self.rate, size = frame_rate(stream), (stream.codec_context.width, stream.codec_context.height)
        self.aspect = aspect_shown(size, self.shape, self.crop)
        self._coming = self._container.decode(stream)
        self._last: tuple[int, Frame] | None = None

    def __getitem__(self, number: int) -> Frame:
        if self._last and number == self._last[0]:
            return self._last[1]
        if self._last and number != self._last[0] + 1:
            raise ValueError(
                f"{self.device}: asked for frame {number} after {self._last[0]}; a camera gives the next only"
            )
        try:
            picture = upright(next(self._coming))
        except (StopIteration, OSError, av_library().FFmpegError) as error:
            raise OSError(f"{self.device}: no frame {number} came ({error or 'it ended'}); was it unplugged?") from None
        frame = Frame(resized(picture, region(picture.size, self.shape, self.crop), self.shape), None)
        self._last = number, frame
        return frame

    def describe(self) -> dict[str, Any]:
        """See `Live`."""
        return {"kind": "camera", "device": self.device, "shape": list(self.shape), "crop": self.crop}


def _camera(number: int) -> tuple[str, str]:
    """What FFmpeg calls a camera: its name and the kind of input."""
    system: str = sys.platform
    if system.startswith("linux"):
        return f"/dev/video{number}", "v4l2"
    if system == "darwin":
        return str(number), "avfoundation"
    raise OSError(f"camera: not offered on {system}; record a video file and give that")
