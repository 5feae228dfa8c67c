"""Ratings of files of every kind, of columns and of data frames, and the histories that they make."""

import datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hybrid.feeds import ratings
from hybrid.feeds.ratings import Ratings

ROWS = [("7", "x", 5, 30), ("3", "y", 1, 20), ("7", "y", 2, 10), ("3", "z", 4, 20), ("9", "y", 3, 1)]
USERS, ITEMS = ["7", "3", "9"], ["y", "x", "z"]  # by first appearance; most rated first, then by name
TIMED = [(user, item, time) for user, item, _, time in ROWS]
BY_ROW = [(user, item, row) for row, (user, item, _, _) in enumerate(ROWS)]
USER, ITEM, STARS, WHEN = (list(column) for column in zip(*ROWS, strict=True))
COLUMNS = {"user_id": USER, "item": ITEM, "stars": STARS, "timestamp": WHEN}
ODD = {"who": USER, "what": ITEM, "how": STARS, "when": WHEN}
CSV = "user,item,timestamp\n1,a,5\n"


def written(tmp_path, content, name="ratings"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def by_name(data: Ratings):
    named = zip(data.user, data.item, data.time, strict=True)
    return [(data.users[user], data.items[item], time) for user, item, time in named]


STARRED = "\n".join(f"{user},{stars},{item},{time}" for user, item, stars, time in ROWS)
COLONS = STARRED.replace(",", "::")
FORMATS = {
    "u.data": ("\n".join("\t".join(map(str, row)) for row in ROWS), TIMED),
    "u.data, blank lines": ("\r\n\r\n".join("\t".join(map(str, row)) for row in ROWS) + "\r\n\r\n", TIMED),
    "half stars": ("\n".join(f"{u}\t{i}\t{r}.5\t{t}" for u, i, r, t in ROWS), TIMED),
    "ratings.dat": ("\n".join("::".join(map(str, row)) for row in ROWS) + "\n", TIMED),
    "csv": ("userId,movieId,rating,timestamp\n" + "".join(f"{u},{i},{r},{t}\n" for u, i, r, t in ROWS), TIMED),
    "csv, other order": ("Timestamp, ITEM_ID ,User\n" + "".join(f"{t}, {i},{u} \n" for u, i, _, t in ROWS), TIMED),
    "csv without times": ("user,item\n" + "".join(f"{u},{i}\n" for u, i, _, _ in ROWS), BY_ROW),
    "csv, quoted": ("\ufeffuser,item\n" + "".join(f'"{u}","{i}"\n' for u, i, _, _ in ROWS), BY_ROW),
    "csv with dates": (
        "user;item;rating;date\n" + "".join(f"{u};{i};{r};1970-01-01T00:00:{t:02}Z\n" for u, i, r, t in ROWS),
        [(user, item, time * 1_000_000) for user, item, time in TIMED],
    ),
    "RecBole's .inter": (
        "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
        + "".join(f"{u}\t{i}\t{r}\t{t}\n" for u, i, r, t in ROWS),
        TIMED,
    ),
    "tabs with a header": ("user_id\titem_id\n" + "".join(f"{u}\t{i}\n" for u, i, _, _ in ROWS), BY_ROW),
    "columns by name": ("who,stars,what,when\n" + STARRED, TIMED, ["who", "what", "when"]),
    "columns by name, blanks": ("who::stars::what ::when\n" + COLONS, TIMED, ["who", " what", "when "]),
    "columns by number": (STARRED, TIMED, ["1", "3", "4"]),
    "columns by number, known names": ("user,rating,item,whatever\n" + STARRED, TIMED, ["1", "3", "4"]),
    "columns by number, colons": (COLONS, TIMED, ["1", "3", "4"]),
}


@pytest.mark.parametrize("between", [" ", "\t", ","])
@pytest.mark.parametrize(("columns", "names"), [(["1", "2-"], ["7", "3", "9"]), (["1-"], ["1", "2", "4"])])
def test_a_line_a_user(tmp_path, between, columns, names):
    took = [["x", "y"], ["y", "z", "y"], ["x"]]
    lines = [between.join([user] * (len(columns) - 1) + row) for user, row in zip(names, took, strict=True)]
    found = ratings.histories(ratings.load(written(tmp_path, "\n".join([*lines[:2], "", lines[2] + between])), columns))
    assert found.users == names and [found.items[item] for item in found.item] == [item for row in took for item in row]
    assert np.diff(found.at).tolist() == [2, 3, 1]


def test_a_first_line_of_one_field_does_not_say_how_fields_are_separated(tmp_path):
    assert ratings.load(written(tmp_path, "a\nb c\n"), ["1-"]).items == ["a", "b", "c"]
    assert ratings.load(written(tmp_path, "\nuser\titem\nu\ta\n")).items == ["a"]


def test_numbers_that_are_texts_are_times_as_in_files():
    columns = {"user": ["u", "v"], "item": ["a", "b"], "time": np.array(["881250949", "7.5"])}
    assert ratings.from_frame(columns).time.tolist() == [881250949, 7.5]
    with pytest.raises(ValueError, match="time: found <U9, expected numbers or datetime64"):
        ratings.from_frame(columns | {"time": np.array(["881250949", "soon"])})


@pytest.mark.parametrize("content, expected, columns", [(*row, None)[:3] for row in FORMATS.values()], ids=FORMATS)
def test_formats(tmp_path, content, expected, columns):
    found = ratings.load(written(tmp_path, content), columns)
    assert by_name(found) == expected
    assert (found.users, found.items) == (USERS, ITEMS)
    assert found.user.dtype == found.item.dtype == np.int32


def test_a_column_of_weights(tmp_path):
    path = written(tmp_path, "who,stars,what,when\n" + "".join(f"{u},{s},{i},{t}\n" for u, i, s, t in ROWS))
    found = ratings.load(path, ("who", "what", "when", "stars"))
    assert by_name(found) == TIMED and found.weight.tolist() == [stars for _, _, stars, _ in ROWS]
    found = ratings.load(written(tmp_path, "".join(f"{u},{s},{i}\n" for u, i, s, _ in ROWS)), ("1", "3", "", "2"))
    assert by_name(found) == BY_ROW and found.weight.tolist() == [stars for _, _, stars, _ in ROWS]
    for weight in ("x", "-1", "nan", "1e300"):
        with pytest.raises(ValueError, match=f"line 2: the weight is '{weight}'; expected .* finite in float32"):
            ratings.load(written(tmp_path, f"who,stars,what\n1,{weight},2\n"), ("who", "what", "", "stars"))


def test_dates_of_a_table_order_the_histories(tmp_path):
    times = ["2021-03-04", "2021-03-04 00:00:01", "2021-03-04T00:00:02.5+00:00", "2021-03-04T02:00:01+02:00"]
    rows = "".join(f"u,{item},{time}\n" for item, time in zip("abcd", times, strict=True))
    found = ratings.load(written(tmp_path, "user,item,date\n" + rows))
    assert found.time.tolist() == [1614816000000000 + offset for offset in (0, 1_000_000, 2_500_000, 1_000_000)]


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (CSV, ["who", "item"], "no column 'who'; found the columns 'user', 'item', 'timestamp'; expected user, item"),
        (CSV, ["1", "4"], "no column '4'; found 3 columns"),
        (CSV, ["user"], "columns: found user, expected two or three that differ.*or four with a weight"),
        ("1,2,3\n4,,5\n", ["1", "2-"], "line 2: a name is empty; expected a user and his items"),
        ("", None, "ratings: empty; expected ratings"),
        (CSV + "1,b\n", None, "line 3: 2 fields, expected 3 as in line 1; is it truncated?"),
        (CSV + "1,b,soon\n", None, "line 3: the timestamp is 'soon'; expected a number"),
        ("user,item,date\n1,a,2020-01-01\n1,b,7\n", None, "line 3: the timestamp is '7'; expected a date such as"),
        ("user,item,time\n1,a,5\n1,b,2020-01-01\n", None, "line 3: the timestamp is '2020-01-01'; expected a number"),
        (CSV + ",b,3\n", None, "line 3: the user is empty"),
        (CSV + f"1,b,{2**63}\n", None, "line 3: the timestamp is '9223372036854775808'; expected a number"),
        (CSV + '1,"b,3\n', None, "line 3: unexpected end of data"),
        ("who,what\n1,2\n", None, "no user column; found the columns 'who', 'what'; expected .*--columns NAME,NAME,"),
        (b"user,item\n\xff\xfe,1\n", None, "not UTF-8"),
        (b"PK\3\4\x9e\xff", None, "not UTF-8 .*; expected text or Parquet"),
    ],
)
def test_files_that_are_no_ratings(tmp_path, content, columns, message):
    with pytest.raises(ValueError, match=message):
        ratings.load(written(tmp_path, content), columns)


