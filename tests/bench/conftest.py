"""What commands of bench/, called within the process, must leave as it was."""

import os
from unittest import mock

import pytest


@pytest.fixture(autouse=True)
def the_environment_comes_back():
    """`python -m bench` tells libraries of its threads by the environment, which other tests' libraries read too."""
    with mock.patch.dict(os.environ):
        yield
