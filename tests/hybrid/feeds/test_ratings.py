import io
import sys
import zipfile
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hybrid.feeds import ratings
from hybrid.feeds.ratings import Ratings
from tests.data import real

ROWS = [("7", "x", 5, 30), ("3", "y", 1, 20), ("7", "y", 2, 10), ("3", "z", 4, 20), ("9", "y", 3, 1)]
USERS, ITEMS = ["7", "3", "9"], ["y", "x", "z"]  # by first appearance; most rated first, then by name


def written(tmp_path, content, name="ratings"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def by_name(found: Ratings):
    named = zip(found.user, found.item, found.time, strict=True)
    return [(found.users[user], found.items[item], time) for user, item, time in named]


TIMED = [(user, item, time) for user, item, _, time in ROWS]
BY_ROW = [(user, item, row) for row, (user, item, _, _) in enumerate(ROWS)]
FORMATS = {
    "u.data": ("\n".join("\t".join(map(str, row)) for row in ROWS), TIMED),
    "u.data, blank lines": ("\r\n\r\n".join("\t".join(map(str, row)) for row in ROWS) + "\r\n\r\n", TIMED),
    "ratings.dat": ("\n".join("::".join(map(str, row)) for row in ROWS) + "\n", TIMED),
    "csv": ("userId,movieId,rating,timestamp\n" + "".join(f"{u},{i},{r},{t}\n" for u, i, r, t in ROWS), TIMED),
    "csv, other order": ("Timestamp, ITEM_ID ,User\n" + "".join(f"{t}, {i},{u} \n" for u, i, _, t in ROWS), TIMED),
    "csv without times": ("user,item\n" + "".join(f"{u},{i}\n" for u, i, _, _ in ROWS), BY_ROW),
    "csv, quoted": ("\ufeffuser,item\n" + "".join(f'"{u}","{i}"\n' for u, i, _, _ in ROWS), BY_ROW),
    "csv with dates": (
        "user;item;rating;date\n" + "".join(f"{u};{i};{r};1970-01-01T00:00:{t:02}Z\n" for u, i, r, t in ROWS),
        [(user, item, time * 1_000_000) for user, item, time in TIMED],
    ),
    "tabs with a header": ("user_id\titem_id\n" + "".join(f"{u}\t{i}\n" for u, i, _, _ in ROWS), BY_ROW),
}


@pytest.mark.parametrize("content, expected", FORMATS.values(), ids=FORMATS)
def test_formats(tmp_path, content, expected):
    found = ratings.load(written(tmp_path, content))
    assert by_name(found) == expected
    assert (found.users, found.items) == (USERS, ITEMS)
    assert found.user.dtype == found.item.dtype == np.int32


CHOSEN = {
    "names of the header": ("who,stars,what,when", "who,what,when"),
    "numbers of a header with known names": ("user,rating,item,whatever", "1,3,4"),
    "numbers": (None, "1,3,4"),
    "blanks about them": ("who, stars,what , when", "who, what,when "),
}


@pytest.mark.parametrize("header, columns", CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize("separator", [",", ";", "\t", "::", " "], ids=["comma", "semicolon", "tab", "colons", "blank"])
def test_columns_by_option(tmp_path, header, columns, separator):
    if separator == " " and header and ", " in header:
        pytest.skip("blanks separate the fields here")
    lines = [] if header is None else [header.replace(",", separator)]
    lines += [separator.join(map(str, (user, stars, item, time))) for user, item, stars, time in ROWS]
    found = ratings.load(written(tmp_path, "\n".join(lines)), columns.split(","))
    assert by_name(found) == TIMED


def test_lines_of_user_and_item(tmp_path):
    path = written(tmp_path, "".join(f"{user} {item}\n" for user, item, _, _ in ROWS))
    assert by_name(ratings.load(path, ("1", "2"))) == BY_ROW


@pytest.mark.parametrize(
    "columns, message",
    [
        (
            ["who", "item"],
            "no column 'who'; found the columns 'user', 'item', 'timestamp'; expected user, item and time",
        ),
        (["1", "4"], "no column '4'; found 3 columns"),
        (["0", "1"], "no column '0'"),
        (["user"], "columns: found user, expected two or three that differ"),
        (["1", "2", "2"], "columns: found 1,2,2, expected two or three that differ"),
    ],
)
def test_columns_that_are_not_there(tmp_path, columns, message):
    with pytest.raises(ValueError, match=message):
        ratings.load(written(tmp_path, CSV), columns)


def test_dates_order_the_histories(tmp_path):
    times = ["2021-03-04", "2021-03-04 00:00:01", "2021-03-04T00:00:02.5+00:00", "2021-03-04T02:00:01+02:00"]
    rows = "".join(f"u,{item},{time}\n" for item, time in zip("abcd", times, strict=True))
    found = ratings.load(written(tmp_path, "user,item,date\n" + rows))
    assert found.time.tolist() == [1614816000000000 + offset for offset in (0, 1_000_000, 2_500_000, 1_000_000)]


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


def test_parquet_without_its_reader(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ValueError, match="r: a Parquet file is read with pyarrow; pip install pyarrow, or write it as CSV"
    ):
        ratings.load(written(tmp_path, b"PAR1 and so on", "r"))


def test_a_truncated_parquet_file(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="r: no Parquet table"):
        ratings.load(written(tmp_path, b"PAR1 and no more", "r"))


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


class Missing:
    """As pandas writes what is missing, which equals nothing and has no truth."""

    def __str__(self):
        return "<NA>"

    def __eq__(self, other):
        raise TypeError("boolean value of NA is ambiguous")


def test_names_that_look_like_what_is_missing():
    assert ratings.from_columns(["nan", "None"], ["a", "b"]).users == ["nan", "None"]
    with pytest.raises(ValueError, match=r"user\[1\]: found .*Missing.*, expected a name"):
        ratings.from_columns(np.array(["a", Missing()], object), ["b", "c"])


@pytest.mark.parametrize(
    "columns, message",
    [
        (([1, 2], [1]), r"item: found int64 \(1,\), expected a column \(2,\)"),
        (([[1, 2]], [[1, 2]]), r"user: found int64 \(1, 2\), expected a column \(1,\)"),
        (([1.0, np.nan], [1, 2]), r"user\[1\]: found nan, expected a name"),
        ((["a", None], [1, 2]), r"user\[1\]: found None"),
        ((["a", "b"], ["c", " "]), r"item\[1\]: found ' '"),
        (([1, 2], [1, 2], [1, np.inf]), r"time\[1\]: found inf, expected a time"),
        (([1, 2], [1, 2], np.array(["NaT", "2020-01-01"], "M8[D]")), r"time\[0\]: found NaT"),
        (([1, 2], [1, 2], ["2020-01-01", "2020-01-02"]), "time: found <U10, expected numbers or datetime64"),
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


def test_histories_of_something_else():
    with pytest.raises(ValueError, match=r"ratings: found dict, expected Ratings, as load\(path\), from_columns"):
        ratings.histories({"user": [1]})


def test_times_keep_their_digits(tmp_path):
    first = 1_700_000_000_000_000_001  # float64 has no such number
    path = written(tmp_path, f"user,item,timestamp\n1,a,{first + 1}\n1,b,{first}\n")
    assert ratings.load(path).time.tolist() == [first + 1, first]
    assert ratings.load(written(tmp_path, "user,item,timestamp\n1,a,0.5\n1,b,2\n")).time.tolist() == [0.5, 2]


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.coo_array])
def test_sparse_matrix(tmp_path, kind):
    matrix = sparse.coo_matrix(([1, 2, 0, 3, 1], ([4, 4, 2, 0, 0], [1, 3, 0, 3, 5])), (6, 6))  # one is a stored zero
    sparse.save_npz(tmp_path / "m.npz", kind(matrix))
    found = ratings.load(tmp_path / "m.npz")
    assert {pair[:2] for pair in by_name(found)} == {("4", "1"), ("4", "3"), ("0", "3"), ("0", "5")}
    assert found.items == ["3", "1", "5"]
    assert found.time.tolist() == [0, 1, 2, 3]


def test_sparse_matrix_keeps_the_order_of_the_file(tmp_path):
    sparse.save_npz(tmp_path / "m.npz", sparse.coo_matrix(([1, 1, 1], ([0, 0, 0], [5, 2, 3])), (1, 6)))
    assert [item for _, item, _ in by_name(ratings.load(tmp_path / "m.npz"))] == ["5", "2", "3"]


CSV = "user,item,timestamp\n1,a,5\n"


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "ratings: empty; expected ratings"),
        ("\n\n", "ratings: empty; expected ratings"),
        ("user,item\n", "ratings: no ratings; expected one a line"),
        ("user,item\n1,a\n2,a\n", "ratings: 1 different items; expected at least 2"),
        (CSV + "1,b\n", "line 3: 2 fields, expected 3 as in line 1; is it cut short?"),
        (CSV + "1,b,3,4\n", "line 3: 4 fields, expected 3"),
        (CSV + "1,b,soon\n", "line 3: the timestamp is 'soon'; expected a number"),
        (CSV + "1,b,nan\n", "line 3: the timestamp is 'nan'"),
        ("user,item,date\n1,a,2020-01-01\n1,b,7\n", "line 3: the timestamp is '7'; expected a date such as"),
        ("user,item,time\n1,a,5\n1,b,2020-01-01\n", "line 3: the timestamp is '2020-01-01'; expected a number"),
        (CSV + ",b,3\n", "line 3: the user is empty"),
        (CSV + "\n2, ,3\n", "line 4: the item is empty"),
        (CSV + '1,"b,3\n', "line 3: unexpected end of data"),
        ("1\t2\t3\t881250949\n1\t3\t3\n", "line 2: 3 fields, expected 4 as in line 1"),
        ("1::2::3::881250949\n1::3::3::8812::5\n", "line 2: 5 fields, expected 4"),
        (
            "who,what\n1,2\n",
            "no user column; found the columns 'who', 'what'; expected a header .*--columns NAME,NAME,NAME",
        ),
        ("user,what\n1,2\n", "no item column; found the columns 'user', 'what'"),
        ("1,2,5\n", "no user column; found the columns '1', '2', '5'"),
        (b"user,item\n\xff\xfe,1\n", "not UTF-8"),
        (b"PK\3\4 and no more", "no scipy sparse matrix .* expected a file of scipy.sparse.save_npz"),
    ],
)
def test_files_that_are_no_ratings(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        ratings.load(written(tmp_path, content))


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
        archive(a=np.arange(3)),
        archive(a=np.array([{"an": "object"}], dtype=object)),
        matrix_file(data=np.array([1, {}], dtype=object)),
        matrix_file(indices=[0, 3]),
        matrix_file(indices=[-1, 2]),
        matrix_file(indptr=[0, 5, 2]),
        matrix_file(indptr=[0, 1]),
        matrix_file(format=b"nonsense"),
        matrix_file()[:-30],
        b"",
    ],
)
def test_archives_that_are_no_matrix(tmp_path, content):
    with pytest.raises(ValueError, match=r"m\.npz: no scipy sparse matrix"):
        ratings.load(written(tmp_path, content, "m.npz"))


