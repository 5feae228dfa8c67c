"""Video files. Several places of a file are decoded side by side, since several streams may read it."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ....storage import document
from ..boxes import Labels, labels_beside, placed, read_boxes
from ..clip import Frame, Options, Shape, check_shape, inside
from ..ffmpeg import REMEDY, av_library, opened, pictures, upright
from ..index import Index, look_through
from ..resize import resized

SUFFIXES = (
    ".mp4 .m4v .mov .avi .mkv .webm .mpg .mpeg .ts .mts .m2ts .wmv .flv .ogv .3gp .gif .mjpeg .y4m .h264 .264".split()
)


def open_clip(source: str, options: Options) -> "Video":
    """A video file, with the boxes that stand beside it; see hybrid/feeds/video/clips/__init__.py."""
    path = Path(source)
    return Video(path, options.shape, labels=labels_beside(path) if options.labels else None)


class Video:
    """The frames of a video file in order; a `Clip`.

    labels   a file of boxes, see `boxes.read_boxes`; None: not labelled
    cursors  most places that are decoded side by side; where more streams read the file, each frame costs a seek

    Raises OSError for an unreadable file, and ValueError, naming file and frame, for one that is cut short or corrupt: at
    opening, where that is seen without decoding all, else when the frame is asked for.
    """

    def __init__(self, path: Path, shape: Shape, *, labels: Path | None = None, cursors: int = 16):
        self.path, self.shape = Path(path), check_shape(shape)
        self._cursors: list[_Cursor] = []
        self._most = cursors
        document.expect_file(self.path)
        with open(self.path, "rb") as file:
            self._data = hashlib.file_digest(file, "sha256")
        self._index, self.rate = look_through(self.path)
        self._boxes, first = None, self._picture(0)
        self.aspect = first.size[0] / first.size[1]
        self._picture(len(self) - 1)  # a file that was cut short shows it here
        if labels is not None:
            document.expect_file(labels)
            text = labels.read_bytes()
            self._boxes = read_boxes(Labels(str(labels), text), [first.size] * len(self))
            self._data.update(text)

    def __len__(self) -> int:
        return self._index.frames

    def __getitem__(self, number: int) -> Frame:
        inside(number, len(self))
        picture = self._picture(number)
        box = None if self._boxes is None else placed(self._boxes[number], picture.size, self.shape)
        return Frame(resized(picture, self.shape), box)

    def describe(self) -> dict[str, Any]:
        """See `Clip`."""
        facts = {"kind": "video", "data": self._data.hexdigest(), "frames": len(self)}
        return facts | {"labelled": self._boxes is not None, "shape": list(self.shape), "crop": False}  # of runs so far

    def _picture(self, number: int) -> Any:
        """Frame `number` as a Pillow image in the size of the original."""
        cursor = self._cursor(number)
        picture = upright(cursor.read(number))  # a cursor that fails is dropped
        if cursor.at < len(self):
            self._cursors.append(cursor)
        return picture

    def _cursor(self, number: int) -> "_Cursor":
        """The cursor that gets to a frame soonest, taken from the list, which begins with the one used longest ago."""
        near = [c for c in self._cursors if self._index.key_of(number) <= c.at <= number]
        if near:
            cursor = max(near, key=lambda cursor: cursor.at)
        elif len(self._cursors) < self._most:
            return _Cursor(self.path, self._index)
        else:
            cursor = self._cursors[0]
        self._cursors.remove(cursor)
        return cursor


class _Cursor:
    """A place in a file that is being decoded; the frame that comes next is `at`."""

    def __init__(self, path: Path, index: Index):
        self.path, self.index = path, index
        self.at = index.frames
        self._container: Any = None
        self._coming: Iterator[tuple[int, Any]] = iter(())

    def read(self, number: int) -> Any:
        """PyAV's frame `number`; ValueError where it cannot be decoded."""
        reason: Any = "it is not in the data"
        for begin in (self._go_on, self._seek, self._restart):  # a seek may miss where the file's own index is wrong
            try:
                for coming, frame in begin(number):
                    if coming == number:
                        return frame
                    if coming > number:
                        break
            except av_library().FFmpegError as error:
                reason = error.strerror
        raise ValueError(
            f"{self.path}: frame {number} of {self.index.frames} cannot be decoded ({reason}); the file is corrupt:"
            f" {REMEDY}"
        )

    def _go_on(self, number: int) -> Iterator[tuple[int, Any]]:
        return self._coming if self.index.key_of(number) <= self.at <= number else iter(())

    def _seek(self, number: int) -> Iterator[tuple[int, Any]]:
        if self.index.time is None or not (key := self.index.key_of(number)):
            return iter(())
        if self._container is None:
            self._container = opened(self.path)
        self._container.seek(self.index.time[key], stream=pictures(self.path, self._container))
        return self._decode(sought=True)

    def _restart(self, number: int) -> Iterator[tuple[int, Any]]:
        self._container = opened(self.path)
        return self._decode(sought=False)

    def _decode(self, sought: bool) -> Iterator[tuple[int, Any]]:
        self._coming = self._numbered(sought)
        return self._coming

    def _numbered(self, sought: bool) -> Iterator[tuple[int, Any]]:
        stream = pictures(self.path, self._container)
        for place, frame in enumerate(self._container.decode(stream)):
            sought = sought and not frame.key_frame
            if sought:
                continue  # made from frames before the place, which were not decoded
            number = place if self.index.time is None else self.index.number_of(frame.pts)
            if number is not None:
                self.at = number + 1
                yield number, frame
