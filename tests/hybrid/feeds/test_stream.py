"""Texts read by pieces, and corpora in folders: made once, anew when the text changes, whole or absent, in bounded memory."""

import codecs
import hashlib
import itertools
import json
import os
import re
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid import Corpus, LanguageFeed, PairFeed, Text, Vocabulary, text
from hybrid.feeds import stream
from hybrid.feeds.stream import AT, IDS, Lines, StoredCorpus, stored, write
from tests.support.small_runs import Killed

contents = st.text(st.sampled_from("ab \n\n\rü\u2028"), min_size=1, max_size=60).filter(lambda found: found.strip())


@given(contents, st.booleans(), st.booleans(), st.integers(1, 9), st.integers(3, 12))
def test_is_the_text_in_memory(tmp_path_factory, content, eos, mark, piece, longest):
    path = tmp_path_factory.mktemp("stream") / "text.txt"
    path.write_bytes(codecs.BOM_UTF8 * mark + content.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "PIECE", piece)
        patch.setattr(text, "LONGEST", longest)
        pattern = re.compile(rf".{{1,{longest}}}(?:\s|\Z)|.{{1,{longest}}}", re.DOTALL)
        patch.setattr(text, "_PIECE", pattern)
        lines = content.removesuffix("\n").split("\n")
        if not eos:
            cut = (pattern.findall(line) if line[longest:] else [line] for line in lines if line.strip())
            lines = list(itertools.chain(*cut))
        streamed, tokens = Text(Lines(path, every=eos), eos=eos), list(Text(lines, eos=eos))
        assert list(streamed) == list(text.read(path, eos=eos)) == tokens
        assert list(streamed) == tokens, "it can be gone through again"


TABLES = {
    "t.csv": 'id,text,more\n1,"one, ""two""\n\nthree",a\n2,,a\n3,four,a\n',
    "t.TSV": '\ufeffid\ttext\tmore\r\n1\t"one, ""two""\n\nthree"\ta\r\n2\t\ta\r\n3\tfour\ta\r\n',
    "t.jsonl": '{"id": 1, "text": "one, \\"two\\"\\n\\nthree", "more": "a"}\n\n{"text": null, "more": "a"}\n'
    '{"text": "four", "more": "a"}\n',
}