def test_parquet(tmp_path, monkeypatch):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("hybrid.storage.tables.ROWS", 3)  # so that it is read in pieces
    parquet.write_table(arrow.table(COLUMNS), tmp_path / "r")
    assert by_name(ratings.load(tmp_path / "r")) == TIMED
    renamed = {"who": [int(u) for u in USER], "what": ITEM, "when": arrow.array(WHEN, arrow.timestamp("ms"))}
    parquet.write_table(arrow.table(renamed), tmp_path / "r")
    assert by_name(ratings.load(tmp_path / "r", ("who", "what", "when"))) == TIMED
    with pytest.raises(ValueError, match="no user column; found the columns 'who', 'what', 'when'"):
        ratings.load(tmp_path / "r")
    missing = {"user": ["a", None], "item": ["b", "c"]}
    parquet.write_table(arrow.table(missing), tmp_path / "r")
    with pytest.raises(ValueError, match=r"r: user\[1\]: found None, expected a name or number"):
        ratings.load(tmp_path / "r")


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
    ("columns", "named", "message"),
    [
        (([1, 2], [1]), {}, r"item: found int64 \(1,\), expected a column \(2,\)"),
        (([1.0, np.nan], [1, 2]), {}, r"user\[1\]: found nan, expected a name"),
        (([1, 2], [1, 2], [1, np.inf]), {}, r"time\[1\]: found inf, expected a time"),
        (([1, 2], [1, 2], np.array(["NaT", "2020-01-01"], "M8[D]")), {}, r"time\[0\]: found NaT"),
        (([1, 2], [1, 2], ["2020-01-01", "2020-01-02"]), {}, "time: found <U10, expected numbers or datetime64"),
        (([1, 2], [1, 2], None, [1, -1]), {}, r"weight\[1\]: found -1, expected a number of at least 0"),
        (([1, 2], [1, 2], None, [1, 1e300]), {}, r"weight\[1\]: found 1e\+300, expected .* finite in float32"),
        (ODD, {}, "frame: no user column; found 'who', 'what', 'how', 'when'; say which it is: user='NAME'"),
        (COLUMNS, {"weight": "rating"}, "frame: no column 'rating'; found 'user_id', 'item', 'stars', 'timestamp'"),
        (np.eye(3), {}, "frame: found ndarray, expected a frame of pandas or polars"),
    ],
)
def test_columns_and_frames_that_are_no_ratings(columns, named, message):
    with pytest.raises(ValueError, match=message):
        ratings.from_columns(*columns) if isinstance(columns, tuple) else ratings.from_frame(columns, **named)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_matrix, sparse.coo_array])
