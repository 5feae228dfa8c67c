import hashlib
import json

import numpy as np
import pytest

from hybrid import Corpus, Text, Vocabulary
from hybrid.feeds import stream as module
from hybrid.feeds.stream import AT, IDS, StoredCorpus, write

TEXT = Text(["the cat sat", "", "on the mat", "the end"] * 7 + ["rare"])
WORDS = Vocabulary.build(TEXT, min_count=2, unknown=False)


@pytest.mark.parametrize("tokens", [1, 5, 10**6])
@pytest.mark.parametrize("unknown", [False, True])
def test_is_the_corpus_in_memory(tmp_path, monkeypatch, tokens, unknown):
    monkeypatch.setattr(module, "TOKENS", tokens)
    vocabulary = Vocabulary.build(TEXT, min_count=2, unknown=unknown)
    write(tmp_path, TEXT, vocabulary, running=False)
    found, expected = StoredCorpus(tmp_path), Corpus(TEXT, vocabulary)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.at, expected.at)
    assert (found.ids.dtype, found.at.dtype) == (np.int32, np.int64)
    assert found.sha256 == expected.sha256 and len(found) == len(expected)
    assert found.vocabulary.words == vocabulary.words
    assert isinstance(found.ids, np.memmap)


def test_refusals(tmp_path):
    write(tmp_path, TEXT, WORDS, running=False)
    for name in (IDS, AT):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:-1])
        with pytest.raises(ValueError, match=f"{tmp_path.name}: damaged; remove the folder"):
            StoredCorpus(tmp_path)
        (tmp_path / name).write_bytes(content)
    for facts in ("{}", '{"sha256": ""}', "no JSON"):
        (tmp_path / "corpus.json").write_text(facts)
        with pytest.raises(ValueError, match=f"{tmp_path.name}: damaged; remove the folder"):
            StoredCorpus(tmp_path)
    (tmp_path / "new").mkdir()
    with pytest.raises(ValueError, match="text: none of its words is in the vocabulary"):
        write(tmp_path / "new", [["other"]], WORDS, running=False)


@pytest.mark.parametrize("piece", [module.PIECE, 2])
@pytest.mark.parametrize("forged", [False, True])
@pytest.mark.parametrize(
    "name, dtype, at, value",
    [(IDS, "<i4", 3, 10**6), (IDS, "<i4", 0, -1), (AT, "<i8", 0, 1), (AT, "<i8", 2, 0), (AT, "<i8", -1, 9)],
)
def test_what_is_damaged_within_is_refused(tmp_path, monkeypatch, name, dtype, at, value, forged, piece):
    monkeypatch.setattr(module, "PIECE", piece)
    write(tmp_path, TEXT, WORDS, running=False)
    content = np.fromfile(tmp_path / name, dtype)
    content[at] = value
    content.tofile(tmp_path / name)
    if forged:
        facts = json.loads((tmp_path / "corpus.json").read_text())
        found = [WORDS.sha256.encode(), *((tmp_path / part).read_bytes() for part in (IDS, AT))]
        facts["sha256"] = hashlib.sha256(b"".join(found)).hexdigest()
        (tmp_path / "corpus.json").write_text(json.dumps(facts))
    with pytest.raises(ValueError, match=f"{tmp_path.name}: damaged; remove the folder, and it is made again"):
        StoredCorpus(tmp_path)
