"""How good a trained model is: labels that it ranks first, ranks of held-out items, similarity of words and analogies."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import check, console
from .feeds.ratings import HeldOut, Histories

# Figures of ranked labels take `ids` (n, k), the labels that a model puts first, distinct, the likeliest first, -1 where it has
# no more; and `entries` (n, V) scipy CSR, an entry for each label that an example has. An example without labels has precision
# 0, is left out of recall and nDCG, and adds nothing to propensity-scored precision.
#
# They raise ValueError for no example, for entries as check.csr does, for arrays that do not fit together, for labels that
# stand twice in a row of `ids`, and, but for precision, where no example has a label.


def ranked(scores: Any, k: int) -> np.ndarray:
    """The k labels of the highest scores, (n, k) int32, the highest first, the lower number first among equals.

    scores  (n, V) array. ValueError for k outside 1 to V
    """
    scores = np.asarray(check.unmasked("scores", scores))
    if scores.ndim != 2 or not 1 <= k <= scores.shape[1]:
        raise ValueError(f"scores {scores.shape}, k {k}: expected scores (n, V) and k from 1 to V")
    return np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int32)


def precision(ids: np.ndarray, entries: Any, weight: np.ndarray | None = None) -> float:
    """precision@k: the share of the k labels put first that examples have; the mean over all, weighted by `weight` (n,)."""
    hits, _ = _hits("precision", ids, entries)
    return float(np.average(hits.sum(axis=1), weights=weight) / ids.shape[1])


def recall(ids: np.ndarray, entries: Any) -> float:
    """recall@k: the share of an example's labels that are among the k put first; the mean over examples with labels."""
    hits, entries = _hits("recall", ids, entries)
    own = np.diff(entries.indptr)
    return _mean("recall", hits.sum(axis=1) / np.maximum(own, 1), own > 0)


def ndcg(ids: np.ndarray, entries: Any) -> float:
    """nDCG@k: a hit at rank r = 1 .. k counts 1 / log2(r + 1), over what the best ranking of the example's labels counts;
    the mean over examples with labels (Järvelin and Kekäläinen 2002)."""
    hits, entries = _hits("ndcg", ids, entries)
    own = np.diff(entries.indptr)
    worth = 1 / np.log2(np.arange(ids.shape[1]) + 2)
    ideal = np.cumsum(worth)[np.clip(own, 1, len(worth)) - 1]
    return _mean("ndcg", hits @ worth / ideal, own > 0)


def propensities(entries: Any, a: float = 0.55, b: float = 1.5) -> np.ndarray:
    """How likely a label that applies was noted, (V,), from how often N_l of N training examples have it:

        1 / (1 + c e^(-a log(N_l + b))),    c = (log N - 1) (b + 1)^a

    entries  (N, V) CSR of the training examples
    a, b     0.55 and 1.5 where nothing is known; 0.5 and 0.4 for Wikipedia, 0.6 and 2.6 for Amazon

    Jain, Prabhu and Varma 2016, "Extreme multi-label loss functions for recommendation, tagging, ranking & other missing label
    applications". ValueError for fewer than 3 examples, for which c is not positive.
    """
    entries = check.csr("entries", entries)
    if entries.shape[0] < 3:
        raise ValueError(f"propensities: found {entries.shape[0]} training examples, expected at least 3")
    counts = np.bincount(entries.indices, minlength=entries.shape[1])
    c = (np.log(entries.shape[0]) - 1) * (b + 1) ** a
    rarity: np.ndarray = 1 / (1 + c * (counts + b) ** -a)
    return rarity


