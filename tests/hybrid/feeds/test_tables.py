"""Tables of text: every separator and header, and lines that are wrong. They are read by `ratings.load`, as users read them."""

import numpy as np
import pytest

from hybrid.feeds import ratings
from tests.support.few_ratings import BY_ROW, ITEMS, ROWS, TIMED, USERS, by_name, written

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
@pytest.mark.parametrize("separator", [",", "::"], ids=["comma", "colons"])
def test_columns_by_option(tmp_path, header, columns, separator):
    lines = [] if header is None else [header.replace(",", separator)]
    lines += [separator.join(map(str, (user, stars, item, time))) for user, item, stars, time in ROWS]
    found = ratings.load(written(tmp_path, "\n".join(lines)), columns.split(","))
    assert by_name(found) == TIMED


def test_a_column_of_weights(tmp_path):
    path = written(tmp_path, "who,stars,what,when\n" + "".join(f"{u},{s},{i},{t}\n" for u, i, s, t in ROWS))
    found = ratings.load(path, ("who", "what", "when", "stars"))
    assert by_name(found) == TIMED and found.weight.tolist() == [stars for _, _, stars, _ in ROWS]
    found = ratings.load(written(tmp_path, "".join(f"{u},{s},{i}\n" for u, i, s, _ in ROWS)), ("1", "3", "", "2"))
    assert by_name(found) == BY_ROW and found.weight.tolist() == [stars for _, _, stars, _ in ROWS]
    for weight in ("x", "-1", "nan", "1e300"):
        with pytest.raises(ValueError, match=f"line 2: the weight is '{weight}'; expected .* finite in float32"):
            ratings.load(written(tmp_path, f"who,stars,what\n1,{weight},2\n"), ("who", "what", "", "stars"))


@pytest.mark.parametrize(
    "columns, message",
    [
        (
            ["who", "item"],
            "no column 'who'; found the columns 'user', 'item', 'timestamp'; expected user, item and time",
        ),
        (["1", "4"], "no column '4'; found 3 columns"),
        (["user"], "columns: found user, expected two or three that differ.*or four with a weight"),
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


CSV = "user,item,timestamp\n1,a,5\n"


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "ratings: empty; expected ratings"),
        ("user,item\n1,a\n2,a\n", "ratings: 1 different items; expected at least 2"),
        (CSV + "1,b\n", "line 3: 2 fields, expected 3 as in line 1; is it cut short?"),
        (CSV + "1,b,soon\n", "line 3: the timestamp is 'soon'; expected a number"),
        ("user,item,date\n1,a,2020-01-01\n1,b,7\n", "line 3: the timestamp is '7'; expected a date such as"),
        ("user,item,time\n1,a,5\n1,b,2020-01-01\n", "line 3: the timestamp is '2020-01-01'; expected a number"),
        (CSV + ",b,3\n", "line 3: the user is empty"),
        (CSV + '1,"b,3\n', "line 3: unexpected end of data"),
        (
            "who,what\n1,2\n",
            "no user column; found the columns 'who', 'what'; expected a header .*--columns NAME,NAME,NAME",
        ),
        (b"user,item\n\xff\xfe,1\n", "not UTF-8"),
        (b"PK\3\4 and no more", "no .npz that can be read .* expected one of a matrix by scipy.sparse.save_npz"),
    ],
)
def test_files_that_are_no_ratings(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        ratings.load(written(tmp_path, content))
