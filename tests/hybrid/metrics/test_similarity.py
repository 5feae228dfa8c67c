import numpy as np
import pytest

from hybrid import metrics

WORDS = "man woman king queen boy girl Man apple".split()
ROWS = np.array(
    [[1, 0, 0], [1, 1, 0], [1, 0, 2], [1, 1, 2], [1, 0, -2], [1, 1, -2], [-1, 3, 1], [-1, -1, -1]], np.float32
)


def written(tmp_path, content: str):
    (tmp_path / "file").write_text(content)
    return tmp_path / "file"


def test_agreement_by_hand(tmp_path):
    # Cosines: king queen 0.91, man woman 0.71, man king 0.45, so one of three pairs of ranks is out of order
    path = written(tmp_path, "# Word 1\tWord 2\tHuman\nking\tqueen\t9\nMAN\twoman\t3.5\n\nman king 4\nman pear 1\n")
    found = metrics.agreement(path, WORDS, ROWS)
    assert found.known == 3
    assert found.unknown == 0.25
    assert found.rho == pytest.approx(0.5)


def test_analogies_by_hand(tmp_path):
    content = ": family\nman woman king queen\nMan Woman Boy Girl\nman king woman apple\n"
    content += ": gram1-x\nman woman girl pear\n: gram2-y\nking man queen woman\n"
    found = metrics.analogies(written(tmp_path, content), WORDS, ROWS)
    assert found.sections == [("family", 2, 3, 0), ("gram1-x", 0, 0, 1), ("gram2-y", 1, 1, 0)]
    assert found.semantic == ("semantic", 2, 3, 0)
    assert found.syntactic == ("syntactic", 1, 1, 1)
    assert found.total == ("total", 3, 4, 1)
    assert found.total.accuracy == 0.75
    assert np.isnan(found.sections[1].accuracy)


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


def check_agreement(path, words, rows, **options):
    _, spearman, percent = keyed(words, rows).evaluate_word_pairs(str(path), **options)
    found = metrics.agreement(path, words, rows)
    assert found.rho == pytest.approx(spearman[0], abs=1e-6)
    assert 100 * found.unknown == pytest.approx(percent)
    return found


def check_analogies(path, words, rows, most_frequent):
    _, sections = keyed(words, rows).evaluate_word_analogies(str(path), restrict_vocab=most_frequent)
    found = metrics.analogies(path, words, rows, most_frequent=most_frequent, block=100)
    assert len(sections) == len(found.sections) + 1
    for ours, theirs in zip(found.sections, sections, strict=False):
        assert ours[:3] == (
            theirs["section"],
            len(theirs["correct"]),
            len(theirs["correct"]) + len(theirs["incorrect"]),
        )
    return found


def test_agreement_is_gensims(tmp_path, trained):
    rng = np.random.default_rng(6)
    pairs = [(f"a{rng.integers(110)}", f"B{rng.integers(110)}", rng.random()) for _ in range(300)]
    found = check_agreement(written(tmp_path, "".join(f"{a}\t{b}\t{score:.2f}\n" for a, b, score in pairs)), *trained)
    assert found.known > 200


def test_analogies_are_gensims(tmp_path, trained):
    rng = np.random.default_rng(7)
    lines = []
    for number in range(2000):
        lines += [f": {'gram' * (number // 1000)}{number}"] if number % 500 == 0 else []
        i, j = rng.integers(110, size=2)
        lines.append(f"a{i} b{i} A{j} B{j}")
    path = written(tmp_path, "\n".join(lines))
    for most_frequent in (30_000, 350):
        found = check_analogies(path, *trained, most_frequent)
        assert 0.1 < found.total.accuracy < 0.9
        assert found.syntactic.asked > 100 < found.semantic.asked


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "file: no pairs"),
        ("man woman\n", "file, line 1: found 'man woman', expected word, word, score"),
        ("man woman nan\n", "file, line 1: the score is nan"),
        ("man pear 3\nking queen 2\n", "file: 1 of 2 pairs are in the vocabulary; expected at least 2"),
        ("man woman 3\nking queen 3\n", "the scores of all 2 pairs are equal"),
    ],
)
def test_files_that_are_no_pairs(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        metrics.agreement(written(tmp_path, content), WORDS, ROWS)


def test_vectors_that_order_nothing(tmp_path):
    path = written(tmp_path, "man woman 3\nking queen 2\n")
    with pytest.raises(ValueError, match="the cosines of all 2 pairs are equal"):
        metrics.agreement(path, WORDS, np.zeros_like(ROWS))


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "file: no questions"),
        ("man woman king queen\n", 'file, line 1: found .*, expected four words, under a line ": section"'),
        (": family\nman woman king\n", "file, line 2: found 'man woman king'"),
    ],
)
def test_files_that_are_no_analogies(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        metrics.analogies(written(tmp_path, content), WORDS, ROWS)
