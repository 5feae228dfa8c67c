"""Examples with any number of labels, from files: texts become weighted bags of words, numbered features stay as they are."""

import collections
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import check
from ..feeds.text import TOKENS
from ..formats import fasttext, svm
from ..storage import document
from ..train.store import write_json

NAMES, WORDS = FILES = ("labels.json", "words.json")


class Found(NamedTuple):
    """What a file holds.

    features  the tokens of each text; or scipy CSR (n, F)
    labels    the names of each text's labels; or scipy CSR (n, V)
    """

    features: Any
    labels: Any

    def __len__(self) -> int:
        return len(self.features) if isinstance(self.features, list) else int(self.features.shape[0])

    def of(self, rows: np.ndarray) -> "Found":
        """Some examples."""
        if isinstance(self.features, list):
            return Found([self.features[row] for row in rows], [self.labels[row] for row in rows])
        return Found(self.features[rows], self.labels[rows])


class Known(NamedTuple):
    """What a run knows of its examples.

    words     of texts, and what each counts for; None: features have numbers
    features  how many there are
    labels    their names; None: they have numbers
    classes   how many labels there are
    """

    words: dict[str, float] | None
    features: int
    labels: list[str] | None
    classes: int


class Examples(NamedTuple):
    """n examples: scipy CSR features (n, F) float32, labels (n, V)."""

    features: Any
    labels: Any


def load(path: str, options: Mapping[str, Any], known: Known | None = None) -> Found:
    """A file of examples; known: of the run that it is read for. ValueError and OSError as hybrid.formats raises them."""
    if options["format"] == "svm":
        read = svm.load(path, features=known and known.features, labels=known and known.classes)
        return Found(read.features, read.labels)
    texts = fasttext.load(path)
    return Found(cut(texts.texts, options), texts.labels)


def cut(texts: Sequence[str], options: Mapping[str, Any]) -> list[list[str]]:
    """The tokens of each text, in lower case."""
    tokens = TOKENS[options["tokens"]]
    return [tokens(text.lower()) for text in texts]


def learned(path: str, found: Found, options: Mapping[str, Any]) -> Known:
    """What there is to know of the examples to learn from; ValueError where it is too little."""
    if options["format"] == "svm":
        known = Known(None, found.features.shape[1], None, found.labels.shape[1])
    else:
        words = _words(found.features, options["min_count"])
        names = sorted({name for own in found.labels for name in own})
        known = Known(words, len(words), names, len(names))
    if known.classes < 2 or not known.features:
        raise ValueError(
            f"{path}: found {known.classes} labels and {known.features} words or features, expected at least 2 and 1"
        )
    return known


def _words(texts: list[list[str]], min_count: int) -> dict[str, float]:
    """log((1 + n) / (1 + d)) + 1 of every word that d of the n texts have."""
    met = collections.Counter(word for text in texts for word in text)
    has = collections.Counter(word for text in texts for word in set(text))
    idf = np.log((1 + len(texts)) / (1 + np.array([has[word] for word in sorted(has)]))) + 1
    return {word: float(one) for word, one in zip(sorted(has), idf, strict=True) if met[word] >= min_count}


def counted(found: Found, known: Known) -> Examples:
    """As matrices; words and labels that are not known are left out."""
    if known.words is None:
        return Examples(found.features, found.labels)
    place = {name: at for at, name in enumerate(known.labels or [])}
    rows = [{place[name]: 1.0 for name in own if name in place} for own in found.labels]
    return Examples(weighed(found.features, known.words), _csr(rows, known.classes))


def weighed(texts: list[list[str]], words: Mapping[str, float]) -> Any:
    """Bags of words: counts times weights, of length 1; (n, F) CSR."""
    place = {word: at for at, word in enumerate(words)}
    rows = []
    for text in texts:
        counts = collections.Counter(word for word in text if word in place)
        row = {place[word]: count * words[word] for word, count in counts.items()}
        length = np.sqrt(sum(value * value for value in row.values()))
        rows.append({at: value / length for at, value in row.items()})
    return _csr(rows, len(place))


def _csr(rows: list[dict[int, float]], columns: int) -> Any:
    from scipy import sparse

    at = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    ids = np.array([place for row in rows for place in row], np.int32)
    made = sparse.csr_array(
        (np.array([v for row in rows for v in row.values()], np.float32), ids, at), (len(rows), columns)
    )
    made.sort_indices()
    return made


def keep(folder: Path, known: Known) -> None:
    """Write what is known into a run's folder."""
    write_json(folder / NAMES, {"labels": known.labels, "classes": known.classes})
    write_json(folder / WORDS, {"words": known.words, "features": known.features})


def kept(folder: Path) -> Known:
    """What a run's folder tells."""
    labels, words = (document.read(folder / name) for name in (NAMES, WORDS))
    try:
        known = Known(**labels, **words)
        check.whole("classes", known.classes, 2)
        check.whole("features", known.features, 1)
        fits = known.labels is None or (document.words(known.labels) and len(known.labels) == known.classes)
        counts = {} if known.words is None else dict(known.words)
        if not fits or not all(isinstance(count, int | float) for count in counts.values()):
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(f"{folder / NAMES}, {WORDS}: not what a run of labels keeps; the files were altered") from None
    return known
