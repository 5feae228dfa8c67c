"""Answers by name, and the tables that they are written to."""

import csv

import numpy as np
import pytest

from hybrid.cli.commands import recommend
from hybrid.use.answers import Names, Ranked, UnknownName

KNOWN = ['a "quoted", one', "b", "ü"]
IDS, SCORES = np.array([[2, 0], [1, -1]], np.int32), np.array([[-0.1, -2], [-1, -np.inf]], np.float32)
FOUND = Ranked(["x,1", "y"], IDS, SCORES, KNOWN)
COLUMNS = ("user", "rank", "item", "score")
ROWS = [("x,1", 1, "ü", np.float32(-0.1)), ("x,1", 2, 'a "quoted", one', -2), ("y", 1, "b", -1)]


def test_what_is_not_there_is_left_out():
    assert FOUND.names == [["ü", 'a "quoted", one'], ["b"]]
    assert FOUND.pairs == [[("ü", np.float32(-0.1)), ('a "quoted", one', -2.0)], [("b", -1.0)]]
    assert list(FOUND.rows()) == ROWS


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("river", "word 'river': not known; did you mean 'River'?"),
        ("rivers", "word 'rivers': not known; did you mean 'River'?"),
        ("zzz", "word 'zzz': not known; expected one of 4, such as 'River', 'Bank', 'the'"),
    ],
)
def test_an_unknown_name_is_told_what_is_near(asked, message):
    with pytest.raises(UnknownName) as raised:
        Names(["River", "Bank", "the", "sea"], "word").ids(["the", asked])
    assert str(raised.value) == message
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, KeyError)


def read(path):
    if path.suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        table = parquet.read_table(path)
        assert tuple(table.column_names) == COLUMNS
        return [tuple(row.values()) for row in table.to_pylist()], parquet.ParquetFile(path).num_row_groups
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == COLUMNS
    return [(user, int(rank), item, np.float32(score)) for user, rank, item, score in rows], None


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_parts_are_written_as_they_come_and_read_again(tmp_path, name):
    path, asked = tmp_path / name, []

    def parts():
        for number in range(3):
            asked.append(path.exists())
            yield FOUND._replace(asked=[f"{user} {number}" for user in FOUND.asked])

    assert recommend.write(path, parts(), COLUMNS) == 9
    found, groups = read(path)
    assert found == [(f"{user} {n}", *rest) for n in range(3) for user, *rest in ROWS]
    assert groups in (None, 3) and len(list(tmp_path.iterdir())) == 1
    assert asked == [False] * 3  # until it is whole


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_no_part_and_parts_without_rows_leave_a_table_of_no_rows(tmp_path, name):
    empty = Ranked(["z"], np.full((1, 2), -1, np.int32), np.full((1, 2), -np.inf, np.float32), KNOWN)
    for parts in ([], [empty]):
        assert recommend.write(tmp_path / name, parts, COLUMNS) == 0
        assert read(tmp_path / name)[0] == []


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_failure_leaves_the_file_as_it_was(tmp_path, name):
    (tmp_path / name).write_bytes(b"old")

    def parts():
        yield FOUND
        raise FloatingPointError("in the middle")

    with pytest.raises(FloatingPointError):
        recommend.write(tmp_path / name, parts(), COLUMNS)
    assert (tmp_path / name).read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1
