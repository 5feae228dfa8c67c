"""Sparse features with any number of labels: LIBSVM's format, and that of extreme classification, which has a header.

Each line is an example: its labels separated by commas, then its features as number:value. The format of extreme classification
starts with a line of the numbers of examples, features and labels, and numbers features from 0. LIBSVM's has none and numbers
them from 1.
"""

import itertools
import re
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import check
from ..storage import files

PLAIN = 2**20  # features and labels that a file without a header may have, however few occur
MOST = check.ID  # features and labels, whose numbers are int32
_NUMBER = "[0-9]{1,18}"  # feature or label number; more digits are rejected
_HEADER = re.compile(rf"\s*({_NUMBER})[ \t]+({_NUMBER})[ \t]+({_NUMBER})\s*")
_PAIRS = re.compile(rf"(?:[ \t]+{_NUMBER}:[^\s:_]+)*[ \t]*")
_PAIR = re.compile(rf"{_NUMBER}:[^\s:_]+")


class Points(NamedTuple):
    """N examples.

    features  scipy CSR (N, F) float32
    labels    scipy CSR (N, L) float32, 1 for each label of an example
    first     the number of the first feature in the file
    """

    features: Any
    labels: Any
    first: int


def begins(path: str | Path) -> bool:
    """Returns True if the first line of a file that is not empty has the form of a header or of an example.

    Raises OSError for an unreadable file, ValueError for invalid UTF-8.
    """
    lines = (line.partition("#")[0] for _, line in files.numbered_lines(path))
    line = next(filter(str.strip, lines), "")
    words = line.split()
    pairs = words[":" not in words[0] :] if words else []
    return bool(_HEADER.fullmatch(line) or (pairs and all(map(_PAIR.fullmatch, pairs))))


def load(
    path: str | Path, *, features: int | None = None, labels: int | None = None, first: int | None = None
) -> Points:
    """Reads a file of LIBSVM or of extreme classification, which starts with a header "examples features labels".

    features, labels  their numbers; None: from the header, or else the largest that occurs. The test part of data without a
                      header needs those of the training part, and its `first`
    first             the number of the first feature in a file without a header; None: 0 if it occurs, else 1

    Text after a # is ignored. Raises OSError for an unreadable file; ValueError, with the line, for a malformed line, a
    duplicate feature, a number out of range or not finite, and a wrong number of examples. Without header and sizes, a number
    of a million or more that is a hundred times the entries is rejected: each number takes memory.
    """
    lines = files.numbered_lines(path)
    head = next(lines, (0, ""))
    matched = _HEADER.fullmatch(head[1])
    sizes = tuple(map(int, matched.groups())) if matched else None
    got = _Read(path, sizes)
    for number, line in lines if matched else itertools.chain([head], lines):
        got.add(number, line)
    if not got.examples or (sizes and sizes[0] != got.examples):
        raise ValueError(f"{path}: {got.examples} examples, expected {sizes[0] if sizes else 'some'}; is it truncated?")
    if sizes:
        features = sizes[1] if features is None else features
        labels = sizes[2] if labels is None else labels
        first = 0
    return got.points(features, labels, first)


class _Read:
    """The content of a file read so far; sizes: the examples, features and labels of the header."""

    def __init__(self, path: str | Path, sizes: tuple[int, ...] | None):
        self.path, self.sizes, self.examples = path, sizes, 0
        self.most_feature, self.most_label = (sizes[1], sizes[2] - 1) if sizes else (MOST, MOST - 1)
        self.label, self.label_at = array("q"), array("q", [0])
        self.feature, self.value, self.feature_at = array("q"), array("f"), array("q", [0])

    def add(self, number: int, line: str) -> None:
        """Reads one line; raises ValueError with its number."""
        line = line.partition("#")[0]
        whole = self.sizes is not None and self.examples >= self.sizes[0]
        if not line.strip() and (self.sizes is None or whole):
            return
        if whole:
            raise ValueError(f"{self.path}, line {number}: more than the {self.examples} examples of the header")
        word = line.split(None, 1)[0] if line.strip() and not line[0].isspace() else ""
        names, rest = (word, line[len(word) :]) if ":" not in word else ("", " " + line)
        try:
            self._labels(names)
            self._features(rest)
        except ValueError as error:
            raise ValueError(f"{self.path}, line {number}: {error}") from None
        self.examples += 1

    def _labels(self, names: str) -> None:
        for name in dict.fromkeys(names.split(",") if names else []):
            if not re.fullmatch(_NUMBER, name) or int(name) > self.most_label:
                raise ValueError(f"the label {name!r}, expected a whole number from 0 to {self.most_label}")
            self.label.append(int(name))
        self.label_at.append(len(self.label))

    def _features(self, rest: str) -> None:
        if not _PAIRS.fullmatch(rest):
            wrong = next((word for word in rest.split() if not _PAIR.fullmatch(word)), rest[:40])
            raise ValueError(f"found {wrong[:40]!r}, expected feature:value")
        words = rest.replace(":", " ").split()
        numbers = [int(word) for word in words[::2]]
        with np.errstate(over="ignore"):  # an overflow is infinite, and rejected as such
            values = np.array(words[1::2], np.float64).astype(np.float32)
        if not np.isfinite(values).all():
            raise ValueError(f"the value {words[1::2][np.isfinite(values).argmin()]!r}, expected a finite number")
        if numbers and max(numbers) > self.most_feature:
            raise ValueError(f"the feature {max(numbers)}, expected at most {self.most_feature}")
        if len(set(numbers)) < len(numbers):
            raise ValueError("a feature occurs twice, expected once")
        self.feature.extend(numbers)
        self.value.frombytes(values.tobytes())
        self.feature_at.append(len(self.feature))

    def points(self, features: int | None, labels: int | None, first: int | None) -> Points:
        feature, label = (np.frombuffer(part, np.int64) for part in (self.feature, self.label))
        if first is None:
            first = 0 if (feature == 0).any() else 1
        wide = self._csr("features", feature - first, self.feature_at, np.frombuffer(self.value, np.float32), features)
        return Points(wide, self._csr("labels", label, self.label_at, np.ones(len(label), np.float32), labels), first)

    def _csr(self, name: str, index: np.ndarray, at: Any, data: np.ndarray, wide: int | None) -> Any:
        from scipy import sparse

        most = int(index.max()) + 1 if len(index) else 0
        limit = MOST if wide is None else min(wide, MOST)
        if most > limit:
            raise ValueError(f"{self.path}: {name}: found the number {most - 1}, expected at most {limit - 1}")
        if wide is None and most > max(PLAIN, 100 * len(index)):
            raise ValueError(
                f"{self.path}: {name}: found the number {most - 1} among {len(index)} entries, expected numbers without such "
                f'gaps; {name}={most}, or a first line "examples features labels", says that they are meant'
            )
        if len(index) and index.min() < 0:
            raise ValueError(
                f"{self.path}: a feature 0, expected numbers from 1 on, those of the training examples (first=1)"
            )
        shape = (self.examples, max(most, 1) if wide is None else limit)
        kind = np.int32 if len(index) <= MOST else np.int64  # the index dtype of scikit-learn
        rows = sparse.csr_array((data, index.astype(np.int32), np.frombuffer(at, np.int64).astype(kind)), shape)
        rows.sort_indices()
        return rows
