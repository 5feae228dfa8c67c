"""Vectors in .npz, .npy, tables and Parquet, through `vectors.save` and `vectors.load`, and files that gensim wrote."""

import numpy as np
import pytest

from hybrid import vectors
from tests.support.npz_files import header, packed

NAMES = ["Star Wars", 'the "Bus"', "tab\there", "line\nend", "plain", "ünï"]
ROWS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
FORMATS = ["npz", "tsv", "parquet"]


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_is_read(tmp_path, format):
    path = tmp_path / "vectors"  # known by its first bytes, not by its name
    vectors.save(path, NAMES, ROWS, format=format)
    found = vectors.load(path)
    assert found.words == NAMES and found.rows.tobytes() == ROWS.tobytes() and found.rows.dtype == np.float32


@pytest.mark.parametrize("binary", [False, True])
def test_gensim_opens_ours_and_we_open_gensims(tmp_path, binary):
    models = pytest.importorskip("gensim.models")
    words = ["red", "grün", "blue_sky", "x", "y", "z"]
    vectors.save(tmp_path / "ours", words, ROWS, binary=binary)
    theirs = models.KeyedVectors.load_word2vec_format(str(tmp_path / "ours"), binary=binary)
    assert theirs.index_to_key == words and theirs.vectors.tobytes() == ROWS.tobytes()
    theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
    found = vectors.load(tmp_path / "theirs", binary=binary)
    assert found.words == words
    np.testing.assert_allclose(found.rows, ROWS, rtol=1e-6)  # gensim's text has the digits that it takes


def test_an_npz_that_claims_more_than_it_holds(tmp_path):
    path = tmp_path / "v.npz"
    packed(path, vectors=header((10**9, 1000)) + b"1234")
    with pytest.raises(
        ValueError, match=r"v.npz: no .npz that can be read \(vectors.npy: float32 \(1000000000, 1000\), of which"
    ):
        vectors.load(path)
    packed(path, vectors=header((10**7, 3)) + bytes(120_000_000))
    with pytest.raises(ValueError, match="it would grow to more than 64 times"):
        vectors.load(path)


BAD = {
    "pickles": (lambda path: np.savez(path, names=np.array([{}], object), vectors=ROWS[:1]), "names.npy: object"),
    "no names": (lambda path: np.savez(path, vectors=ROWS), "found 'vectors'"),
    "names too few": (lambda path: np.savez(path, names=["a"], vectors=ROWS), r"found 1 names and float32 \(6, 3\)"),
    "no archive": (lambda path: path.write_bytes(b"PK\3\4 and no more"), "no .npz that can be read"),
    "no array": (lambda path: path.write_bytes(b"\x93NUMPY and no more"), "no .npy of vectors"),
    "no table": (lambda path: path.write_text("name\t1\t2\na\t1\n"), "line 2: 1 numbers, expected 2; is it cut short"),
    "no Parquet": (lambda path: path.write_bytes(b"PAR1 and no more"), "no Parquet table of vectors"),
}


@pytest.mark.parametrize("bad", BAD)
def test_files_that_are_refused(tmp_path, bad):
    write, message = BAD[bad]
    path = tmp_path / "v.npz"
    write(path)
    with pytest.raises(ValueError, match=message) as error:
        vectors.load(path)
    assert str(error.value).startswith(str(path))
