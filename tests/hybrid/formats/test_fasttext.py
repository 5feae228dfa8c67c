import pytest

from hybrid.formats import fasttext

TEXT = "__label__a __label__b  some words here\n\nno label ,\nwords __label__b in between\n__label__c\n"
TEXTS, LABELS = ["some words here", "no label ,", "words in between", ""], [["a", "b"], [], ["b"], ["c"]]


def test_labels_and_texts_are_read(tmp_path):
    path = tmp_path / "data.train"
    path.write_text(TEXT)
    assert fasttext.load(path) == (TEXTS, LABELS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"words alone\n", "data: no line has a label; expected some, such as __label__name"),
        (b"__label__a x\nx __label__ y\n", "data, line 2: the mark __label__ without a name"),
    ],
)
def test_files_that_are_refused(tmp_path, content, message):
    (tmp_path / "data").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        fasttext.load(tmp_path / "data")
