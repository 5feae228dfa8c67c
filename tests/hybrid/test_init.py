"""What `from hybrid import ...` offers."""

import pytest

import hybrid


@pytest.mark.parametrize("name", hybrid.__all__)
def test_names_exist_and_say_what_they_are(name):
    assert getattr(hybrid, name).__doc__


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        hybrid.nothing  # noqa: B018
