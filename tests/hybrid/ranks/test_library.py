"""What MPI says of itself is told, and a broken one is an error with its own words."""

import re
import subprocess

import pytest

from hybrid.ranks import library


def test_the_library_of_these_tests_may_be_called_by_several_threads():
    """It is the package mpich."""
    found = library.ask()
    assert re.fullmatch(r"MPICH \d+\.\d\S*", found["name"]) and found["threads"] == "multiple"
    assert float(found["standard"]) >= 4


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit('noise\\nno such device')", "no such device"),
        ("import sys; sys.exit(3)", "it ends with code 3"),
        ("import time; time.sleep(60)", "it does not answer within 0.5 s"),
    ],
)
def test_a_library_that_does_not_answer_is_an_error(monkeypatch, program, said):
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **how: run([command[0], "-c", program], **how))
    with pytest.raises(OSError, match=said):
        library.ask(0.5 if "0.5" in said else 20)
