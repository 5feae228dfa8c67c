"""Archives of arrays and Parquet files, whatever a stranger has packed into them, are read within bounds of memory."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from hybrid import ratings
from hybrid.feeds.stream import Lines
from hybrid.storage import tables

arrow = pytest.importorskip("pyarrow")
table = pytest.importorskip("pyarrow.parquet")

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(["x", "yz"])}


def packed(path, **members):
    """An .npz whose members have this content."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def header(shape, dtype="<f4"):
    """What an array of this shape begins with."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": dtype, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_that_are_read(tmp_path, save):
    save(tmp_path / "a.npz", **ARRAYS)
    found = tables.read(tmp_path / "a.npz")
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)


BAD = {
    "needs more bytes than it has": lambda path: packed(path, a=header((10**9, 1000)) + b"1234"),
    "grow to more than 64 times": lambda path: packed(path, a=header((10**8,)) + bytes(4 * 10**8)),
    "object": lambda path: np.savez(path, a=np.array([{}], object)),
    "not a zip file": lambda path: path.write_bytes(b"PK\3\4 and no more"),
    "magic": lambda path: packed(path, a=b"no array"),
}


@pytest.mark.parametrize("message", BAD)
def test_archives_that_are_refused(tmp_path, message):
    path = tmp_path / "a.npz"
    BAD[message](path)
    for read in (tables.read, tables.refuse_large):
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=message) as error:
                read(path)
            assert str(error.value).startswith(f"{path}: no .npz that can be read (")
            assert tracemalloc.get_traced_memory()[1] < 20e6
        finally:
            tracemalloc.stop()


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
    (batch,) = tables.parquet_batches(file, ["name"])  # a column that is not there
    assert len(batch) == 7 and batch.num_columns == 0


@pytest.mark.parametrize("group, bound", [(1000, 2**24), (1, 2 * tables.BYTES)])
def test_a_text_that_a_file_holds_once_for_many_rows_is_in_memory_once(tmp_path, group, bound):
    path = written(tmp_path / "t", {"text": ["word " * 40_000] * 1000}, row_group_size=group)
    before, most = arrow.total_allocated_bytes(), 0
    for line in Lines(path):
        most = max(most, arrow.total_allocated_bytes() - before)
        assert line
    assert 0 < most < bound, "200 kB of text are 200 MB in as many rows"


def test_a_number_is_of_8_bytes_though_the_file_holds_it_once(tmp_path, monkeypatch):
    file = tables.open_parquet(written(tmp_path / "n", {"n": [7] * 100}))
    for bytes_, expected in ((800, [100]), (799, [99, 1])):
        monkeypatch.setattr(tables, "BYTES", bytes_)
        assert [len(batch) for batch in tables.parquet_batches(file, ["n"])] == expected


def test_traps_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "UNPACKED", 2**20)
    trap = written(tmp_path / "t", {"text": ["a " * 300_000] * 4}, compression="zstd", use_dictionary=False)
    with pytest.raises(ValueError, match=r"t: rows of [\d,]+ bytes would grow to [\d,]+; expected at most 64 times"):
        list(Lines(trap))
    with pytest.raises(ValueError, match=r"t: rows of .* would grow"):
        ratings.load(trap)


def test_columns_that_are_described_wrongly_do_not_end_the_process(tmp_path):
    """pyarrow's description of a column ends it where statistics are of a column that may lack values, the schema is not."""
    path = written(tmp_path / "t", {"text": ["one", "two"]})
    optional, required = b"\x25\x02\x18\x04text", b"\x25\x00\x18\x04text"
    content = path.read_bytes()
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, required))
    with pytest.raises(ValueError, match=r"t: no Parquet table .*histogram size mismatch.*; was it cut short?"):
        list(Lines(path))
