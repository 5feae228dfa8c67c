import pytest

from hybrid.formats import fasttext

TEXT = "__label__a __label__b  some words here\n\nno label ,\nwords __label__b in between\n__label__c\n"
TEXTS, LABELS = ["some words here", "no label ,", "words in between", ""], [["a", "b"], [], ["b"], ["c"]]


def test_labels_and_texts_are_read_and_so_is_what_is_written(tmp_path):
    path = tmp_path / "data.train"
    path.write_text(TEXT)
    assert fasttext.load(path) == (TEXTS, LABELS)
    fasttext.save(path, TEXTS, LABELS)
    assert fasttext.load(path) == (TEXTS, LABELS)
    assert path.read_text().splitlines()[0] == "__label__a __label__b some words here"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"words alone\n", "data: no line has a label; expected some, such as __label__name"),
        (b"__label__a x\nx __label__ y\n", "data, line 2: the mark __label__ without a name"),
        (b"__label__a x\n__label__b \xff\n", "data, line 2: not UTF-8"),
    ],
)
def test_files_that_are_refused(tmp_path, content, message):
    (tmp_path / "data").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        fasttext.load(tmp_path / "data")


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (["a"], [], "found 1 texts and 0 lists of labels"),
        (["a"], ["label"], r"labels\[0\]: found the string 'label', expected a list"),
        (["a"], [["two words"]], r"labels\[0\]: found 'two words', expected names without white space"),
        (["a", "b\nc"], [["x"], ["x"]], r"texts\[1\]: found 'b\\nc', expected one line"),
    ],
)
def test_what_cannot_be_written(tmp_path, texts, labels, message):
    with pytest.raises(ValueError, match=message):
        fasttext.save(tmp_path / "data", texts, labels)
    assert not list(tmp_path.iterdir())
