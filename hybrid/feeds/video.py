"""Video files and cameras as clips, decoded by FFmpeg through PyAV.

Decoding takes one thread: the cores belong to training.
"""

import hashlib
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import console
from .frames import Frame, Shape, check_shape, inside
from .images import Labels, aspect_shown, placed, read_boxes, region, resized

SUFFIXES = (
    ".mp4 .m4v .mov .avi .mkv .webm .mpg .mpeg .ts .mts .m2ts .wmv .flv .ogv .3gp .gif .mjpeg .y4m .h264 .264".split()
)
INDEXED = ("mov", "matroska", "avi")  # a seek in others may give frames wrong time stamps: they are read from the start
REMEDY = "copy it again, or make a whole one of what is there: ffmpeg -i OLD NEW.mp4"


class Video:
    """The frames of a video file in order; a `Clip`.

    labels   a file of boxes, see `images.read_boxes`; None: not labelled
    crop     cut to the aspect of `shape` around the centre; else stretch
    cursors  how many places are decoded side by side; streams beyond them seek, and decode from a key frame, every time

    Raises OSError for an unreadable file, and ValueError, naming file and frame, where it ends before its header says so,
    or does not decode: at opening where that is known without decoding all, else when the frame is asked for. Every
    frame asked for before stays right.
    """

    def __init__(self, path: Path, shape: Shape, *, labels: Path | None = None, crop=False, cursors: int = 16):
        self.path, self.shape, self.crop = Path(path), check_shape(shape), bool(crop)
        self._cursors: list[_Cursor] = []
        self._most = cursors
        with open(self.path, "rb") as file:
            self._data = hashlib.file_digest(file, "sha256")
        self._index, self.rate = _look_through(self.path)
        self._boxes, first = None, self._picture(0)
        self.aspect = aspect_shown(first.size, self.shape, self.crop)
        self._picture(len(self) - 1)  # a file that was cut short shows it here
        if labels is not None:
            text = labels.read_bytes()
            self._boxes = read_boxes(Labels(str(labels), text), [first.size] * len(self))
            self._data.update(text)

    def __len__(self) -> int:
        return self._index.frames

    def __getitem__(self, number: int) -> Frame:
        inside(number, len(self))
        picture = self._picture(number)
        cut = region(picture.size, self.shape, self.crop)
        box = None if self._boxes is None else placed(self._boxes[number], cut, self.shape)
        return Frame(resized(picture, cut, self.shape), box)

    def describe(self) -> dict[str, Any]:
        """See `Clip`."""
        facts = {"kind": "video", "data": self._data.hexdigest(), "frames": len(self)}
        return facts | {"labelled": self._boxes is not None, "shape": list(self.shape), "crop": self.crop}

    def _picture(self, number: int):
        """Frame `number` as a Pillow image in the size of the original."""
        cursor = self._cursor(number)
        picture = _upright(cursor.read(number))  # a cursor that fails is dropped
        if cursor.at < len(self):
            self._cursors.append(cursor)
        return picture

    def _cursor(self, number: int) -> "_Cursor":
        """The one that gets there soonest, taken from the list, whose order is that of use."""
        near = [c for c in self._cursors if self._index.key_of(number) <= c.at <= number]
        if near:
            cursor = max(near, key=lambda cursor: cursor.at)
        elif len(self._cursors) < self._most:
            return _Cursor(self.path, self._index)
        else:
            cursor = self._cursors[0]
        self._cursors.remove(cursor)
        return cursor


class _Index(NamedTuple):
    """Where the frames of a file are.

    frames  how many there are
    time    (frames,) time stamps, ascending; None: the file has none, so frames are counted from its start
    key     the frames at which decoding can begin, ascending
    """

    frames: int
    time: list[int] | None
    key: list[int]

    def key_of(self, number: int) -> int:
        return self.key[bisect_right(self.key, number) - 1]

    def number_of(self, time: int | None) -> int | None:
        """The frame that is shown at a time; None for one that is before the first."""
        assert self.time is not None
        at = bisect_right(self.time, time) - 1 if time is not None else -1
        return at if at >= 0 and self.time[at] == time else None


