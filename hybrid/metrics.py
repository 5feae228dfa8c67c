"""Metrics of trained models: label ranking, ranks of held-out items, word similarity and analogies."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import check, console
from .feeds.ratings import HeldOut, Histories

# Label metrics take `ids` (n, k), a model's top labels, distinct, most likely first, padded with -1; and `entries` (n, V)
# scipy CSR with an entry for each label of an example. An example without labels has precision 0, is excluded from recall and
# nDCG, and contributes nothing to propensity-scored precision.
#
# They raise ValueError for zero examples, invalid entries (see check.csr), mismatched arrays, and duplicate labels in a row
# of `ids`. All but precision also raise it if no example has a label.


def ranked(scores: Any, k: int) -> np.ndarray:
    """Returns the k labels with the highest scores, (n, k) int32, in descending order; ties by ascending id.

    scores  (n, V) array. ValueError for k outside 1 to V
    """
    scores = np.asarray(check.unmasked("scores", scores))
    if scores.ndim != 2 or not 1 <= k <= scores.shape[1]:
        raise ValueError(f"scores {scores.shape}, k {k}: expected scores (n, V) and k from 1 to V")
    return np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int32)


def precision(ids: np.ndarray, entries: Any, weight: np.ndarray | None = None) -> float:
    """Returns precision@k: the fraction of top-k labels that are correct; mean over examples, weighted by `weight` (n,)."""
    hits, _ = _hits("precision", ids, entries)
    return float(np.average(hits.sum(axis=1), weights=weight) / ids.shape[1])


def recall(ids: np.ndarray, entries: Any) -> float:
    """Returns recall@k: the fraction of an example's labels among the top k; mean over examples with labels."""
    hits, entries = _hits("recall", ids, entries)
    own = np.diff(entries.indptr)
    return _mean("recall", hits.sum(axis=1) / np.maximum(own, 1), own > 0)


def ndcg(ids: np.ndarray, entries: Any) -> float:
    """Returns nDCG@k, the mean over examples with labels (Järvelin and Kekäläinen 2002).
    A hit at rank r = 1 .. k counts 1 / log2(r + 1), divided by the ideal ranking's sum."""
    hits, entries = _hits("ndcg", ids, entries)
    own = np.diff(entries.indptr)
    worth = 1 / np.log2(np.arange(ids.shape[1]) + 2)
    ideal = np.cumsum(worth)[np.clip(own, 1, len(worth)) - 1]
    return _mean("ndcg", hits @ worth / ideal, own > 0)


def propensities(entries: Any, a: float = 0.55, b: float = 1.5) -> np.ndarray:
    """Returns label propensities (V,), from the N_l of N training examples that have label l:

        1 / (1 + c e^(-a log(N_l + b))),    c = (log N - 1) (b + 1)^a

    entries  (N, V) CSR of the training examples
    a, b     0.55 and 1.5 by default; 0.5 and 0.4 for Wikipedia, 0.6 and 2.6 for Amazon

    Jain, Prabhu and Varma 2016, "Extreme multi-label loss functions for recommendation, tagging, ranking & other missing
    label applications". ValueError for fewer than 3 examples, for which c is not positive.
    """
    entries = check.csr("entries", entries)
    if entries.shape[0] < 3:
        raise ValueError(f"propensities: found {entries.shape[0]} training examples, expected at least 3")
    counts = np.bincount(entries.indices, minlength=entries.shape[1])
    c = (np.log(entries.shape[0]) - 1) * (b + 1) ** a
    return 1 / (1 + c * (counts + b) ** -a)


def propensity_precision(ids: np.ndarray, entries: Any, propensity: np.ndarray) -> float:
    """Returns propensity-scored precision@k: the sum of 1 / p_l over hits, divided by that of the best possible rankings.

    propensity  (V,) p_l, above 0: see `propensities`

    Jain et al. 2016; normalised over all examples jointly, as in the Extreme Classification Repository.
    """
    hits, entries = _hits("propensity_precision", ids, entries)
    each_p = np.asarray(check.unmasked("propensity", propensity))
    if each_p.shape != (entries.shape[1],) or not (each_p > 0).all():
        raise ValueError(f"propensity: found {each_p.shape}, expected {entries.shape[1]} numbers above 0")
    worth = 1 / each_p
    if not entries.nnz:
        raise ValueError("propensity_precision: no example has a label")
    row, each = np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr)), worth[entries.indices]
    order = np.lexsort((-each, row))
    best = np.arange(len(order)) - entries.indptr[row] < ids.shape[1]  # the k labels of highest worth per example
    most = np.bincount(row, np.where(best, each[order], 0), entries.shape[0])
    one = np.ones(len(ids))
    return float(one @ np.where(hits, worth[ids], 0).sum(axis=1)) / float(one @ most)


