"""Corpora in a folder: made once, made anew when the text changes, whole or absent, in bounded memory."""

import os
import tracemalloc

import numpy as np
import pytest

from hybrid import Corpus, LanguageFeed, PairFeed, Vocabulary, text
from hybrid.feeds import stream
from hybrid.feeds.stream import StreamedLanguageFeed, stored


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("The cat sat on the mat.\n\nThe end of the cat.\n" * 20)
    return path


def folders(tmp_path):
    return sorted(entry.name for entry in (tmp_path / "ids").iterdir())


@pytest.mark.parametrize("eos", [False, True])
def test_is_the_corpus_of_the_text_read_at_once(path, tmp_path, eos):
    found = stored(path, tmp_path / "ids", min_count=21, eos=eos)
    whole = text.read(path, eos=eos)
    expected = Corpus(whole, Vocabulary.build(whole, min_count=21))
    expected = Corpus.from_ids(expected.ids, expected.vocabulary) if eos else expected
    assert found.sha256 == expected.sha256


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
    class Killed(BaseException):
        pass

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
    with pytest.raises(ValueError, match="empty has no words; expected a text"):
        stored(tmp_path / "empty", tmp_path / "ids")
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
    monkeypatch.setattr(stream, "TEXT_PIECE", 2**14)
    monkeypatch.setattr(stream, "TOKENS", 2**12)
    rng = np.random.default_rng(0)
    path = tmp_path / "long.txt"
    path.write_text("\n".join(" ".join(f"w{word:03}" for word in row) for row in rng.integers(0, 500, (30_000, 20))))

    def learn():
        found = stored(path, tmp_path / "ids", tokens="whitespace")
        PairFeed(found)
        feed = StreamedLanguageFeed(found, chunk=4096)
        for tick in range(0, len(feed), 50):
            feed[tick]

    def at_once():
        whole = text.read(path, tokens="whitespace")
        LanguageFeed(Corpus(whole, Vocabulary.build(whole)))[0]

    stored(path, tmp_path / "other", tokens="whitespace")  # what is imported on the way
    monkeypatch.setattr("hybrid.feeds.pairs.PIECE", 2**14)
    assert peak(learn) < 1e6 < 9e6 < peak(at_once)
