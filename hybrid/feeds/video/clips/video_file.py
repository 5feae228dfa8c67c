"""Video files, decoded by PyAV. A file has several cursors, since several streams may read it.

The frames of a file are indexed once, with as little decoding as possible. Decoding takes one thread: the cores are for
training.
"""

import hashlib
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .... import console
from ....storage import files
from ..clip import Labels, Pictures, Shape, check_shape, labels_beside, read_boxes

SUFFIXES = (
    ".mp4 .m4v .mov .avi .mkv .webm .mpg .mpeg .ts .mts .m2ts .wmv .flv .ogv .3gp .gif .mjpeg .y4m .h264 .264".split()
)
INDEXED = ("mov", "matroska", "avi")  # other formats may seek to wrong time stamps: they are read from the start
REMEDY = "copy it again, or convert what is readable: ffmpeg -i OLD NEW.mp4"
CURSORS = 16  # concurrent cursors; with more streams on a file, each frame costs a seek


def open_clip(source: str, shape: Shape) -> "Video":
    """Opens a video file, with the boxes of the file next to it."""
    return Video(Path(source), shape, labels=labels_beside(Path(source)))


class Video(Pictures):
    """A `Clip` of the frames of a video file in order.

    labels  a box file, see `read_boxes`; None: not labelled

    Raises OSError for an unreadable file, and ValueError, naming file and frame, for a truncated or corrupt one. The error
    comes on opening if it is visible without complete decoding, or else on access to the frame.
    """

    kind = "video"

    def __init__(self, path: Path, shape: Shape, *, labels: Path | None = None):
        self.path, self.shape = Path(path), check_shape(shape)
        self._boxes = None
        self._cursors: list[_Cursor] = []
        files.expect_file(self.path)
        with open(self.path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        self._index, self.rate = look_through(self.path)
        first = self._picture(0)
        self.aspect = first.size[0] / first.size[1]
        self._picture(len(self) - 1)  # a truncated file fails here
        if labels is not None:
            files.expect_file(labels)
            text = labels.read_bytes()
            self._boxes = read_boxes(Labels(str(labels), text), [first.size] * len(self))
            digest.update(text)
        self._data = digest.hexdigest()

    def __len__(self) -> int:
        return self._index.frames

    def _picture(self, number: int) -> Any:
        """Returns frame `number` as an upright Pillow image in the size of the original."""
        from PIL import Image

        cursor = self._cursor(number)
        frame = cursor.read(number)  # a cursor that fails is dropped
        picture = Image.fromarray(frame.to_ndarray(format="rgb24", threads=1))
        if cursor.at < len(self):
            self._cursors.append(cursor)
        return picture.rotate(frame.rotation, expand=True) if frame.rotation else picture

    def _cursor(self, number: int) -> "_Cursor":
        """Removes and returns the cursor that reaches a frame soonest; the list starts with the least recently used."""
        near = [c for c in self._cursors if self._index.key_of(number) <= c.at <= number]
        if near:
            cursor = max(near, key=lambda cursor: cursor.at)
        elif len(self._cursors) < CURSORS:
            return _Cursor(self.path, self._index)
        else:
            cursor = self._cursors[0]
        self._cursors.remove(cursor)
        return cursor


class _Cursor:
    """A decoding position in a file; the next frame is `at`."""

    def __init__(self, path: Path, index: "Index"):
        self.path, self.index = path, index
        self.at = index.frames
        self._container: Any = None
        self._coming: Iterator[tuple[int, Any]] = iter(())

    def read(self, number: int) -> Any:
        """Returns PyAV's frame `number`; ValueError if it cannot be decoded."""
        reason: Any = "it is not in the data"
        for begin in (self._go_on, self._seek, self._restart):  # a seek may miss if the file's index is wrong
            try:
                for coming, frame in begin(number):
                    if coming == number:
                        return frame
                    if coming > number:
                        break
            except av_library().FFmpegError as error:
                reason = error.strerror
        raise ValueError(
            f"{self.path}: frame {number} of {self.index.frames} cannot be decoded ({reason}); corrupt: {REMEDY}"
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
                continue  # it depends on earlier frames that were not decoded
            number = place if self.index.time is None else self.index.number_of(frame.pts)
            if number is not None:
                self.at = number + 1
                yield number, frame


class Index(NamedTuple):
    """The frame index of a file.

    frames  number of frames
    time    (frames,) time stamps, ascending; None: the file has none, so frames are counted from its start
    key     key frames, at which decoding can start, ascending
    """

    frames: int
    time: list[int] | None
    key: list[int]

    def key_of(self, number: int) -> int:
        """Returns the last key frame up to `number`."""
        return self.key[bisect_right(self.key, number) - 1]

    def number_of(self, time: int | None) -> int | None:
        """Returns the frame with a time stamp; None for an unknown one, such as before the first."""
        assert self.time is not None
        if time is None:
            return None
        at = bisect_left(self.time, time)
        return at if self.time[at : at + 1] == [time] else None


def look_through(path: Path) -> tuple[Index, float]:
    """Returns the frame index of a file, and its frames per second.

    Frames of an AVI that repeat the previous one are omitted; the rate is that of the others.

    Raises ValueError, naming the file, for one that is no video, is truncated or corrupt.
    """
    with opened(path) as container:
        stream = pictures(path, container)
        stated, rate, codec = stream.frames, frame_rate(stream), stream.codec_context.name
        indexed = container.format.name.split(",")[0] in INDEXED
        packets = list(_packets(path, container, stream))
        end = float(stream.time_base * max([time or 0 for time, _, _ in packets], default=0)) + 1 / rate
        length = (container.duration or 0) / 1e6
    if not packets:
        raise ValueError(f"{path}: has no frame; it is truncated, or still being written: {REMEDY}")
    if stated > len(packets):
        if not _whole_avi(path):
            raise ValueError(
                f"{path}: its header says {stated} frames, but it ends after {len(packets)}; it is truncated: {REMEDY}"
            )
        rate *= len(packets) / stated  # the rest repeat the previous frame: they have no data
    shown = [(time, key) for time, key, discarded in packets if not discarded]
    index = _by_time(path, shown) if codec != "vp8" else None  # VP8 has packets that show nothing
    index = index or _by_decoding(path)
    index = index if indexed else index._replace(key=[0])
    if not stated and end < 0.95 * length - 1:
        console.note(
            f"{path}: its header says {length:.1f} s, but its pictures end at {end:.1f} s; it has {index.frames} frames"
        )
    return index, rate


def _whole_avi(path: Path) -> bool:
    """True if a file is a complete AVI."""
    end, at = path.stat().st_size, 0
    with open(path, "rb") as file:
        while len(head := file.read(8)) == 8:
            name, length = struct.unpack("<4sI", head)
            if name != b"RIFF" or not length:  # 0: the writer did not finish
                break
            at += 8 + length
            file.seek(at + length % 2)
    return 0 < at <= end


def _packets(path: Path, container: Any, stream: Any) -> Iterator[tuple[int | None, bool, bool]]:
    """Yields, for every packet, its time stamp, True if it is a key frame, True if it is not shown."""
    number = 0
    try:
        for packet in container.demux(stream):
            if packet.is_corrupt:
                raise ValueError(f"{path}: frame {number} is incomplete; corrupt or truncated: {REMEDY}")
            if packet.size:
                yield packet.pts, packet.is_keyframe, packet.is_discard
                number += 1
    except av_library().FFmpegError as error:
        raise ValueError(f"{path}: cannot be read after frame {number} ({error.strerror}); {REMEDY}") from None


def _by_time(path: Path, shown: list[tuple[int | None, bool]]) -> Index | None:
    """Returns the index of packets with their time stamps; None if these are missing or ambiguous."""
    first = next(_decoded(path), (None, False))[0]
    if first is None or not (known := _in_time(shown)):
        return None
    return _index([(time, key) for time, key in known if time >= first])  # earlier ones depend on missing data


def _by_decoding(path: Path) -> Index:
    """Returns the index of all decoded frames."""
    shown = list(_decoded(path))
    if not shown:
        raise ValueError(f"{path}: no frame can be decoded; the file is corrupt: {REMEDY}")
    known = _in_time(shown)
    return _index(known) if known else Index(len(shown), None, [0])


def _in_time(shown: list[tuple[int | None, bool]]) -> list[tuple[int, bool]]:
    """Returns the packets sorted by time stamp; empty if one is missing or duplicated."""
    known = sorted((time, key) for time, key in shown if time is not None)
    return known if len({time for time, _ in known}) == len(shown) else []


def _index(shown: list[tuple[int, bool]]) -> Index:
    keys = {number for number, (_, key) in enumerate(shown) if key}
    return Index(len(shown), [time for time, _ in shown], sorted({0, *keys}))


def _decoded(path: Path) -> Iterator[tuple[int | None, bool]]:
    """Yields, for every decoded frame, its time stamp and True if it is a key frame."""
    number = 0
    try:
        with opened(path) as container:
            for frame in container.decode(pictures(path, container)):
                yield frame.pts, bool(frame.key_frame)
                number += 1
    except av_library().FFmpegError as error:
        raise ValueError(f"{path}: frame {number} cannot be decoded ({error.strerror}); {REMEDY}") from None


def av_library() -> Any:
    """Returns the PyAV module; ValueError if it is not installed."""
    try:
        import av
    except ImportError as error:
        raise ValueError(f'video needs PyAV ({error}): pip install "hybrid-engine[video]"') from None
    return av


def opened(path: Path) -> Any:
    """Returns PyAV's container of a video file; ValueError, with its name, for any other file."""
    av = av_library()
    try:
        # An absolute path, so that a name with a colon is no protocol. An untrusted file must not redirect FFmpeg.
        # Passed as `container_options`, since some versions crash on `options` if streams appear late. Titles may not be UTF-8.
        options = {"protocol_whitelist": "file"}
        return av.open(str(path.absolute()), container_options=options, metadata_errors="replace")
    except av.FFmpegError as error:
        raise ValueError(
            f"{path}: cannot be opened as a video ({error.strerror}); not a video, or truncated: copy it again"
        ) from None


def pictures(name: str | Path, container: Any) -> Any:
    """Returns the video stream of a container, set to decode in one thread; ValueError, with the name, if it has none."""
    if not container.streams.video:
        found = ", ".join({stream.type for stream in container.streams}) or "nothing"
        raise ValueError(f"{name}: no pictures in it, only {found}")
    stream = container.streams.video[0]
    if not stream.codec_context:
        raise ValueError(f"{name}: this FFmpeg has no decoder for it; ffmpeg -i OLD NEW.mp4 makes one that it can read")
    if not stream.codec_context.is_open:
        stream.codec_context.thread_count = 1
    return stream


def frame_rate(stream: Any) -> float:
    """Returns the frames per second of a stream; 25 if it states none."""
    return float(stream.average_rate or stream.guessed_rate or 25)
