"""Ratings of data frames: every library's columns, dates of every kind, and what is no frame."""

import datetime

import numpy as np
import pytest

from hybrid.feeds import ratings
from tests.support.few_ratings import BY_ROW, ROWS, TIMED, by_name

USER, ITEM, STARS, WHEN = (list(column) for column in zip(*ROWS, strict=True))
COLUMNS = {"user_id": USER, "item": ITEM, "stars": STARS, "timestamp": WHEN}
ODD = {"who": USER, "what": ITEM, "how": STARS, "when": WHEN}


class Streams:
    """What offers Arrow's streams and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, schema=None):
        return self._table.__arrow_c_stream__(schema)


def frames(columns):
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    made = {"pandas": pandas.DataFrame(columns), "polars": polars.DataFrame(columns), "Arrow": arrow.table(columns)}
    return made | {"a batch": arrow.record_batch(columns), "streams": Streams(arrow.table(columns)), "a dict": columns}


@pytest.mark.parametrize("kind", ["pandas", "polars", "Arrow", "a batch", "streams", "a dict"])
def test_columns_by_usual_names_and_by_name(kind):
    found = ratings.from_frame(frames(COLUMNS)[kind])
    assert by_name(found) == TIMED and found.weight is None
    found = ratings.from_frame(frames(ODD)[kind], user="who", item="what", time="when", weight="how")
    assert by_name(found) == TIMED and found.weight.tolist() == STARS
    assert by_name(ratings.from_frame(frames(ODD)[kind], user="who", item="what")) == BY_ROW


def seconds(dates):
    zoned = (date.astimezone(datetime.UTC) for date in dates)
    return [int(date.timestamp()) for date in zoned]


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


@pytest.mark.parametrize(
    ("frame", "named", "message"),
    [
        (ODD, {}, "frame: no user column; found 'who', 'what', 'how', 'when'; say which it is: user='NAME'"),
        (COLUMNS, {"weight": "rating"}, "frame: no column 'rating'; found 'user_id', 'item', 'stars', 'timestamp'"),
        (COLUMNS | {"timestamp": ["soon"] * 5}, {}, "time: found <U4, expected numbers or datetime64"),
        (COLUMNS | {"item": ITEM[1:]}, {}, r"item: found <U1 \(4,\), expected a column \(5,\)"),
        (np.eye(3), {}, "frame: found ndarray, expected a frame of pandas or polars"),
    ],
)
def test_refusals(frame, named, message):
    with pytest.raises(ValueError, match=message):
        ratings.from_frame(frame, **named)