class _Cursor:
    """A place in a file that is being decoded: the next frame to come is `at`."""

    def __init__(self, path: Path, index: _Index):
        self.path, self.index = path, index
        self.at = index.frames
        self._container: Any = None
        self._coming: Iterator[tuple[int, Any]] = iter(())

    def read(self, number: int):
        """Frame `number` as PyAV's; ValueError when it does not decode."""
        reason: Any = "it is not in the data"
        for begin in (self._go_on, self._seek, self._restart):  # a seek may miss where the file's own index is wrong
            try:
                for found, frame in begin(number):
                    if found == number:
                        return frame
                    if found > number:
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
            self._container = _opened(self.path)
        self._container.seek(self.index.time[key], stream=_pictures(self.path, self._container))
        return self._decode(sought=True)

    def _restart(self, number: int) -> Iterator[tuple[int, Any]]:
        self._container = _opened(self.path)
        return self._decode(sought=False)

    def _decode(self, sought: bool) -> Iterator[tuple[int, Any]]:
        self._coming = self._numbered(sought)
        return self._coming

    def _numbered(self, sought: bool) -> Iterator[tuple[int, Any]]:
        stream = _pictures(self.path, self._container)
        for place, frame in enumerate(self._container.decode(stream)):
            sought = sought and not frame.key_frame
            if sought:
                continue  # made from frames before the place, which were not decoded
            number = place if self.index.time is None else self.index.number_of(frame.pts)
            if number is not None:
                self.at = number + 1
                yield number, frame


def av_library():
    """PyAV; ValueError where it is not installed."""
    try:
        import av
    except ImportError as error:
        raise ValueError(
            f'video needs PyAV, which cannot be imported ({error}): pip install "hybrid-engine[video]"'
        ) from None
    return av


def labels_beside(path: Path) -> Path | None:
    """The file of boxes beside a video: its name with .txt or .csv for the suffix; None where there is none."""
    found = [file for file in (path.with_suffix(".txt"), path.with_suffix(".csv")) if file.exists()]
    if len(found) > 1:
        raise ValueError(f"{path}: beside it are both {found[0].name} and {found[1].name}; expected one file of labels")
    return found[0] if found else None


def _opened(path: Path):
    av = av_library()
    try:
        # Absolute, so that a name with a colon is no protocol. A file from a stranger may send FFmpeg nowhere else:
        # as `container_options`, since some versions crash on `options` where streams appear late.
        return av.open(str(path.absolute()), container_options={"protocol_whitelist": "file"})
    except av.FFmpegError as error:
        raise ValueError(
            f"{path}: cannot be opened as a video ({error.strerror}); it is none, or was cut short: {REMEDY}"
        ) from None


def _pictures(name, container):
    """The video stream of a container, which decodes in one thread."""
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


def _rate(stream) -> float:
    return float(stream.average_rate or stream.guessed_rate or 25)


def _look_through(path: Path) -> tuple[_Index, float]:
    """Where the frames are, and how many a second. Reads the file once, decodes no more than it must."""
    with _opened(path) as container:
        stream = _pictures(path, container)
        stated, rate, codec = stream.frames, _rate(stream), stream.codec_context.name
        indexed = container.format.name.split(",")[0] in INDEXED
        packets = list(_packets(path, container, stream))
        end = float((stream.time_base or 0) * max([time or 0 for time, _, _ in packets], default=0)) + 1 / rate
        length = (container.duration or 0) / 1e6
    if not packets:
        raise ValueError(f"{path}: not one frame in it; it was cut short, or is still being written: {REMEDY}")
    if stated > len(packets):
        raise ValueError(
            f"{path}: its header says {stated} frames, but it ends after {len(packets)}; it was cut short: {REMEDY}"
        )
    shown = [(time, key) for time, key, discarded in packets if not discarded]
    index = _by_time(path, shown) if codec != "vp8" else None  # VP8 has packets that show nothing
    index = index or _by_decoding(path)
    index = index if indexed else index._replace(key=[0])
    if not stated and end < 0.95 * length - 1:
        console.note(
            f"{path}: its header says {length:.1f} s, but its pictures end at {end:.1f} s; going on with {index.frames} frames"
        )
    return index, rate


