"""Ratings of files and columns, and the histories that they make (hybrid/feeds/interactions.py)."""

import io
import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hybrid.feeds import ratings
from hybrid.feeds.ratings import Ratings
from tests.support.few_ratings import BY_ROW, ITEMS, ROWS, TIMED, USERS, by_name, written


def test_parquet(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    user, item, stars, time = (list(column) for column in zip(*ROWS, strict=True))
    columns = {"user": user, "item": item, "stars": stars, "timestamp": time}
    parquet.write_table(arrow.table(columns), tmp_path / "r")
    assert by_name(ratings.load(tmp_path / "r")) == TIMED
    renamed = {"who": [int(u) for u in user], "what": item, "when": arrow.array(time, arrow.timestamp("ms"))}
    parquet.write_table(arrow.table(renamed), tmp_path / "r")
    assert by_name(ratings.load(tmp_path / "r", ("who", "what", "when"))) == TIMED
    with pytest.raises(ValueError, match="no user column; found the columns 'who', 'what', 'when'"):
        ratings.load(tmp_path / "r")
    missing = {"user": ["a", None], "item": ["b", "c"]}
    parquet.write_table(arrow.table(missing), tmp_path / "r")
    with pytest.raises(ValueError, match=r"r: user\[1\]: found None, expected a name or number"):
        ratings.load(tmp_path / "r")


USER, ITEM, STARS, WHEN = (list(column) for column in zip(*ROWS, strict=True))


@pytest.mark.parametrize(
    "user, item, time",
    [
        (USER, ITEM, WHEN),
        (np.array(USER), np.array(ITEM, object), np.array(WHEN, float)),
        (np.array(USER, int), np.array(ITEM), np.array(WHEN, "M8[s]")),
    ],
    ids=["lists", "objects and floats", "numbers and datetime64"],
)
def test_columns_of_a_program(user, item, time):
    found = ratings.from_columns(user, item, time)
    assert by_name(found) == TIMED and (found.users, found.items) == (USERS, ITEMS)
    assert by_name(ratings.from_columns(user, item)) == BY_ROW


@pytest.mark.parametrize(
    "columns, message",
    [
        (([1, 2], [1]), r"item: found int64 \(1,\), expected a column \(2,\)"),
        (([1.0, np.nan], [1, 2]), r"user\[1\]: found nan, expected a name"),
        (([1, 2], [1, 2], [1, np.inf]), r"time\[1\]: found inf, expected a time"),
        (([1, 2], [1, 2], np.array(["NaT", "2020-01-01"], "M8[D]")), r"time\[0\]: found NaT"),
        (([1, 2], [1, 2], ["2020-01-01", "2020-01-02"]), "time: found <U10, expected numbers or datetime64"),
        (([1, 2], [1, 2], None, [1, -1]), r"weight\[1\]: found -1, expected a number of at least 0"),
        (([1, 2], [1, 2], None, [1, 1e300]), r"weight\[1\]: found 1e\+300, expected .* finite in float32"),
    ],
)
def test_columns_that_are_no_ratings(columns, message):
    with pytest.raises(ValueError, match=message):
        ratings.from_columns(*columns)


def test_a_matrix_of_a_program():
    found = ratings.from_matrix(sparse.csr_array(([1, 0, 2], ([1, 0, 1], [2, 0, 1])), (2, 3)))
    assert {pair[:2] for pair in by_name(found)} == {("1", "1"), ("1", "2")}
    with pytest.raises(ValueError, match="matrix: found ndarray, expected a scipy sparse matrix"):
        ratings.from_matrix(np.eye(3))


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_matrix, sparse.coo_array])
def test_sparse_matrix(tmp_path, kind):
    matrix = sparse.coo_matrix(([1, 2, 0, 3, 1], ([4, 4, 2, 0, 0], [1, 3, 0, 3, 5])), (6, 6))  # one is a stored zero
    sparse.save_npz(tmp_path / "m.npz", kind(matrix))
    found = ratings.load(tmp_path / "m.npz")
    assert {pair[:2] for pair in by_name(found)} == {("4", "1"), ("4", "3"), ("0", "3"), ("0", "5")}
    assert found.items == ["3", "1", "5"]
    assert found.time.tolist() == [0, 1, 2, 3]


def test_what_a_file_is_its_content_says_whatever_its_name(tmp_path):
    content = io.BytesIO()
    sparse.save_npz(content, sparse.coo_matrix(([1, 1], ([0, 1], [2, 0])), (2, 3)))
    assert ratings.load(written(tmp_path, content.getvalue(), "matrix.data")).items == ["0", "2"]
    table = written(tmp_path, b"user,item\nada,tea\nbob,pie\n", "table.data")
    assert ratings.load(table).items == ["pie", "tea"]


def archive(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def matrix_file(**changes) -> bytes:
    parts = {"format": b"csr", "shape": [2, 3], "indptr": [0, 1, 2], "indices": [0, 2], "data": [1, 1]}
    return archive(**(parts | changes))


@pytest.mark.parametrize(
    "content",
    [
        archive(a=np.array([{"an": "object"}], dtype=object)),
        matrix_file(data=np.array([1, {}], dtype=object)),
        matrix_file(indices=[0, 3]),
        matrix_file(indptr=[0, 5, 2]),
        matrix_file(format=b"nonsense"),
        matrix_file()[:-30],
        b"",
    ],
)
def test_archives_that_are_no_matrix(tmp_path, content):
    with pytest.raises(ValueError, match=r"m\.npz: no .npz that can be read"):
        ratings.load(written(tmp_path, content, "m.npz"))


@st.composite
def random_ratings(draw):
    rows = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=30))
    user, item, time = (np.array(column) for column in zip(*rows, strict=True))
    return Ratings(user.astype(np.int32), item.astype(np.int32), time, list("abcd"), list("uvwxyz"))


def plain_histories(data: Ratings):
    """Of each user the items by time, and by row where times are equal."""
    rows = range(len(data.user))
    for user in range(len(data.users)):
        mine = sorted((data.time[row], row) for row in rows if data.user[row] == user)
        yield [int(data.item[row]) for _, row in mine]


def split(table):
    return [table.item[a:b].tolist() for a, b in pairwise(table.at)]


@given(random_ratings())
def test_histories_are_those_of_brute_force(data):
    assert split(ratings.histories(data)) == list(plain_histories(data))


@given(random_ratings())
def test_split_is_that_of_brute_force(data):
    found = ratings.split(ratings.histories(data))
    expected = list(plain_histories(data))
    assert split(found.train) == [items[:-2] if len(items) >= 3 else items for items in expected]
    assert split(found.seen) == [items[:-1] if len(items) >= 3 else items for items in expected]
    for held, back in ((found.valid, -2), (found.test, -1)):
        wanted = [(user, items[back]) for user, items in enumerate(expected) if len(items) >= 3]
        assert list(zip(held.user, held.item, strict=True)) == wanted
        assert held.user.dtype == held.item.dtype == np.int32
    for table in (found.train, found.seen):
        assert (table.item.dtype, table.at.dtype) == (np.int32, np.int64)


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "r")
    with pytest.raises(OSError, match="r: found no regular file"):
        ratings.load(tmp_path / "r")
