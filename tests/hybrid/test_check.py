import numpy as np
import pytest

from hybrid import ArrayFeed, FullReadout, IterableFeed, Units, check, metrics, ratings, trees, vectors
from hybrid.feeds.text import Corpus, Text
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.use.vectors import Vectors

ONE, TWO = np.ma.masked_array([1, 2, 3], [0, 1, 0]), np.ma.masked_array(np.eye(3), np.eye(3) > 0)
MASKED = {  # each lost the mask: what was masked counted
    "a feed's ids": lambda: ArrayFeed(ONE, [0, 1, 0]),
    "a feed's target": lambda: ArrayFeed([0, 1, 0], ONE),
    "a feed's weight": lambda: ArrayFeed([0, 1, 0], [0, 1, 0], weight=ONE),
    "a batch": lambda: IterableFeed([(ONE, np.array([0, 1, 0]))]),
    "ratings": lambda: ratings.from_columns([1, 1, 2], ONE),
    "weights of ratings": lambda: ratings.from_columns([1, 1, 2], [1, 2, 1], weight=ONE),
    "a frame": lambda: ratings.from_frame({"user": [1, 1, 2], "item": ONE}),
    "counts": lambda: FullReadout(ONE, 4),
    "ids of a corpus": lambda: Corpus.from_ids(ONE, Vocabulary.build([["a"] * 4, ["b"] * 3])),
    "sizes": lambda: Units(count=3, inputs=ONE, hidden=2, outputs=2),
    "vectors": lambda: Vectors(["a", "b", "c"], TWO),
    "a file of vectors": lambda: vectors.save("never", ["a", "b", "c"], TWO),
    "vectors of a tree": lambda: trees.clustered(TWO),
    "scores": lambda: metrics.ranked(TWO, 1),
}


@pytest.mark.parametrize("use", MASKED)
def test_a_mask_is_not_lost(use, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"\w+: found a masked array, expected a plain one; \w+\.filled\(...\) makes"):
        MASKED[use]()


TABLE = {"a": ["b c", "d e"], "f": ["g", "h"]}
TABLES = {  # of each the names of the columns were taken
    "texts": lambda table: Text(table),
    "words": lambda table: Vectors(table, np.eye(2)),
    "words of a file": lambda table: vectors.save("never", table, np.eye(2)),
}


@pytest.mark.parametrize("use", TABLES)
def test_a_table_is_no_list_of_its_columns(use, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frames = [pytest.importorskip(name).DataFrame(TABLE) for name in ("pandas", "polars")]
    for table in (TABLE, *frames):
        with pytest.raises(ValueError, match=r"(\w+): found \w+, expected a list; \1\[COLUMN\].tolist\(\) makes one"):
            TABLES[use](table)


@pytest.mark.parametrize("value", [0, 7, 2.0, True, "3"])
def test_whole_refuses(value):
    with pytest.raises(ValueError, match=r"n: found .*, expected a whole number from 1 to 6"):
        check.whole("n", value, 1, 6)


@pytest.mark.parametrize("value", [-0.1, np.nan, "1", True, 3.5e38, 10**400])
def test_number_refuses(value):
    with pytest.raises(ValueError, match=r"rate: found .*, expected a finite number of at least 0"):
        check.number("rate", value, 0)
    assert check.number("rate", np.float32(3.4e38), 0) == np.float32(3.4e38)


@pytest.mark.parametrize(
    "value, message",
    [
        ([[1.0, 2.0]], r"x: found list, expected an array float32 \(any, 2\); numpy.asarray\(x, dtype=numpy.float32\)"),
        (np.ones((4, 3), "f4"), r"x: found float32 \(4, 3\), expected float32 \(any, 2\): 2 along axis 1, not 3$"),
        (np.ones((4, 2)), r"x: found float64 \(4, 2\), expected float32 \(any, 2\); x.astype\(numpy.float32\) makes"),
        (np.ones((2, 4), "f4").T, r"x: found strides \(4, 16\), expected C order; numpy.ascontiguousarray\(x\) makes"),
    ],
)
def test_array_names_what_is_wrong_and_the_remedy_that_mends_that(value, message):
    with pytest.raises(ValueError, match=message):
        check.array("x", value, (None, 2), np.float32)


def test_indices_are_judged_before_they_are_cast():
    for limit in (5, 2**31):
        with pytest.raises(IndexError, match=r"ids\[1\]: found 4294967297, expected 0 to"):
            check.indices("ids", [0, 2**32 + 1], limit)
    with pytest.raises(ValueError, match=r"ids: found float64 \(2,\), expected whole numbers"):
        check.indices("ids", [0.5, 1], 5)
    with pytest.raises(ValueError, match=r"ids: found rows of different lengths, expected an array of numbers"):
        check.indices("ids", [[0, 1], [2]], 5)
    with pytest.raises(ValueError, match=r"ids: found object"):
        check.indices("ids", [0, 2**70], 5)
    assert check.indices("ids", [], 5).shape == (0,)
    found = check.indices("ids", np.array([[4, 0]], np.uint8), 5)
    assert found.dtype == np.int32 and found.tolist() == [[4, 0]]


@pytest.mark.parametrize(
    "places, message",
    [
        ([0, 2_000_000_000], r"bag_at\[1\]: found 2000000000, expected 3, the number of ids"),
        ([1, 3], r"bag_at\[0\]: found 1, expected 0, where the first bag begins"),
        ([0, 2, 1, 3], r"bag_at\[2\]: found 1 after 2, expected offsets in ascending order"),
        ([0, -1, 3], r"bag_at\[1\]: found -1 after 0"),
        (np.array([0, 2**63 + 5, 3], np.uint64), r"bag_at\[2\]: found 3 after 9223372036854775813"),
    ],
)
def test_bags_refuses_places_that_do_not_cut_the_ids(places, message):
    with pytest.raises(ValueError, match=message):
        check.bags("bag_at", places, 3)


def test_a_row_of_whole_numbers():
    assert check.row("clusters", [3, 1]).tolist() == [3, 1] and check.row("clusters", []).size == 0
    for wrong in ([[1, 2], [3, 4]], 5, [0.5], ["a"], [[1], [2, 3]]):
        with pytest.raises(ValueError, match=r"clusters: found .*, expected one row of whole numbers"):
            check.row("clusters", wrong)
