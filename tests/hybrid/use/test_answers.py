import numpy as np
import pytest

from hybrid.use.answers import Names, Ranked, UnknownName

KNOWN = ["x", "y", "z"]
FOUND = Ranked(
    ["a", "b"], np.array([[2, 0], [1, -1]], np.int32), np.array([[0.5, 0.25], [1, -np.inf]], np.float32), KNOWN
)


def test_what_is_not_there_is_left_out():
    assert FOUND.names == [["z", "x"], ["y"]]
    assert FOUND.pairs == [[("z", 0.5), ("x", 0.25)], [("y", 1.0)]]
    assert list(FOUND.rows()) == [("a", 1, "z", 0.5), ("a", 2, "x", 0.25), ("b", 1, "y", 1.0)]


def test_an_answer_with_fewer_names_than_rows_is_no_table():
    with pytest.raises(ValueError, match="zip"):
        list(FOUND._replace(asked=["a"]).rows())


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("river", "word 'river': not known; did you mean 'River'?"),
        ("rivers", "word 'rivers': not known; did you mean 'River'?"),
        ("zzz", "word 'zzz': not known; expected one of 4, such as 'River', 'Bank', 'the'"),
    ],
)
def test_an_unknown_name_is_told_what_is_near(asked, message):
    with pytest.raises(UnknownName) as raised:
        Names(["River", "Bank", "the", "sea"], "word").ids(["the", asked])
    assert str(raised.value) == message
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, KeyError)