def propensity_precision(ids: np.ndarray, entries: Any, propensity: np.ndarray) -> float:
    """Propensity-scored precision@k, normalised: the sum of 1 / p_l over hits, over that of the best possible rankings.

    propensity  (V,) p_l, above 0: see `propensities`

    Jain et al. 2016; normalised over all examples at once, as the Extreme Classification Repository does it.
    """
    hits, entries = _hits("propensity_precision", ids, entries)
    if (
        np.shape(propensity) != (entries.shape[1],)
        or not (np.asarray(check.unmasked("propensity", propensity)) > 0).all()
    ):
        raise ValueError(f"propensity: found {np.shape(propensity)}, expected {entries.shape[1]} numbers above 0")
    worth = 1 / np.asarray(propensity)
    if not entries.nnz:
        raise ValueError("propensity_precision: no example has a label")
    row, each = np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr)), worth[entries.indices]
    order = np.lexsort((-each, row))
    best = np.arange(len(order)) - entries.indptr[row] < ids.shape[1]  # of each example's labels, those worth most
    most = np.bincount(row, np.where(best, each[order], 0), entries.shape[0])
    one = np.ones(len(ids))
    return float(one @ np.where(hits, worth[ids], 0).sum(axis=1)) / float(one @ most)


def _hits(name: str, ids: np.ndarray, entries: Any) -> tuple[np.ndarray, Any]:
    """(n, k) bool: which of the labels put first an example has; and the entries, checked."""
    entries = check.csr("entries", entries)
    n, k = ids.shape
    if not n:
        raise ValueError(f"{name}: found no example")
    if not k or entries.shape[0] != n or ids.max() >= entries.shape[1]:
        raise ValueError(
            f"{name}: found ids {ids.shape} and labels {entries.shape}, expected ids (n, k) of labels (n, V)"
        )
    rising = np.sort(ids, axis=1)
    if ((rising[:, 1:] == rising[:, :-1]) & (rising[:, 1:] >= 0)).any():
        raise ValueError(f"{name}: found a label twice in a row of ids, expected distinct ones")
    wide = np.int64(entries.shape[1])
    own = np.repeat(np.arange(n), np.diff(entries.indptr)) * wide + entries.indices
    return np.isin(np.arange(n)[:, None] * wide + ids, own) & (ids >= 0), entries


def _mean(name: str, figures: np.ndarray, counts: np.ndarray) -> float:
    """The mean over examples that count."""
    if not counts.any():
        raise ValueError(f"{name}: no example has a label")
    return float(np.average(figures, weights=counts))


Scores = Callable[[np.ndarray], np.ndarray]  # user ids (n,) -> scores (n, V), higher is better
NUMBERS = 2**23  # scores asked for at a time


