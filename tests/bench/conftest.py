"""What commands of bench/, called within the process, must leave as it was."""

import os
from unittest import mock

import pytest


@pytest.fixture(autouse=True, scope="module")
def the_environment_comes_back_after_fixtures_of_a_file():
    """They begin before that of each test, below."""
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture(autouse=True)
def the_environment_comes_back():
    """`python -m bench` tells libraries of its threads by the environment, which other tests' libraries read too."""
    with mock.patch.dict(os.environ):
        yield
