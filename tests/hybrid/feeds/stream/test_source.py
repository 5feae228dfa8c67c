"""What a streamed file gives is what `text.read` gives, whatever the size of the pieces."""

import codecs
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid import Text, text
from hybrid.feeds import stream
from hybrid.feeds import text as texts
from hybrid.feeds.stream import lines

contents = st.text(st.sampled_from("ab \n\n\rü\u2028"), min_size=1, max_size=60).filter(lambda found: found.strip())


@given(contents, st.booleans(), st.booleans(), st.integers(1, 9), st.integers(3, 12))
def test_is_the_text_in_memory(tmp_path_factory, content, eos, mark, piece, longest):
    path = tmp_path_factory.mktemp("stream") / "text.txt"
    path.write_bytes(codecs.BOM_UTF8 * mark + content.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "PIECE", piece)
        for module in (stream, texts):
            patch.setattr(module, "LONGEST", longest)
        pattern = rf".{{1,{longest}}}(?:\s|\Z)|.{{1,{longest}}}"
        patch.setattr(texts, "_PIECE", texts.re.compile(pattern, texts.re.DOTALL))
        whole, streamed = text.read(path, eos=eos), Text(lines(path, every=eos), eos=eos)
        assert list(streamed) == list(whole) == list(streamed), "it can be gone through again"


def test_a_column_of_a_table(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"text": ["one two\nthree", None, "", "four\n"], "other": [1, 2, 3, 4], "more": ["a"] * 4})
    parquet.write_table(table, tmp_path / "t", row_group_size=2)
    assert list(lines(tmp_path / "t")) == ["one two", "three", "four"]
    assert list(lines(tmp_path / "t", every=True)) == ["one two", "three", "", "four"]
    assert list(lines(tmp_path / "t", column="more")) == ["a"] * 4
    for column, found in (("other", "a column of int64"), ("none", "no such column")):
        with pytest.raises(ValueError, match=f"t: '{column}': {found}; found 'text', 'other', 'more'; expected one of"):
            list(lines(tmp_path / "t", column=column))


BAD = {
    "binary": (b"abc\0", "a zero byte at byte 3: a binary file; expected UTF-8 text"),
    "latin-1": (b"caf\xe9 au lait\n", "not UTF-8 near byte 0; expected UTF-8 text; convert"),
    "cut in a letter": ("ü".encode()[:1], "not UTF-8 at its end"),
    "no table": (b"PAR1 and no more", "no Parquet table"),
}


@pytest.mark.parametrize("bad", BAD)
def test_refusals(tmp_path, bad):
    content, message = BAD[bad]
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(ValueError, match=f"text: {message}"):
        list(lines(tmp_path / "text"))


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = lines(pipe)  # does not open it
    writer = threading.Thread(target=pipe.write_text, args=("one\ntwo\n",))
    writer.start()
    assert list(found) == ["one", "two"]
    writer.join()
