"""Who is told every point of a run's curve: a file of JSON lines, TensorBoard."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from ..storage import atomic
from .job import Job
from .tensorboard import Board


class Observer(Protocol):
    """Is told points of a curve; closed at the end of the run, by which way ever that ends."""

    def point(self, point: Mapping[str, Any]) -> None:
        """A point was added to the curve."""

    def close(self) -> None:
        """Free what is held."""


class JsonLines:
    """The curve as a file that grows, a point a line, which other programs can follow while the run learns.

    points  those that are known when training starts; what the file holds beyond them, of ticks that were lost when the
            run was killed, is removed
    """

    def __init__(self, path: Path, points: Iterable[Mapping[str, Any]]):
        atomic.write(path, [_line(point) for point in points])
        self._path, self._file = path, path.open("ab")

    def point(self, point: Mapping[str, Any]) -> None:
        """Write a line."""
        with atomic.naming(self._path):
            self._file.write(_line(point))
            self._file.flush()

    def close(self) -> None:
        """Close the file, through to the disk: a report that is written later does not outlive its points."""
        with atomic.naming(self._path), self._file:
            self._file.flush()
            os.fsync(self._file.fileno())


class TensorBoard:
    """TensorBoard's event files: figures of every point, and the job's pictures."""

    def __init__(self, folder: Path, job: Job, first: int):
        self._board, self._job = Board(folder, first), job

    def point(self, point: Mapping[str, Any]) -> None:
        """Write figures and pictures."""
        self._board.write(point[self._job.unit], self._job.figures(point), self._job.pictures(point))

    def close(self) -> None:
        """Close the file."""
        self._board.close()


def _line(point: Mapping[str, Any]) -> bytes:
    return json.dumps(point).encode() + b"\n"
