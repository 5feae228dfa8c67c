"""Figures of ranked labels, ranks of held-out items, rated pairs and analogies: by hand, and beside other libraries'."""

from itertools import chain
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hybrid import metrics
from hybrid.feeds.ratings import HeldOut, Histories
from hybrid.metrics import precision

HAS = sparse.csr_array(np.array([[1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]))
IDS = np.array([[1, 2], [3, 0], [0, -1]])


def test_precision_is_the_share_of_hits():
    has, ids = HAS, IDS
    assert precision(ids, has) == pytest.approx((1 + 1 + 0) / 6)
    assert precision(ids[:, :1], has) == pytest.approx(2 / 3)
    assert precision(ids, has, np.array([2.0, 0, 2])) == pytest.approx(0.25)
    assert precision(np.full((3, 1), -1), has) == 0
    with pytest.raises(ValueError, match="no example"):
        precision(ids[:0], has[:0])


def test_recall_and_ndcg_leave_out_who_has_nothing():
    third = 1 / np.log2(3)  # what a hit at rank 2 counts
    assert metrics.recall(IDS, HAS) == pytest.approx((1 / 2 + 1) / 2)
    assert metrics.ndcg(IDS, HAS) == pytest.approx((1 / (1 + third) + 1) / 2)
    assert metrics.ndcg(IDS[:, ::-1], HAS) == pytest.approx((third / (1 + third) + third) / 2)
    for figure in (metrics.recall, metrics.ndcg):
        with pytest.raises(ValueError, match="no example has a label"):
            figure(IDS[2:], HAS[2:])


def test_ndcg_is_that_of_scikit_learn():
    from sklearn.metrics import ndcg_score

    rng = np.random.default_rng(0)
    has, scores = rng.integers(0, 2, (20, 6)), rng.permuted(np.tile(np.arange(6.0), (20, 1)), axis=1)
    has[:, 0] = 1
    for k in (1, 3, 6):
        ids = metrics.ranked(scores, k)
        assert metrics.ndcg(ids, sparse.csr_array(has)) == pytest.approx(ndcg_score(has, scores, k=k))


def test_propensity_scored_precision():
    found = metrics.propensities(HAS, a=0.55, b=1.5)
    c = (np.log(3) - 1) * 2.5**0.55
    assert found[0] == pytest.approx(1 / (1 + c * 2.5**-0.55)) and found[2] == pytest.approx(1 / (1 + c * 1.5**-0.55))
    p = np.array([0.5, 0.25, 1, 0.2])  # labels 0, 1 and 3 are worth 2, 4 and 5
    assert metrics.propensity_precision(IDS, HAS, p) == pytest.approx((4 + 5) / (2 + 4 + 5))
    assert metrics.propensity_precision(IDS[:, :1], HAS, p) == pytest.approx((4 + 5) / (4 + 5))
    assert metrics.propensity_precision(IDS, HAS, np.ones(4)) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="expected 4 numbers above 0"):
        metrics.propensity_precision(IDS, HAS, p[:3])
    with pytest.raises(ValueError, match="no example has a label"):
        metrics.propensity_precision(IDS[2:], HAS[2:], p)
    with pytest.raises(ValueError, match="expected at least 3"):
        metrics.propensities(HAS[:2])


def test_what_does_not_fit_together():
    with pytest.raises(ValueError, match=r"found ids \(3, 2\) and labels \(2, 4\)"):
        precision(IDS, HAS[:2])
    with pytest.raises(ValueError, match="a label twice"):
        precision(np.array([[1, 1]]), HAS[:1])


def table(lists) -> Histories:
    at = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    users, item = [f"u{user}" for user in range(len(lists))], np.array(list(chain(*lists)), np.int32)
    return Histories(item, at, users, list("abcde"))


def plain_rank(scores, seen, target):
    """Candidates are the target and what the user has not had; the target stands behind none that scores the same."""
    candidates = [item for item in range(len(scores)) if item not in seen or item == target]
    return 1 + sum(scores[item] > scores[target] for item in candidates)


@given(st.data(), st.integers(1, 4))
def test_ranks_are_those_of_brute_force(data, block):
    item = st.integers(0, 4)
    lists = data.draw(st.lists(st.lists(item, max_size=6), min_size=1, max_size=6))
    n = len(lists)
    target = np.array(data.draw(st.lists(item, min_size=n, max_size=n)), np.int32)
    row = st.lists(st.integers(0, 3), min_size=5, max_size=5)
    scores = np.array(data.draw(st.lists(row, min_size=n, max_size=n)), np.float32)
    scores[scores == 0] = -np.inf
    before = scores.copy()
    users = np.arange(n, dtype=np.int32)[::-1]
    with mock.patch.object(metrics, "NUMBERS", 5 * block):
        found = metrics.ranks(lambda asked: scores[asked], table(lists), HeldOut(users, target))
    assert found.tolist() == [plain_rank(scores[u], lists[u], t) for u, t in zip(users, target, strict=True)]
    np.testing.assert_array_equal(scores, before)