def _hits(name: str, ids: np.ndarray, entries: Any) -> tuple[np.ndarray, Any]:
    """Returns the hits (n, k) bool, True where an example has the label, and the checked entries."""
    entries = check.csr("entries", entries)
    n, k = ids.shape
    if not n:
        raise ValueError(f"{name}: found no example")
    if not k or entries.shape[0] != n or ids.max() >= entries.shape[1]:
        raise ValueError(f"{name}: found ids {ids.shape} and labels {entries.shape}, expected (n, k) and (n, V)")
    rising = np.sort(ids, axis=1)
    if ((rising[:, 1:] == rising[:, :-1]) & (rising[:, 1:] >= 0)).any():
        raise ValueError(f"{name}: found a label twice in a row of ids, expected distinct ones")
    wide = np.int64(entries.shape[1])
    own = np.repeat(np.arange(n), np.diff(entries.indptr)) * wide + entries.indices
    return np.isin(np.arange(n)[:, None] * wide + ids, own) & (ids >= 0), entries


def _mean(name: str, figures: np.ndarray, counts: np.ndarray) -> float:
    """Returns the mean over examples with a nonzero count."""
    if not counts.any():
        raise ValueError(f"{name}: no example has a label")
    return float(np.average(figures, weights=counts))


Scores = Callable[[np.ndarray], np.ndarray]  # user ids (n,) -> scores (n, V), higher is better
NUMBERS = 2**23  # scores computed at a time


def figures(
    scores: Scores, seen: Histories, held: HeldOut, k: int | Sequence[int] = 10, *, coverage: bool = True
) -> dict[str, float]:
    """Returns ranking metrics of any scorer on held-out items, at one k or several, with standard errors.

    scores  of all items for some users, see `Scores`
    seen    each user's history; its items are excluded from the ranking, so a target among them would always have rank 1
    held    held-out items, one or several per user

    Returns recall@k, ndcg@k, mrr@k and map@k, see `of_users`, as means with their `standard error`. `users` counts the users
    with held-out items new to them; coverage@k is the fraction of items in some user's top k. `repeats` counts the held-out
    items skipped because their users had them. Targets win ties in ranks; in a top k, lower ids come first.

    Raises ValueError as `ranks` does, and if no held-out item is new to its user.
    """
    new, sizes = unseen(seen, held), [k] if isinstance(k, int) else list(k)
    shown = {size: np.zeros(len(seen.items), bool) for size in sizes} if coverage else {}
    rank = ranks(scores, seen, new, shown)
    found: dict[str, float] = {}
    for size in sizes:
        for name, each in of_users(rank, size, new.user).items():
            found[name] = float(each.mean())
            if len(each) > 1:
                found[f"{name} standard error"] = float(each.std(ddof=1) / np.sqrt(len(each)))
        found |= {f"coverage@{size}": float(shown[size].mean())} if coverage else {}
    repeats = len(held.user) - len(new.user)
    return found | {"users": len(np.unique(new.user)), "repeats": repeats}


def unseen(seen: Histories, held: HeldOut) -> HeldOut:
    """Returns the distinct held-out items that are not in their users' histories."""
    classes = len(seen.items)
    had = np.repeat(np.arange(len(seen.users)), np.diff(seen.at)) * classes + seen.item
    pair = held.user.astype(np.int64) * classes + held.item
    first = np.zeros(len(pair), bool)
    first[np.unique(pair, return_index=True)[1]] = True
    new = first & ~np.isin(pair, had)
    return HeldOut(held.user[new], held.item[new])