def figures(
    scores: Scores, seen: Histories, held: HeldOut, k: int | Sequence[int] = 10, *, coverage: bool = True
) -> dict[str, float]:
    """How well scores rank what was held out, at one k or several, of any model, and how sure that is.

    scores  of all items for some users, see `Scores`: a product of factors, a row of a matrix, a model's own answer
    seen    what each user had, which is left out of the ranking, since a target among it would stand alone at rank 1
    held    items held out, one or several a user

    Returns recall@k, ndcg@k, mrr@k and map@k, see `of_users`, as means over `users`, who have held-out items that are new to
    them, with the `standard error` of each mean; coverage@k, the share of all items that are among the first k of some user;
    and `repeats`: items left out, which their users had before. Equal scores are ranked as if the target came first; among
    the k shown, those with lower ids come first.

    Raises ValueError as `ranks` does, and where no held-out item is new to its user.
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
    """Those of the held-out items that their users have not had before, each once."""
    classes = len(seen.items)
    had = np.repeat(np.arange(len(seen.users)), np.diff(seen.at)) * classes + seen.item
    pair = held.user.astype(np.int64) * classes + held.item
    first = np.zeros(len(pair), bool)
    first[np.unique(pair, return_index=True)[1]] = True
    new = first & ~np.isin(pair, had)
    return HeldOut(held.user[new], held.item[new])


def ranks(scores: Scores, seen: Histories, held: HeldOut, shown: Mapping[int, np.ndarray] | None = None) -> np.ndarray:
    """The rank of every held-out item, (n,) int64: 1 + how many items that its user has not had score strictly higher.

    scores  called for as many users at a time as bound memory, each once in a call; what it returns is not written to
    held    items new to their users, see `unseen`
    shown   of some k, which items are among the first k of any of the users, (V,) bool: these become true

    Shows its progress where it takes long. Raises ValueError for scores of another shape or that are NaN.
    """
    rank = np.empty(len(held.user), np.int64)
    block = max(NUMBERS // len(seen.items), 1)
    begins = range(0, len(rank), block)
    for first in console.bar(len(begins), "evaluating", "blocks", items=begins, passing=True):
        users, target = held.user[first : first + block], held.item[first : first + block]
        different, back = np.unique(users, return_inverse=True)
        alone = len(different) == len(users)  # then in the order given
        table = _scored(scores, seen, users) if alone else _scored(scores, seen, different)[back]
        higher = table > table[np.arange(len(users)), target][:, None]
        for row, user in enumerate(users):
            higher[row, seen.item[seen.at[user] : seen.at[user + 1]]] = False
        rank[first : first + block] = 1 + higher.sum(axis=1)
        for row in np.unique(users, return_index=True)[1] if shown else ():
            _show(shown, table[row], seen.item[seen.at[users[row]] : seen.at[users[row] + 1]])
    return rank


def _show(shown: Any, scores: np.ndarray, had: np.ndarray) -> None:
    """Note which items are the first k of a user, without what he had; of equal scores the lower ids."""
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
    """recall@k and ndcg@k of ranks (n,): means over users, see `of_users`."""
    each = of_users(rank, k, user)
    return {name: float(each[name].mean()) for name in (f"recall@{k}", f"ndcg@{k}")}


def of_users(rank: np.ndarray, k: int = 10, user: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Figures of each user by the ranks (n,) of his items: recall@k, ndcg@k, mrr@k and map@k, an array each.

    user  (n,) whose item each is; None: all of different users

    recall@k is the share of his items with a rank up to k; ndcg@k the sum of 1 / log2(rank + 1) over these, by what it would
    be if all were ranked first; mrr@k 1 / the lowest of these ranks, 0 without one; map@k the mean of the precision at each of
    these ranks, over as many of his items as have room among k. Of a user with one item recall is 0 or 1, and map is mrr.
    """
    if not len(rank):
        raise ValueError(
            "ranking: found no held-out item that is new to its user; expected users with at least 3 different items"
        )
    of = np.arange(len(rank)) if user is None else np.unique(user, return_inverse=True)[1]
    if of.max() + 1 == len(rank):
        of = np.arange(len(rank))  # as they come, on which the last bit of a mean depends
    many = np.bincount(of)
    near, room = rank <= k, np.minimum(many, k)
    order = np.lexsort((rank, of))
    place = np.empty(len(rank), np.int64)  # among his, from 1
    place[order] = np.arange(len(rank)) - np.repeat(np.cumsum(many) - many, many) + 1
    first = np.zeros(len(many))
    np.maximum.at(first, of, near / rank)
    ideal = np.cumsum(1 / np.log2(np.arange(2, k + 2)))[room - 1]
    precision = near * place / np.maximum(rank, place)  # items that score the same have one rank, and a place each
    return {
        f"recall@{k}": np.bincount(of, near) / many,
        f"ndcg@{k}": np.bincount(of, near / np.log2(rank + 1)) / ideal,
        f"mrr@{k}": first,
        f"map@{k}": np.bincount(of, precision) / room,
    }


# Rated pairs (WordSim-353, SimLex-999) and analogies (questions-words) count as by gensim's KeyedVectors (evaluate_word_pairs,
# evaluate_word_analogies): upper and lower case are the same, the most frequent form of a word answers for all, and what is
# asked about unknown words is left out.

BLOCK = 256  # questions answered at a time
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


def analogies(path: Path | str, words: Sequence[str], rows: np.ndarray, *, most_frequent: int = 30_000) -> Analogies:
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
        right = sum(_right(unit, form, known[first : first + BLOCK]) for first in range(0, len(known), BLOCK))
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