def _packets(path: Path, container, stream) -> Iterator[tuple[int | None, bool, bool]]:
    """Time stamp, whether decoding can begin here, whether it is not shown: of every packet."""
    number = 0
    try:
        for packet in container.demux(stream):
            if packet.is_corrupt:
                raise ValueError(
                    f"{path}: frame {number} is there in part only; the file is corrupt or cut short: {REMEDY}"
                )
            if packet.size:
                yield packet.pts, packet.is_keyframe, packet.is_discard
                number += 1
    except av_library().FFmpegError as error:
        raise ValueError(f"{path}: cannot be read after frame {number} ({error.strerror}); {REMEDY}") from None


def _by_time(path: Path, shown: list[tuple[int | None, bool]]) -> _Index | None:
    """The index of packets with their time stamps; None where these are missing or ambiguous."""
    first = next(_decoded(path), (None, False))[0]
    if first is None or not (known := _in_time(shown)):
        return None
    return _index([(time, key) for time, key in known if time >= first])  # those before it need what the file lacks


def _by_decoding(path: Path) -> _Index:
    """The index of the frames that come out when all is decoded."""
    shown = list(_decoded(path))
    if not shown:
        raise ValueError(f"{path}: not one frame can be decoded; the file is corrupt: {REMEDY}")
    known = _in_time(shown)
    return _index(known) if known else _Index(len(shown), None, [0])


def _in_time(shown: list[tuple[int | None, bool]]) -> list[tuple[int, bool]]:
    """Sorted by time stamp; nothing where one is missing or stands twice."""
    known = sorted((time, key) for time, key in shown if time is not None)
    return known if len({time for time, _ in known}) == len(shown) else []


def _index(shown: list[tuple[int, bool]]) -> _Index:
    keys = {number for number, (_, key) in enumerate(shown) if key}
    return _Index(len(shown), [time for time, _ in shown], sorted({0, *keys}))


def _decoded(path: Path) -> Iterator[tuple[int | None, bool]]:
    """Time stamp, and whether it is a key frame, of every frame as it comes out."""
    number = 0
    try:
        with _opened(path) as container:
            for frame in container.decode(_pictures(path, container)):
                yield frame.pts, bool(frame.key_frame)
                number += 1
    except av_library().FFmpegError as error:
        raise ValueError(f"{path}: frame {number} cannot be decoded ({error.strerror}); {REMEDY}") from None


def _upright(frame):
    """A PyAV frame as a Pillow image, turned as the file says (telephones store pictures lying on their side)."""
    from PIL import Image

    picture = Image.fromarray(frame.to_ndarray(format="rgb24", threads=1))
    return picture.rotate(frame.rotation, expand=True) if frame.rotation else picture


class Camera:
    """A camera, or another input that never ends; a `Live` clip: nothing is kept, frames are asked for in order.

    number  which camera, as the system counts
    opener  () -> PyAV container; None: the camera's

    Raises OSError where there is none, or when it stops.
    """

    def __init__(self, number: int, shape: Shape, *, crop=False, opener: Callable[[], Any] | None = None):
        self.shape, self.crop = check_shape(shape), bool(crop)
        self.device, kind = _camera(number)
        try:
            self._container = opener() if opener else av_library().open(self.device, format=kind)
        except (OSError, av_library().FFmpegError) as error:
            raise OSError(
                f"{self.device}: no camera can be opened there ({error.strerror}); is it plugged in, free, and yours to"
                ' read? "camera:N" names another'
            ) from None
        stream = _pictures(self.device, self._container)
        self.rate, size = _rate(stream), (stream.codec_context.width, stream.codec_context.height)
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
            picture = _upright(next(self._coming))
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
    if sys.platform.startswith("linux"):
        return f"/dev/video{number}", "v4l2"
    if sys.platform == "darwin":
        return str(number), "avfoundation"
    raise OSError(f"camera: not offered on {sys.platform}; record a video file and give that")
