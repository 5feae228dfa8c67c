import numpy as np
import pytest

from hybrid.use.names import Names, UnknownName


def test_names_become_ids():
    names = Names(["b", "a", "7", "a"], "item")
    assert names.ids(["a", "b", 7]).tolist() == [1, 0, 2]  # of equal names the first counts
    assert names.ids("7").tolist() == names.ids(7).tolist() == [2]
    assert names.ids([]).dtype == np.int32 and len(names) == 4
    assert "a" in names and "c" not in names


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
