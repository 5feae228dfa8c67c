"""Parquet files are read a piece at a time, whatever a stranger has packed into them."""

import numpy as np
import pytest

from hybrid import ratings
from hybrid.feeds.stream import Lines
from hybrid.storage import tables
from hybrid.storage.vectors import read_parquet

arrow = pytest.importorskip("pyarrow")
table = pytest.importorskip("pyarrow.parquet")


def written(path, columns, **settings):
    table.write_table(arrow.table(columns), path, **settings)
    return path


def test_equal_texts_are_one_object_in_their_order(tmp_path):
    column = ["b", None, "a", "b", "", None, "a" * 40]
    file = tables.open_parquet(written(tmp_path / "t", {"text": column, "n": range(7)}))
    (batch,) = tables.parquet_batches(file, ["text", "n"])
    texts = tables.parquet_values(batch["text"])
    assert texts.tolist() == column and texts[0] is texts[3]
    assert tables.parquet_values(batch["n"]).tolist() == list(range(7))


@pytest.mark.parametrize("group, bound", [(1000, 2**24), (1, 2 * tables.BYTES)])
def test_a_text_that_a_file_holds_once_for_many_rows_is_in_memory_once(tmp_path, group, bound):
    path = written(tmp_path / "t", {"text": ["word " * 40_000] * 1000}, row_group_size=group)
    before, most = arrow.total_allocated_bytes(), 0
    for line in Lines(path):
        most = max(most, arrow.total_allocated_bytes() - before)
        assert line
    assert 0 < most < bound, "200 kB of text are 200 MB in as many rows"


def test_ratings_and_vectors_by_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 3)
    names = [f"user{row % 3}" for row in range(10)]
    found = ratings.load(written(tmp_path / "r", {"user": names, "item": list(range(5)) * 2}))
    assert [found.users[user] for user in found.user] == names and len(found.items) == 5
    rows = np.arange(20, dtype=np.float32).reshape(10, 2)
    listed = {"name": list("abcdefghij"), "vector": list(rows)}
    assert read_parquet(written(tmp_path / "v", listed))[0] == list("abcdefghij")
    np.testing.assert_array_equal(read_parquet(tmp_path / "v")[1], rows)


def test_a_number_is_of_8_bytes_though_the_file_holds_it_once(tmp_path, monkeypatch):
    file = tables.open_parquet(written(tmp_path / "n", {"n": [7] * 100}))
    for bytes_, expected in ((800, [100]), (799, [99, 1])):
        monkeypatch.setattr(tables, "BYTES", bytes_)
        assert [len(batch) for batch in tables.parquet_batches(file, ["n"])] == expected


def test_columns_that_are_not_there(tmp_path):
    path = written(tmp_path / "t", {"n": range(7)})
    (batch,) = tables.parquet_batches(tables.open_parquet(path), ["name"])
    assert len(batch) == 7 and batch.num_columns == 0
    with pytest.raises(ValueError, match=r"t: no Parquet table of vectors .*name.* expected columns name and vector"):
        read_parquet(path)


def test_traps_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "UNPACKED", 2**20)
    trap = written(tmp_path / "t", {"text": ["a " * 300_000] * 4}, compression="zstd", use_dictionary=False)
    with pytest.raises(ValueError, match=r"t: rows of [\d,]+ bytes would grow to [\d,]+; expected at most 64 times"):
        list(Lines(trap))
    with pytest.raises(ValueError, match=r"t: rows of .* would grow"):
        ratings.load(trap)
    flat = arrow.FixedSizeListArray.from_arrays(arrow.array(np.zeros(10**6, np.float32)), 10**4)
    trap = written(tmp_path / "v", {"name": [str(n) for n in range(100)], "vector": flat})
    with pytest.raises(ValueError, match=r"v: no Parquet table of vectors .it would grow to more than 64 times its"):
        read_parquet(trap)


def test_columns_that_are_described_wrongly_do_not_end_the_process(tmp_path):
    """pyarrow's description of a column ends it where statistics are of a column that may lack values, the schema is not."""
    path = written(tmp_path / "t", {"text": ["one", "two"]})
    optional, required = b"\x25\x02\x18\x04text", b"\x25\x00\x18\x04text"
    content = path.read_bytes()
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, required))
    with pytest.raises(ValueError, match=r"t: no Parquet table .*histogram size mismatch.*; was it cut short?"):
        list(Lines(path))