def ranks(scores: Scores, seen: Histories, held: HeldOut, shown: Mapping[int, np.ndarray] | None = None) -> np.ndarray:
    """Returns each held-out item's rank, (n,) int64: 1 + the number of unseen items with a strictly higher score.

    scores  called for blocks of distinct users that bound memory; its result is not modified
    held    items new to their users, see `unseen`
    shown   k -> (V,) bool; set to True for items in the top k of any user

    Shows progress if slow. Raises ValueError for scores of another shape or with NaN.
    """
    rank = np.empty(len(held.user), np.int64)
    block = max(NUMBERS // len(seen.items), 1)
    begins = range(0, len(rank), block)
    for first in console.bar(len(begins), "evaluating", "blocks", items=begins, passing=True):
        users, target = held.user[first : first + block], held.item[first : first + block]
        different, back = np.unique(users, return_inverse=True)
        alone = len(different) == len(users)  # keeps the original order
        table = _scored(scores, seen, users) if alone else _scored(scores, seen, different)[back]
        higher = table > table[np.arange(len(users)), target][:, None]
        for row, user in enumerate(users):
            higher[row, seen.item[seen.at[user] : seen.at[user + 1]]] = False
        rank[first : first + block] = 1 + higher.sum(axis=1)
        for row in np.unique(users, return_index=True)[1] if shown else ():
            _show(shown, table[row], seen.item[seen.at[users[row]] : seen.at[users[row] + 1]])
    return rank


def _show(shown: Any, scores: np.ndarray, had: np.ndarray) -> None:
    """Marks a user's top-k items, without his history; ties by ascending id."""
    left = np.ones(len(scores), bool)
    left[had] = False
    ids = np.flatnonzero(left)
    most = min(max(shown), len(ids))
    if not most:
        return
    row = scores[ids]
    near = np.flatnonzero(row >= np.partition(row, len(row) - most)[len(row) - most])
    best = ids[near[np.argsort(-row[near], kind="stable")]]
    for k, those in shown.items():
        those[best[:k]] = True


def _scored(scores: Scores, seen: Histories, users: np.ndarray) -> np.ndarray:
    table, expected = np.asarray(check.unmasked("scores", scores(users))), (len(users), len(seen.items))
    if table.shape != expected:
        raise ValueError(f"scores: found shape {table.shape}, expected {expected}: (users, items)")
    bad = np.isnan(table).any(axis=1)
    if bad.any():
        raise ValueError(f"scores: NaN for user {seen.users[users[bad.argmax()]]}; expected numbers")
    return table


def measures(rank: np.ndarray, k: int = 10, user: np.ndarray | None = None) -> dict[str, float]:
    """Returns recall@k and ndcg@k of ranks (n,): means over users, see `of_users`."""
    each = of_users(rank, k, user)
    return {name: float(each[name].mean()) for name in (f"recall@{k}", f"ndcg@{k}")}


def of_users(rank: np.ndarray, k: int = 10, user: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Returns per-user metrics from the ranks (n,) of held-out items: arrays recall@k, ndcg@k, mrr@k and map@k.

    user  (n,) user of each item; None: all different

    recall@k is the fraction of a user's items with rank at most k. ndcg@k is the sum of 1 / log2(rank + 1) over these,
    divided by its ideal value. mrr@k is 1 / the lowest of these ranks, 0 if none. map@k is the sum of the precision at each
    of these ranks, divided by min(items, k). For a user with one item, recall is 0 or 1 and map equals mrr.
    """
    if not len(rank):
        raise ValueError("ranking: found no held-out item new to its user; expected users of at least 3 distinct items")
    of = np.arange(len(rank)) if user is None else np.unique(user, return_inverse=True)[1]
    if of.max() + 1 == len(rank):
        of = np.arange(len(rank))  # original order, which fixes the last bit of a mean
    many = np.bincount(of)
    near, room = rank <= k, np.minimum(many, k)
    order = np.lexsort((rank, of))
    place = np.empty(len(rank), np.int64)  # position among the user's items, from 1
    place[order] = np.arange(len(rank)) - np.repeat(np.cumsum(many) - many, many) + 1
    first = np.zeros(len(many))
    np.maximum.at(first, of, near / rank)
    ideal = np.cumsum(1 / np.log2(np.arange(2, k + 2)))[room - 1]
    precision = near * place / np.maximum(rank, place)  # ties share a rank but have distinct places
    return {
        f"recall@{k}": np.bincount(of, near) / many,
        f"ndcg@{k}": np.bincount(of, near / np.log2(rank + 1)) / ideal,
        f"mrr@{k}": first,
        f"map@{k}": np.bincount(of, precision) / room,
    }


# Rated pairs (WordSim-353, SimLex-999) and analogies (questions-words) follow gensim's KeyedVectors (evaluate_word_pairs,
# evaluate_word_analogies): case is ignored, a word's most frequent form represents it, and items with unknown words are
# skipped.

BLOCK = 256  # questions answered in one batch
SYNTACTIC = "gram"  # prefix of the syntactic sections in questions-words; the others are semantic


class Agreement(NamedTuple):
    """Agreement of cosine similarities with human ratings of pairs.

    rho      Spearman's rank correlation
    known    number of pairs with both words in the vocabulary; unknown: fraction of the other pairs
    """

    rho: float
    known: int
    unknown: float


class Section(NamedTuple):
    """Counts of one section: right of asked; unknown: skipped because of an unknown word."""

    name: str
    right: int
    asked: int
    unknown: int

    @property
    def accuracy(self) -> float:
        """The fraction of right answers, NaN if nothing was asked."""
        return self.right / self.asked if self.asked else float("nan")


class Analogies(NamedTuple):
    """The sections of a file of analogies, and their sums."""

    sections: list[Section]
    semantic: Section
    syntactic: Section
    total: Section


def agreement(path: Path | str, words: Sequence[str], rows: np.ndarray) -> Agreement:
    """Compares with a file of rated pairs, word, word, score, separated by tabs or blanks; # begins a comment line.

    words by descending frequency, rows (V, D) float.

    Raises OSError; ValueError for malformed lines (with the number), fewer than two known pairs, constant cosines or scores.
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


def analogies(path: Path | str, words: Sequence[str], rows: np.ndarray, *, most_frequent: int = 30_000) -> Analogies:
    """Answers "a is to b as c is to ?" by 3CosAdd: the word nearest to b - a + c of unit vectors, except a, b and c.

    path           lines of four words, under lines ": section"
    most_frequent  vocabulary limit for questions and answers; words by descending frequency

    Raises OSError, and ValueError, with the line number, for malformed lines.

    Mikolov et al. 2013, arXiv:1301.3781; 3CosAdd: Levy and Goldberg 2014.
    """
    questions = _questions(path)
    words = words[:most_frequent]
    ids = _ids(words)
    form = np.array([ids[word.upper()] for word in words])  # the id of each word's most frequent form, ignoring case
    unit = _unit(rows[:most_frequent])
    sections = []
    for name, asked in questions.items():
        known = np.array([[ids[w] for w in question] for question in asked if all(w in ids for w in question)])
        right = sum(_right(unit, form, known[first : first + BLOCK]) for first in range(0, len(known), BLOCK))
        sections.append(Section(name, right, len(known), len(asked) - len(known)))
    syntactic = [section for section in sections if section.name.startswith(SYNTACTIC)]
    semantic = [section for section in sections if section not in syntactic]
    return Analogies(sections, _sum("semantic", semantic), _sum("syntactic", syntactic), _sum("total", sections))


def _right(unit: np.ndarray, form: np.ndarray, questions: np.ndarray) -> int:
    """Returns the number of correctly answered questions (n, 4)."""
    a, b, c, expected = questions.T
    cosines = (unit[b] - unit[a] + unit[c]) @ unit.T
    for given in (a, b, c):
        cosines[form == given[:, None]] = -np.inf
    return int((form[cosines.argmax(axis=1)] == expected).sum())


def _sum(name: str, parts: list[Section]) -> Section:
    return Section(name, sum(s.right for s in parts), sum(s.asked for s in parts), sum(s.unknown for s in parts))


def _ids(words: Sequence[str]) -> dict[str, int]:
    """Returns the first id of every upper-case word."""
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
    """Returns number and text of the non-blank lines."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8; expected UTF-8 text") from None
    return [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
