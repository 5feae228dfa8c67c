import pytest

from hybrid.use.answers import Names, UnknownName


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