def test_several_items_of_a_user_are_ranked_in_one_list_and_met_once():
    seen = table([[0], [1], [2]])
    held = HeldOut(np.array([0, 0, 0, 2], np.int32), np.array([1, 3, 3, 4], np.int32))
    asked = []

    def scores(users):
        asked.append(users.tolist())
        return np.tile(np.array([9, 1, 2, 3, 4], np.float32), (len(users), 1))

    assert metrics.unseen(seen, held).item.tolist() == [1, 3, 4]
    found = metrics.figures(scores, seen, held, k=3)
    assert asked == [[0, 2]]
    assert (found["users"], found["repeats"]) == (2, 1)
    assert found["recall@3"] == (1 / 2 + 1) / 2  # user 0: items 1 and 3 rank 4 and 2; user 2: item 4 ranks 2


@given(st.data(), st.integers(1, 3))
def test_figures_of_users_are_those_of_their_lists(data, k):
    """Against lists that are sorted and gone through item by item."""
    scores = np.array(data.draw(st.lists(st.permutations(range(5)), min_size=2, max_size=5)), np.float32)
    had = data.draw(st.lists(st.sets(st.integers(0, 4), max_size=2), min_size=len(scores), max_size=len(scores)))
    new = [data.draw(st.sets(st.sampled_from(sorted({*range(5)} - own)), min_size=1, max_size=3)) for own in had]
    user = np.repeat(np.arange(len(new), dtype=np.int32), [len(own) for own in new])
    held = HeldOut(user, np.array([item for own in new for item in own], np.int32))
    found = metrics.figures(lambda users: scores[users], table(had), held, k=[k, 4])
    expected, shown = [], set()
    for row, own, target in zip(scores, had, new, strict=True):
        best = [item for item in np.argsort(-row).tolist() if item not in own][:k]
        hits = [place for place, item in enumerate(best, 1) if item in target]
        most = min(k, len(target))
        ideal = sum(1 / np.log2(place + 1) for place in range(1, most + 1))
        precision = sum(number / place for number, place in enumerate(hits, 1)) / most
        gain = sum(1 / np.log2(place + 1) for place in hits) / ideal
        expected.append([len(hits) / len(target), gain, 1 / hits[0] if hits else 0, precision])
        shown |= {*best}
    for name, each in zip(("recall", "ndcg", "mrr", "map"), np.transpose(expected), strict=True):
        assert found[f"{name}@{k}"] == pytest.approx(each.mean())
        assert found[f"{name}@{k} standard error"] == pytest.approx(each.std(ddof=1) / len(each) ** 0.5)
    assert found[f"coverage@{k}"] == len(shown) / 5 and found["recall@4"] >= found[f"recall@{k}"]
    assert "cover" not in " ".join(metrics.figures(lambda users: scores[users], table(had), held, coverage=False))


def test_of_equal_scores_each_counts_at_a_place_of_its_own():
    found = metrics.of_users(np.array([1, 1, 4]), 2, np.array([3, 3, 3]))
    assert [float(each[0]) for each in found.values()] == [2 / 3, pytest.approx(2 / (1 + 1 / np.log2(3))), 1, 1]


def test_scores_of_a_wrong_shape_or_that_are_nan():
    held = HeldOut(np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    for shape in ((2, 4), (1, 5), (5,)):
        with pytest.raises(ValueError, match=r"scores: found shape .*, expected \(2, 5\)"):
            metrics.ranks(lambda users, shape=shape: np.zeros(shape), table([[], []]), held)
    with pytest.raises(ValueError, match="scores: NaN for user u1"):
        metrics.ranks(lambda users: np.where(users[:, None] == 1, np.nan, np.zeros((2, 5))), table([[], []]), held)


def test_what_a_user_had_before_is_counted_apart():
    seen = table([[0, 1], [2, 3, 2], [4], []])
    held = HeldOut(np.array([0, 1, 2, 3], np.int32), np.array([1, 4, 4, 0], np.int32))
    scores = np.array([[9, 0, 1, 1, 1], [5, 4, 9, 9, 3], [9, 9, 9, 9, 0], [1, 2, 2, 0, 0]], np.float32)
    assert metrics.unseen(seen, held).user.tolist() == [1, 3]
    found = metrics.figures(lambda users: scores[users], seen, held, k=2)
    assert (found["users"], found["repeats"], found["recall@2"]) == (2, 2, 0)
    assert metrics.figures(lambda users: scores[users], seen, held, k=3)["recall@3"] == 1


WORDS = "man woman king queen boy girl Man apple".split()
ROWS = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 2], [1, 1, 2], [1, 0, -2], [1, 1, -2], [-1, 3, 1], [-1, -1, -1]], "f4")


