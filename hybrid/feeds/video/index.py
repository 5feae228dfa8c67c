"""Where the frames of a video file are. The file is read once for it, and decoded no more than it must be."""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ... import console
from .ffmpeg import REMEDY, av_library, frame_rate, opened, pictures

INDEXED = ("mov", "matroska", "avi")  # a seek in others may give frames wrong time stamps: they are read from the start


class Index(NamedTuple):
    """Where the frames of a file are.

    frames  how many there are
    time    (frames,) time stamps, ascending; None: the file has none, so frames are counted from its start
    key     the frames at which decoding can begin, ascending
    """

    frames: int
    time: list[int] | None
    key: list[int]

    def key_of(self, number: int) -> int:
        """The last frame, up to `number`, at which decoding can begin."""
        return self.key[bisect_right(self.key, number) - 1]

    def number_of(self, time: int | None) -> int | None:
        """The frame with a time stamp; None where there is none, as before the first."""
        assert self.time is not None
        if time is None:
            return None
        at = bisect_left(self.time, time)
        return at if self.time[at : at + 1] == [time] else None


def look_through(path: Path) -> tuple[Index, float]:
    """Where the frames of a file are, and how many it shows a second.

    Frames of an AVI that repeat the one before are left out; the rate is that of the others.

    Raises ValueError, naming the file, for one that is no video, is cut short or corrupt.
    """
    with opened(path) as container:
        stream = pictures(path, container)
        stated, rate, codec = stream.frames, frame_rate(stream), stream.codec_context.name
        indexed = container.format.name.split(",")[0] in INDEXED
        packets = list(_packets(path, container, stream))
        end = float(stream.time_base * max([time or 0 for time, _, _ in packets], default=0)) + 1 / rate
        length = (container.duration or 0) / 1e6
    if not packets:
        raise ValueError(f"{path}: not one frame in it; it was cut short, or is still being written: {REMEDY}")
    if stated > len(packets):
        if not _whole_avi(path):
            raise ValueError(
                f"{path}: its header says {stated} frames, but it ends after {len(packets)}; it was cut short: {REMEDY}"
            )
        rate *= len(packets) / stated  # the rest repeat the frame before: they have no data
    shown = [(time, key) for time, key, discarded in packets if not discarded]
    index = _by_time(path, shown) if codec != "vp8" else None  # VP8 has packets that show nothing
    index = index or _by_decoding(path)
    index = index if indexed else index._replace(key=[0])
    if not stated and end < 0.95 * length - 1:
        console.note(
            f"{path}: its header says {length:.1f} s, but its pictures end at {end:.1f} s; going on with {index.frames} frames"
        )
    return index, rate


def _whole_avi(path: Path) -> bool:
    """Whether a file is an AVI whose last part is there to its end."""
    end, at = path.stat().st_size, 0
    with open(path, "rb") as file:
        while len(head := file.read(8)) == 8:
            name, length = struct.unpack("<4sI", head)
            if name != b"RIFF" or not length:  # 0: its writer never came to the end
                break
            at += 8 + length
            file.seek(at + length % 2)
    return 0 < at <= end


def _packets(path: Path, container: Any, stream: Any) -> Iterator[tuple[int | None, bool, bool]]:
    """Of every packet: its time stamp, whether decoding can begin there, whether it is not to be shown."""
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


def _by_time(path: Path, shown: list[tuple[int | None, bool]]) -> Index | None:
    """The index of packets with their time stamps; None where these are missing or ambiguous."""
    first = next(_decoded(path), (None, False))[0]
    if first is None or not (known := _in_time(shown)):
        return None
    return _index([(time, key) for time, key in known if time >= first])  # those before it need what the file lacks


def _by_decoding(path: Path) -> Index:
    """The index of all frames that decoding gives."""
    shown = list(_decoded(path))
    if not shown:
        raise ValueError(f"{path}: not one frame can be decoded; the file is corrupt: {REMEDY}")
    known = _in_time(shown)
    return _index(known) if known else Index(len(shown), None, [0])


def _in_time(shown: list[tuple[int | None, bool]]) -> list[tuple[int, bool]]:
    """Sorted by time stamp; nothing where one is missing or stands twice."""
    known = sorted((time, key) for time, key in shown if time is not None)
    return known if len({time for time, _ in known}) == len(shown) else []


def _index(shown: list[tuple[int, bool]]) -> Index:
    keys = {number for number, (_, key) in enumerate(shown) if key}
    return Index(len(shown), [time for time, _ in shown], sorted({0, *keys}))


def _decoded(path: Path) -> Iterator[tuple[int | None, bool]]:
    """Of every frame, as decoding gives it: its time stamp, and whether decoding can begin there."""
    number = 0
    try:
        with opened(path) as container:
            for frame in container.decode(pictures(path, container)):
                yield frame.pts, bool(frame.key_frame)
                number += 1
    except av_library().FFmpegError as error:
        raise ValueError(f"{path}: frame {number} cannot be decoded ({error.strerror}); {REMEDY}") from None
