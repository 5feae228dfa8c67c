import csv
from pathlib import Path

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.storage import export

NAMES = ["Star Wars", 'the "Bus"', "tab\there", "line\nend", "plain", "ünï"]
ROWS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


def test_npz(tmp_path):
    export.write(tmp_path / "v.npz", NAMES, ROWS, "npz")
    with np.load(tmp_path / "v.npz") as found:  # without pickle
        assert found["names"].tolist() == NAMES
        assert found["vectors"].tobytes() == ROWS.tobytes() and found["vectors"].dtype == np.float32


def test_tsv(tmp_path):
    export.write(tmp_path / "v.tsv", NAMES, ROWS, "tsv")
    with open(tmp_path / "v.tsv", newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file, delimiter="\t")
    assert header == ["name", "1", "2", "3"]
    assert [line[0] for line in lines] == NAMES
    assert np.array([line[1:] for line in lines], np.float32).tobytes() == ROWS.tobytes()


def test_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    export.write(tmp_path / "v.parquet", NAMES, ROWS, "parquet")
    found = parquet.read_table(tmp_path / "v.parquet")
    assert found.column("name").to_pylist() == NAMES
    np.testing.assert_array_equal(np.array(found.column("vector").to_pylist(), np.float32), ROWS)


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = (f"user {u},item {(3 * u + t) % 9}\n" for u in range(20) for t in range(6))
    Path("r.csv").write_text("user,item\n" + "".join(rows))
    small = ["--width", "4", "--hidden", "4", "--readout-width", "4", "--epochs", "1", "--threads", "1"]
    assert main(["train", "factors", "--ratings", "r.csv", "--out", "run", *small]) == 0
    assert main(["export", "run", "v.txt"]) == 2
    assert "expected one without white space" in capsys.readouterr().err
    assert main(["export", "run", "v.tsv"]) == 0
    assert "9 vectors of 4 numbers, tsv -> v.tsv" in capsys.readouterr().out
    assert main(["export", "run", "v.tsv", "--format", "npz", "--overwrite"]) == 0
    assert np.load("v.tsv")["names"].shape == (9,)