def written(tmp_path, content: str):
    (tmp_path / "file").write_text(content)
    return tmp_path / "file"


@pytest.fixture(scope="module")
def trained():
    """b of a number lies off its a by about the same step; upper case forms, some before theirs, are noise."""
    rng = np.random.default_rng(5)
    words = [f"{'aAbB'[number % 4]}{number // 4}" for number in range(400)]
    rows = rng.normal(size=(100, 24)).repeat(4, axis=0)
    rows[2::4] += rng.normal(size=24)
    rows += rng.normal(size=rows.shape) * np.tile([0.4, 2, 0.4, 2], 100)[:, None]
    order = np.argsort(rng.random(400) + np.tile([0, 0.7, 0, 0.7], 100))
    return [words[number] for number in order], rows[order].astype(np.float32)


def keyed(words, rows):
    models = pytest.importorskip("gensim.models")
    theirs = models.KeyedVectors(rows.shape[1])
    theirs.add_vectors(words, rows)
    return theirs


def test_agreement_is_gensims(tmp_path, trained):
    rng = np.random.default_rng(6)
    pairs = [(f"a{rng.integers(110)}", f"B{rng.integers(110)}", rng.random()) for _ in range(300)]
    path = written(tmp_path, "".join(f"{a}\t{b}\t{score:.2f}\n" for a, b, score in pairs))
    _, spearman, percent = keyed(*trained).evaluate_word_pairs(str(path))
    found = metrics.agreement(path, *trained)
    assert found.rho == pytest.approx(spearman[0], abs=1e-6)
    assert 100 * found.unknown == pytest.approx(percent) and found.known > 200


def test_analogies_are_gensims(tmp_path, trained):
    rng = np.random.default_rng(7)
    lines = []
    for number in range(2000):
        lines += [f": {'gram' * (number // 1000)}{number}"] if number % 500 == 0 else []
        i, j = rng.integers(110, size=2)
        lines.append(f"a{i} b{i} A{j} B{j}")
    path = written(tmp_path, "\n".join(lines))
    for most_frequent in (30_000, 350):
        _, sections = keyed(*trained).evaluate_word_analogies(str(path), restrict_vocab=most_frequent)
        found = metrics.analogies(path, *trained, most_frequent=most_frequent)
        assert len(sections) == len(found.sections) + 1
        for ours, theirs in zip(found.sections, sections, strict=False):
            right, wrong = len(theirs["correct"]), len(theirs["incorrect"])
            assert ours[:3] == (theirs["section"], right, right + wrong)
        assert 0.1 < found.total.accuracy < 0.9
        assert found.syntactic.asked > 100 < found.semantic.asked


PAIRS = [
    ("", ROWS, "file: no pairs"),
    ("man woman\n", ROWS, "file, line 1: found 'man woman', expected word, word, score"),
    ("man woman nan\n", ROWS, "file, line 1: the score is nan"),
    ("man pear 3\nking queen 2\n", ROWS, "file: 1 of 2 pairs are in the vocabulary; expected at least 2"),
    ("man woman 3\nking queen 3\n", ROWS, "the scores of all 2 pairs are equal"),
    ("man woman 3\nking queen 2\n", 0 * ROWS, "the cosines of all 2 pairs are equal"),
]
ANALOGIES = [
    ("", ROWS, "file: no questions"),
    ("man woman king queen\n", ROWS, 'file, line 1: found .*, expected four words, under a line ": section"'),
    (": family\nman woman king\n", ROWS, "file, line 2: found 'man woman king'"),
]
FILES = [*((metrics.agreement, *pairs) for pairs in PAIRS), *((metrics.analogies, *each) for each in ANALOGIES)]


@pytest.mark.parametrize("judge, content, rows, message", FILES)
def test_files_that_say_nothing_of_vectors(tmp_path, judge, content, rows, message):
    with pytest.raises(ValueError, match=message):
        judge(written(tmp_path, content), WORDS, rows)