@pytest.mark.parametrize("name", [*TABLES, "t"])
def test_a_column_of_texts_of_a_table(tmp_path, name):
    path = tmp_path / name
    if name in TABLES:
        path.write_bytes(TABLES[name].encode())
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {"id": [1, 2, 3, 4], "text": ['one, "two"\n\nthree', None, "", "four\n"], "more": ["a", "a", "", "a"]}
        parquet.write_table(arrow.table(columns), path, row_group_size=2)
        assert list(Lines(path, every=True)) == ['one, "two"', "", "three", "", "four"]
        with pytest.raises(ValueError, match="t: 'id': a column of int64; found 'id', 'text', 'more'; expected one of"):
            list(Lines(path, column="id"))
    assert list(Lines(path)) == ['one, "two"', "three", "four"] and list(Lines(path, column="more")) == ["a"] * 3
    corpus = stored(path, tmp_path / "kept")
    assert corpus.vocabulary.decode(corpus.ids) == ["one", ",", '"', "two", '"', "three", "four"]
    with pytest.raises(ValueError, match=f"{name}: 'none': no such column; found 'id', 'text', 'more'; expected one"):
        list(Lines(path, column="none"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "text,other\na,b\nc\n", "t.csv, line 3: 1 fields, expected 2 as in the header"),
        ("t.csv", 'text\n"a', "t.csv, line 2: unexpected end of data; expected a table"),
        ("t.csv", "text,text\na,b\n", "t.csv: 'text': 2 such column"),
        ("t.csv", "", "t.csv: 'text': no such column"),
        ("t.jsonl", '{"text": "a"}\n{"text"\n', "t.jsonl, line 2: not JSON .* expected one object per line"),
        ("t.jsonl", '{"text": "a"}\n{"text": 3}\n', "t.jsonl, line 2: found int as 'text', expected a text; --columns"),
        ("t.jsonl", "[1]\n", "t.jsonl, line 1: found no object, expected a text"),
        ("t", "PAR1 and no more", "t: no Parquet table"),
    ],
)
def test_tables_of_lines_that_are_none(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        list(Lines(tmp_path / name))


@pytest.mark.parametrize("piece", [3, text.PIECE])
@pytest.mark.parametrize("read", [text.read, lambda path: list(Lines(path))], ids=["at once", "by pieces"])
@pytest.mark.parametrize(
    "content, message",
    [
        (b"abcdefg\0h", "a zero byte at byte 7: a binary file; expected UTF-8 text"),
        (b"\0", "a zero byte at byte 0: a binary file"),
        (b"ab\ncd\xe9f", "byte 0xe9 at byte 5 is not UTF-8; expected UTF-8 text; convert .* iconv"),
        ("ü".encode()[:1], "byte 0xc3 at byte 0 is not UTF-8"),
    ],
)
def test_files_that_are_no_text(tmp_path, monkeypatch, content, message, read, piece):
    monkeypatch.setattr(text, "PIECE", piece)
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(ValueError, match=f"text: {message}"):
        read(tmp_path / "text")


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = Lines(pipe)  # does not open it
    writer = threading.Thread(target=pipe.write_text, args=("one\ntwo\n",))
    writer.start()
    assert list(found) == ["one", "two"]
    writer.join()


TEXT = Text(["the cat sat", "", "on the mat", "the end"] * 7 + ["rare"])
WORDS = Vocabulary.build(TEXT, min_count=2, unknown=False)


@pytest.mark.parametrize("forged, piece", [(False, stream.PIECE), (True, stream.PIECE), (True, 2)])
@pytest.mark.parametrize(
    "name, dtype, at, value",
    [(IDS, "<i4", 3, 10**6), (IDS, "<i4", 0, -1), (AT, "<i8", 0, 1), (AT, "<i8", 2, 0), (AT, "<i8", -1, 9)],
)
def test_what_is_damaged_within_is_refused(tmp_path, monkeypatch, name, dtype, at, value, forged, piece):
    monkeypatch.setattr(stream, "PIECE", piece)
    write(tmp_path, TEXT, WORDS, running=False)
    content = np.fromfile(tmp_path / name, dtype)
    content[at] = value
    content.tofile(tmp_path / name)
    if forged:
        facts = json.loads((tmp_path / "corpus.json").read_text())
        found = [WORDS.sha256.encode(), *((tmp_path / part).read_bytes() for part in (IDS, AT))]
        facts["sha256"] = hashlib.sha256(b"".join(found)).hexdigest()
        (tmp_path / "corpus.json").write_text(json.dumps(facts))
    with pytest.raises(ValueError, match=f"{tmp_path.name}: damaged; remove the folder to build it again"):
        StoredCorpus(tmp_path)


def test_files_cut_short_and_words_that_are_not_known(tmp_path):
    write(tmp_path, TEXT, WORDS, running=False)
    (tmp_path / "new").mkdir()
    with pytest.raises(ValueError, match="text: none of its words is in the vocabulary"):
        write(tmp_path / "new", [["other"]], WORDS, running=False)
    for name, content in ((AT, (tmp_path / AT).read_bytes()[:-1]), ("corpus.json", b"{}"), ("corpus.json", b"no JSON")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{tmp_path.name}: damaged; remove the folder"):
            StoredCorpus(tmp_path)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("The cat sat on the mat.\n\nThe end of the cat.\n" * 20)
    return path


def folders(tmp_path):
    return sorted(entry.name for entry in (tmp_path / "ids").iterdir())


@pytest.mark.parametrize(("eos", "tokens"), [(False, 5), (True, 1), (True, 10**6)])
def test_is_the_corpus_of_the_text_read_at_once(path, tmp_path, monkeypatch, eos, tokens):
    monkeypatch.setattr(stream, "TOKENS", tokens)
    found = stored(path, tmp_path / "ids", min_count=21, eos=eos)
    whole = text.read(path, eos=eos)
    expected = Corpus(whole, Vocabulary.build(whole, min_count=21))
    expected = Corpus.from_ids(expected.ids, expected.vocabulary) if eos else expected
    assert found.sha256 == expected.sha256 and isinstance(found.ids, np.memmap)
    assert (found.ids.dtype, found.at.dtype, len(found)) == (np.int32, np.int64, len(found.ids))
    assert (found.ids.tobytes(), found.at.tobytes()) == (expected.ids.tobytes(), expected.at.tobytes())


def test_it_is_made_once_and_anew_when_the_text_or_the_cut_changes(path, tmp_path, monkeypatch):
    made = []
    write = stream.write
    monkeypatch.setattr(stream, "write", lambda *given, **how: made.append(given) or write(*given, **how))
    first = stored(path, tmp_path / "ids")
    again = stored(path, tmp_path / "ids")
    assert len(made) == 1 and again.sha256 == first.sha256
    stored(path, tmp_path / "ids", lower=False)
    stored(path, tmp_path / "ids", min_count=2)
    assert len(made) == 3 and len(folders(tmp_path)) == 3
    path.write_text(path.read_text() + "More.\n")
    assert stored(path, tmp_path / "ids").sha256 != first.sha256
    os.utime(path, ns=(0, 0))
    stored(path, tmp_path / "ids")
    assert len(made) == 5


def test_a_build_that_fails_leaves_nothing_and_one_that_was_killed_is_begun_again(path, tmp_path, monkeypatch):
    def killed(folder, *_, **__):
        (folder / "ids.i32").write_bytes(b"half")
        raise Killed

    monkeypatch.setattr(stream, "write", killed)
    with pytest.raises(Killed):
        stored(path, tmp_path / "ids")
    assert folders(tmp_path) == []
    monkeypatch.setattr(stream.shutil, "rmtree", lambda *_, **__: None)  # as after kill -9
    with pytest.raises(Killed):
        stored(path, tmp_path / "ids")
    assert len(folders(tmp_path)) == 1 and folders(tmp_path)[0].endswith(".part")
    monkeypatch.undo()
    assert len(stored(path, tmp_path / "ids")) == 260
    assert len(folders(tmp_path)) == 1


def test_a_folder_for_corpora_has_some_or_is_empty(path, tmp_path):
    assert not stream.kept_in(tmp_path / "ids") and not stream.kept_in(path)
    (tmp_path / "ids").mkdir()
    assert stream.kept_in(tmp_path / "ids")
    (tmp_path / "ids/.book.part").mkdir()  # another rank has begun, or was killed
    assert stream.kept_in(tmp_path / "ids")
    stored(path, tmp_path / "ids")
    assert stream.kept_in(tmp_path / "ids") and not stream.kept_in(tmp_path)


def test_texts_that_are_none(tmp_path):
    (tmp_path / "empty").write_text("\n \n")
    with pytest.raises(ValueError, match="empty: a text without columns, found --columns body; leave it out"):
        stored(Lines(tmp_path / "empty", column="body"), tmp_path / "ids")
    with pytest.raises(ValueError, match="empty has no words; expected a text"):
        stored(tmp_path / "empty", tmp_path / "ids")
    with pytest.raises(ValueError, match="empty: empty, or only white space; expected text"):
        text.read(tmp_path / "empty")
    with pytest.raises(FileNotFoundError):
        stored(tmp_path / "none", tmp_path / "ids")
    with pytest.raises(ValueError, match="not a file, and it is read twice"):
        stored(tmp_path, tmp_path / "ids")


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_text(tmp_path, monkeypatch):
    """Of a text of 3 MB never more than a third is in memory, nor of its 2.4 MB of ids; read at once it is three times that."""
    monkeypatch.setattr(text, "PIECE", 2**14)
    monkeypatch.setattr(stream, "TOKENS", 2**12)
    rng = np.random.default_rng(0)
    path = tmp_path / "long.txt"
    path.write_text("\n".join(" ".join(f"w{word:03}" for word in row) for row in rng.integers(0, 500, (30_000, 20))))

    def learn():
        found = stored(path, tmp_path / "ids", tokens="whitespace")
        PairFeed(found)
        feed = LanguageFeed(found, chunk=4096)
        for tick in range(0, len(feed), 50):
            feed[tick]

    def at_once():
        whole = text.read(path, tokens="whitespace")
        LanguageFeed(Corpus(whole, Vocabulary.build(whole)))[0]

    stored(path, tmp_path / "other", tokens="whitespace")  # what is imported on the way
    monkeypatch.setattr("hybrid.feeds.pairs.PIECE", 2**14)
    assert peak(learn) < 1e6 < 9e6 < peak(at_once)
