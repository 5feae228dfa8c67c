"""How good word vectors are: rated pairs (WordSim-353, SimLex-999) and analogies (questions-words).

Both count as gensim's KeyedVectors does (evaluate_word_pairs, evaluate_word_analogies): upper and lower case are the
same, the most frequent form of a word answers for all, and what is asked about unknown words is left out.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

SYNTACTIC = "gram"  # sections of questions-words whose names begin so are syntactic, the others semantic


class Agreement(NamedTuple):
    """How far cosines of vectors order pairs as people do.

    rho      Spearman's rank correlation
    known    pairs whose two words are in the vocabulary; unknown: the share of pairs that are not
    """

    rho: float
    known: int
    unknown: float


class Section(NamedTuple):
    """Questions answered right, of those asked; unknown: not asked, since a word is not in the vocabulary."""

    name: str
    right: int
    asked: int
    unknown: int

    @property
    def accuracy(self) -> float:
        """Share of right answers, NaN where nothing was asked."""
        return self.right / self.asked if self.asked else float("nan")


class Analogies(NamedTuple):
    """The sections of a file of analogies, and their sums."""

    sections: list[Section]
    semantic: Section
    syntactic: Section
    total: Section


def agreement(path: Path | str, words: Sequence[str], rows: np.ndarray) -> Agreement:
    """Compare with a file of pairs: word, word, score, between tabs or blanks; lines that begin with # are left out.

    words by descending frequency, rows (V, D) float.

    Raises OSError, and ValueError for lines of another form (with the line number), for fewer than two known pairs, and
    where all cosines or all scores are equal, since they order nothing.
    """
    from scipy.stats import spearmanr

    pairs = _pairs(path)
    ids = _ids(words)
    known = [(ids[a], ids[b], score) for a, b, score in pairs if a in ids and b in ids]
    if len(known) < 2:
        raise ValueError(f"{path}: {len(known)} of {len(pairs)} pairs are in the vocabulary; expected at least 2")
    first, second, scores = (np.array(column) for column in zip(*known, strict=True))
    used = np.unique(np.concatenate([first, second]))
    unit = _unit(rows[used])
    cosines = (unit[np.searchsorted(used, first)] * unit[np.searchsorted(used, second)]).sum(axis=1)
    for name, values in (("cosines", cosines), ("scores", scores)):
        if np.ptp(values) == 0:
            raise ValueError(f"{path}: the {name} of all {len(known)} pairs are equal; expected an order; untrained?")
    return Agreement(float(spearmanr(scores, cosines).statistic), len(known), 1 - len(known) / len(pairs))


def analogies(
    path: Path | str, words: Sequence[str], rows: np.ndarray, *, most_frequent: int = 30_000, block: int = 256
) -> Analogies:
    """Answer "a is to b as c is to ?" by 3CosAdd: the word nearest to b - a + c, unit vectors, without a, b and c.

    path           lines of four words, under lines ": section"
    most_frequent  only this many words are known, asked about and answered with; words by descending frequency

    Raises OSError, and ValueError, with the line number, for lines of another form.

    Mikolov et al. 2013, arXiv:1301.3781; 3CosAdd: Levy and Goldberg 2014.
    """
    questions = _questions(path)
    words = words[:most_frequent]
    ids = _ids(words)
    form = np.array([ids[word.upper()] for word in words])  # the id that answers for a word, whatever its case
    unit = _unit(rows[:most_frequent])
    sections = []
    for name, asked in questions.items():
        known = np.array([[ids[w] for w in question] for question in asked if all(w in ids for w in question)])
        right = sum(_right(unit, form, known[first : first + block]) for first in range(0, len(known), block))
        sections.append(Section(name, right, len(known), len(asked) - len(known)))
    syntactic = [section for section in sections if section.name.startswith(SYNTACTIC)]
    semantic = [section for section in sections if section not in syntactic]
    return Analogies(sections, _sum("semantic", semantic), _sum("syntactic", syntactic), _sum("total", sections))


def _right(unit: np.ndarray, form: np.ndarray, questions: np.ndarray) -> int:
    """How many of the questions (n, 4) are answered right."""
    a, b, c, expected = questions.T
    cosines = (unit[b] - unit[a] + unit[c]) @ unit.T
    for given in (a, b, c):
        cosines[form == given[:, None]] = -np.inf
    return int((form[cosines.argmax(axis=1)] == expected).sum())


def _sum(name: str, sections: list[Section]) -> Section:
    return Section(
        name, sum(s.right for s in sections), sum(s.asked for s in sections), sum(s.unknown for s in sections)
    )


def _ids(words: Sequence[str]) -> dict[str, int]:
    """The first id of every word in upper case."""
    return {words[id].upper(): id for id in reversed(range(len(words)))}


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


def _pairs(path: Path | str) -> list[tuple[str, str, float]]:
    pairs = []
    for number, line in _lines(path):
        if line.startswith("#"):
            continue
        fields = line.split("\t") if "\t" in line else line.split()
        try:
            first, second, score = (field.strip() for field in fields)
            pairs.append((first.upper(), second.upper(), float(score)))
        except ValueError:
            raise ValueError(f"{path}, line {number}: found {line!r}, expected word, word, score") from None
        if not np.isfinite(pairs[-1][2]):
            raise ValueError(f"{path}, line {number}: the score is {score}, expected a finite number")
    if not pairs:
        raise ValueError(f"{path}: no pairs; expected lines of word, word, score")
    return pairs


def _questions(path: Path | str) -> dict[str, list[list[str]]]:
    sections: dict[str, list[list[str]]] = {}
    name = None
    for number, line in _lines(path):
        if line.startswith(":"):
            name = line.lstrip(": ")
            sections.setdefault(name, [])
            continue
        question = line.upper().split()
        if name is None or len(question) != 4:
            raise ValueError(f'{path}, line {number}: found {line!r}, expected four words, under a line ": section"')
        sections[name].append(question)
    if not any(sections.values()):
        raise ValueError(f"{path}: no questions; expected lines of four words")
    return sections


def _lines(path: Path | str) -> list[tuple[int, str]]:
    """Number and text of the lines that are not blank."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8; expected UTF-8 text") from None
    return [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