def test_altered_archives(tmp_path):
    content = bytearray(matrix_file())
    with zipfile.ZipFile(io.BytesIO(content)) as whole:
        at = whole.getinfo("indices.npy").header_offset
    content[at + 170] ^= 1  # within the array's bytes or their header
    with pytest.raises(ValueError, match=r"m\.npz"):
        ratings.load(written(tmp_path, bytes(content), "m.npz"))


def test_an_empty_matrix(tmp_path):
    sparse.save_npz(tmp_path / "m.npz", sparse.csr_matrix((3, 4)))
    with pytest.raises(ValueError, match=r"no ratings: the matrix \(3, 4\) is all zero"):
        ratings.load(tmp_path / "m.npz")


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ratings.load(tmp_path / "nowhere")


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


def test_digest_sees_everything():
    data = Ratings(
        *(np.array(column, np.int32) for column in ([0, 0, 1], [0, 1, 0], [0, 1, 2])), ["a", "b"], ["x", "y"]
    )
    changes = [{"user": data.user[[0, 2, 1]]}, {"item": 1 - data.item}, {"users": ["a", "c"]}, {"items": ["x", "z"]}]
    digests = {ratings.histories(data._replace(**change)).sha256 for change in [{}, *changes]}
    assert len(digests) == 5


def test_movielens():
    data = ratings.load(real("ml-100k/u.data"))
    assert (len(data.user), len(data.users), len(data.items)) == (100_000, 943, 1682)
    found = ratings.split(ratings.histories(data))
    assert (len(found.train.item), len(found.seen.item)) == (98_114, 99_057)
    assert len(found.valid.user) == len(found.test.user) == 943
    assert data.users[0] == "196"
    assert data.items[0] == "50"  # Star Wars, 583 ratings