def test_sparse_matrix(kind):
    entries = [1, 2, 0, 3, 1], ([4, 4, 2, 0, 0], [1, 3, 0, 3, 5])  # one is a stored zero
    matrix = kind(sparse.coo_matrix(entries, (6, 6)))
    found = ratings.from_matrix(matrix)
    assert {pair[:2] for pair in by_name(found)} == {("4", "1"), ("4", "3"), ("0", "3"), ("0", "5")}
    assert found.items == ["3", "1", "5"] and found.time.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="matrix: found ndarray, expected a scipy sparse matrix"):
        ratings.from_matrix(np.eye(3))


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


@given(random_ratings())
def test_histories_are_those_of_brute_force(data):
    found = ratings.histories(data)
    assert [found.item[a:b].tolist() for a, b in pairwise(found.at)] == list(plain_histories(data))


def frames(columns):
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    made = {"pandas": pandas.DataFrame(columns), "polars": polars.DataFrame(columns), "Arrow": arrow.table(columns)}
    return made | {"a batch": arrow.record_batch(columns), "a dict": columns}


@pytest.mark.parametrize("kind", ["pandas", "polars", "Arrow", "a batch", "a dict"])
def test_columns_by_usual_names_and_by_name(kind):
    found = ratings.from_frame(frames(COLUMNS)[kind])
    assert by_name(found) == TIMED and found.weight is None
    found = ratings.from_frame(frames(ODD)[kind], user="who", item="what", time="when", weight="how")
    assert by_name(found) == TIMED and found.weight.tolist() == STARS
    assert by_name(ratings.from_frame(frames(ODD)[kind], user="who", item="what")) == BY_ROW


DATES = [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=second) for second in WHEN]


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("pandas", "zoned"),
        ("pandas", "naive"),
        ("polars", "days"),
        ("polars", "naive"),
        ("Arrow", "zoned"),
        ("a dict", "text"),
    ],
)
def test_dates_order_the_histories(kind, form):
    made = {
        "zoned": lambda date: date,
        "naive": lambda date: date.replace(tzinfo=None),
        "text": lambda date: date.isoformat(),
        "days": lambda date: (date + datetime.timedelta(days=date.second)).date(),
    }[form]
    found = ratings.from_frame(frames({"user": USER, "item": ITEM, "date": [made(date) for date in DATES]})[kind])
    plain = ratings.histories(ratings.from_columns(USER, ITEM, WHEN))
    assert ratings.histories(found).sha256 == plain.sha256
