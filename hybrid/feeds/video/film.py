"""Films of frames: .mp4, .gif, or a directory of .png, each written atomically."""

import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ... import check
from ...storage import files
from .clips.video_file import av_library


class Film:
    """A film that is written frame by frame:

        with Film("out.mp4", rate=25) as film:
            film.write(image)

    path  ends in .mp4 or .gif; without a suffix: a directory of .png
    rate  frames per second

    The file appears under its name at the end of the `with`, unless that failed, and replaces one of that name. A directory is
    replaced only if it is empty. Raises ValueError for another suffix, a frame unlike the first or no frame, and OSError,
    naming the path, if it cannot be written.
    """

    def __init__(self, path: str | Path, rate: float):
        self.path, self.rate = Path(path), check.number("rate", rate, 0.01)
        suffix = self.path.suffix.lower()
        if suffix not in KINDS:
            raise ValueError(f"{self.path}: ends in {suffix!r}; expected .mp4, .gif, or none for a directory of .png")
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"{self.path}: there is no directory {self.path.parent}; make it first")
        if self.path.is_dir() and (suffix or any(self.path.iterdir())):
            raise FileExistsError(f"{self.path}: is a directory that is not empty; give another name")
        self._part = files.part(self.path)
        self._kind = KINDS[suffix]
        self._writer: Any = None  # of KINDS
        self._shape: tuple[int, ...] | None = None

    def __enter__(self) -> "Film":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._writer:
                self._attempt(self._writer.close)
            if kind is None:
                if not self._writer:
                    raise ValueError(f"{self.path}: no frame was written, so there is no film")
                self._attempt(os.replace, self._part, self.path)
        finally:
            if self._part.is_dir():
                shutil.rmtree(self._part)
            else:
                self._part.unlink(missing_ok=True)

    def write(self, frame: np.ndarray) -> None:
        """Adds a frame: (rows, columns, 3) uint8, or (rows, columns, 1) for grey."""
        given: Any = frame
        shape: tuple[int, ...] = given.shape if isinstance(given, np.ndarray) and given.dtype == np.uint8 else ()
        if len(shape) != 3 or shape[2] not in (1, 3) or (self._shape and shape != self._shape):
            found = f"{given.dtype} {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
            raise ValueError(f"frame: found {found}, expected uint8 {self._shape or '(rows, columns, 3)'}")
        if self._writer is None:
            self._shape, self._writer = shape, self._attempt(self._kind, self._part, self.rate)
        self._attempt(self._writer.write, np.broadcast_to(frame, (*shape[:2], 3)))

    def _attempt(self, act: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return act(*arguments)
        except OSError as error:
            raise OSError(error.errno, f"{self.path}: cannot be written ({error.strerror or error})") from None


class _Mp4:
    def __init__(self, path: Path, rate: float):
        self.av = av_library()
        self.container = self.av.open(str(path), "w", format="mp4", options={"movflags": "faststart"})
        codec = "libx264" if "libx264" in self.av.codecs_available else "mpeg4"
        self.stream: Any = self.container.add_stream(codec, rate=Fraction(rate).limit_denominator(1001))
        self.stream.pix_fmt = "yuv420p"  # supported by every player; needs even sizes
        # x264's macroblock tree reads uninitialised memory if rows are no multiple of 16, so the bytes differ between runs
        best = {"crf": "18", "x264-params": "no-mbtree=1"}
        self.stream.options = best if codec == "libx264" else {"qscale": "3"}
        self.stream.codec_context.thread_count = 1  # the cores are for training
        self.started = False

    def write(self, frame: np.ndarray) -> None:
        rows, columns = frame.shape[:2]
        even = np.pad(frame, ((0, rows % 2), (0, columns % 2), (0, 0)), mode="edge")
        if not self.started:
            self.stream.height, self.stream.width = even.shape[:2]
            self.started = True
        picture = self.av.VideoFrame.from_ndarray(even, format="rgb24").reformat(format="yuv420p", threads=1)
        self.container.mux(self.stream.encode(picture))

    def close(self) -> None:
        try:
            self.container.mux(self.stream.encode())
        finally:
            self.container.close()


class _Gif:
    """A GIF whose frames stay in memory until the end, each with its own palette, since Pillow writes all together."""

    def __init__(self, path: Path, rate: float):
        self.path = path
        self.pictures: list[Any] = []
        self.duration = max(20, round(100 / rate) * 10)  # ms; GIF counts hundredths, and viewers slow down below two

    def write(self, frame: np.ndarray) -> None:
        from PIL import Image

        self.pictures.append(Image.fromarray(np.ascontiguousarray(frame)).quantize(256))

    def close(self) -> None:
        first, *others = self.pictures
        first.save(self.path, "GIF", save_all=True, append_images=others, duration=self.duration, loop=0)


class _Pngs:
    def __init__(self, path: Path, rate: float):
        self.path, self.count = path, 0
        path.mkdir()

    def write(self, frame: np.ndarray) -> None:
        from PIL import Image

        Image.fromarray(np.ascontiguousarray(frame)).save(self.path / f"{self.count:06d}.png")
        self.count += 1

    def close(self) -> None:
        pass


KINDS: dict[str, Any] = {".mp4": _Mp4, ".gif": _Gif, "": _Pngs}
