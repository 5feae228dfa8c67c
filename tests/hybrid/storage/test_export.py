import csv

import numpy as np
import pytest

from hybrid.storage import vectors

NAMES = ["Star Wars", 'the "Bus"', "tab\there", "line\nend", "plain", "ünï"]
ROWS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


def test_npz(tmp_path):
    vectors.save(tmp_path / "v.npz", NAMES, ROWS, format="npz")
    with np.load(tmp_path / "v.npz") as found:  # without pickle
        assert found["names"].tolist() == NAMES
        assert found["vectors"].tobytes() == ROWS.tobytes() and found["vectors"].dtype == np.float32


def test_tsv(tmp_path):
    vectors.save(tmp_path / "v.tsv", NAMES, ROWS, format="tsv")
    with open(tmp_path / "v.tsv", newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file, delimiter="\t")
    assert header == ["name", "1", "2", "3"]
    assert [line[0] for line in lines] == NAMES
    assert np.array([line[1:] for line in lines], np.float32).tobytes() == ROWS.tobytes()


def test_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    vectors.save(tmp_path / "v.parquet", NAMES, ROWS, format="parquet")
    found = parquet.read_table(tmp_path / "v.parquet")
    assert found.column("name").to_pylist() == NAMES
    np.testing.assert_array_equal(np.array(found.column("vector").to_pylist(), np.float32), ROWS)
