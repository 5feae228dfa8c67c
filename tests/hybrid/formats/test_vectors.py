import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hybrid.formats import vectors

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).filter(lambda word: word.split() == [word])
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
BOTH = pytest.mark.parametrize("format", ["text", "binary"])


@st.composite
def some_vectors(draw):
    named = draw(st.lists(words, min_size=1, max_size=6, unique=True))
    return named, draw(arrays.arrays(np.float32, (len(named), draw(st.integers(1, 5))), elements=floats))


@BOTH
@given(some_vectors())
def test_every_bit_comes_back(tmp_path_factory, format, data):
    path = tmp_path_factory.mktemp("run") / "vectors"
    vectors.save(path, *data, format=format)
    found = vectors.open_vectors(path)
    assert found.words == data[0]
    assert found.rows.dtype == np.float32
    assert found.rows.tobytes() == data[1].tobytes()


def some(count=50, width=7):
    rng = np.random.default_rng(0)
    return [f"wörd{number}" for number in range(count)], rng.normal(size=(count, width)).astype(np.float32)


def test_formats_to_the_byte(tmp_path):
    rows = np.array([[1, -0.5], [0.1, 1e-30]], np.float32)
    vectors.save(tmp_path / "v", ["a", "é"], rows)
    assert (tmp_path / "v").read_bytes() == "2 2\na 1 -0.5\né 0.100000001 1e-30\n".encode()
    vectors.save(tmp_path / "v", ["a", "é"], rows, format="binary")
    expected = b"2 2\na " + rows[0].tobytes() + b"\n\xc3\xa9 " + rows[1].tobytes() + b"\n"
    assert (tmp_path / "v").read_bytes() == expected


ROWS = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    "named, rows, message",
    [
        (["a", "b"], np.array([[1, 2], [3, np.nan]]), r"vectors\[1\]: found NaN or infinity"),
        (["a", "b"], ROWS[:1], r"vectors: found float32 \(1, 3\), expected floats \(2, D\)"),
        (["a", "b"], np.ones((2, 3), int), r"found int64 \(2, 3\), expected floats"),
        (["a", "b c"], ROWS, "word 'b c': expected one without white space"),
        (["a", ""], ROWS, r"words\[1\]: found an empty one"),
        (["a", "a"], ROWS, "words: found 'a' 2 times, expected different words"),
    ],
)
@BOTH
def test_what_cannot_be_written_leaves_the_file(tmp_path, named, rows, message, format):
    (tmp_path / "v").write_bytes(b"old")
    with pytest.raises(ValueError, match=message):
        vectors.save(tmp_path / "v", named, rows, format=format)
    assert (tmp_path / "v").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


@BOTH
def test_every_truncation_is_seen(tmp_path, format):
    vectors.save(tmp_path / "v", *some(3, 2), format=format)
    content = (tmp_path / "v").read_bytes()
    last = format == "binary"  # its last byte is a line end that gensim does not write
    for size in range(len(content) - last):
        (tmp_path / "v").write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"v: the first line|v: truncated|v, (line \d, )?word"):
            vectors.open_vectors(tmp_path / "v")


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "the first line is b''; expected how many words and dimensions"),
        (b"900000000000 300\na 1\n", "truncated: 21 bytes; expected 540900000000000 at least"),
        (b"1 2\na 1 2 3\n", "word 1 of 1: a line of 3 numbers; expected 2"),
        (b"1 2\na 1 2\nb 3 4\n", "more than the 1 words of its first line"),
        (b"2 2\na 1 2\n 3 4\n", "v, line 3, word 2 of 2: the word is '', expected one without white space"),
        (b"2 2\na\tb 1 2\nc 3 4\n", r"v, line 2, word 1 of 2: the word is 'a\\tb'"),
        ("1 2\na\u00a0b 1 2\n".encode(), "v, line 2, word 1 of 1: the word is 'a\\\\xa0b'"),
        (b"3 2\na 1 2\nb 1 2\na 3 4\n", "v: words: found 'a' 2 times, expected different words; remove"),
        (b"no header\n", "v: the first line is"),
        (b"2 2\na 1 2\nb 3\n", "v, line 3, word 2"),
        (b"1 2\na 1 nan\n", r"v: vectors\[0\]: found NaN or infinity"),
        (b"2 2\na 1 1e999\nb 2 3\n", r"v: vectors\[0\]: found NaN or infinity"),
    ],
)
def test_files_that_are_no_vectors(tmp_path, content, message):
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        vectors.open_vectors(tmp_path / "v")


@pytest.mark.parametrize("numbers", [b"\x10 5\nabc ", b"57.5\nab=", b"1 \n2abc="])
def test_binary_numbers_may_look_like_the_end_of_a_line_of_text(tmp_path, numbers):
    rows = np.frombuffer(numbers, np.float32).reshape(1, 2)
    vectors.save(tmp_path / "v", ["word"], rows, format="binary")
    assert vectors.open_vectors(tmp_path / "v").rows.tobytes() == numbers


NAMES = ["Star Wars", 'the "Bus"', "tab\there", "line\nend", "plain", "ünï"]
TABLE = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


@pytest.mark.parametrize("binary", [False, True])
def test_gensim_opens_ours_and_we_open_gensims(tmp_path, binary):
    models = pytest.importorskip("gensim.models")
    words = ["red", "grün", "blue_sky", "x", "y", "z"]
    vectors.save(tmp_path / "ours", words, TABLE, format="binary" if binary else "text")
    theirs = models.KeyedVectors.load_word2vec_format(str(tmp_path / "ours"), binary=binary)
    assert theirs.index_to_key == words and theirs.vectors.tobytes() == TABLE.tobytes()
    theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
    found = vectors.open_vectors(tmp_path / "theirs")
    assert found.words == words
    np.testing.assert_allclose(found.rows, TABLE, rtol=1e-6)  # gensim's text has the digits that it takes


BAD = {
    "no names": (lambda path: np.savez(path, vectors=TABLE), "found 'vectors'"),
    "names too few": (lambda path: np.savez(path, names=["a"], vectors=TABLE), r"found float32 \(6, 3\), expected"),
    "no archive": (lambda path: path.write_bytes(b"PK\3\4 and no more"), "no .npz that can be read"),
    "no array": (lambda path: path.write_bytes(b"\x93NUMPY and no more"), "no .npy of vectors"),
}


@pytest.mark.parametrize("bad", BAD)
def test_tables_that_are_refused(tmp_path, bad):
    write, message = BAD[bad]
    path = tmp_path / "v.npz"
    write(path)
    with pytest.raises(ValueError, match=message) as error:
        vectors.open_vectors(path)
    assert str(error.value).startswith(str(path))


def test_numpy_reads_an_npz(tmp_path):
    vectors.save(tmp_path / "v.npz", NAMES, TABLE, format="npz")
    opened = vectors.open_vectors(tmp_path / "v.npz")
    assert opened.words == NAMES and opened.rows.tobytes() == TABLE.tobytes()
    with np.load(tmp_path / "v.npz") as found:  # without pickle
        assert found["names"].tolist() == NAMES
        assert found["vectors"].tobytes() == TABLE.tobytes() and found["vectors"].dtype == np.float32
