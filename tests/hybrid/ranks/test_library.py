"""What MPI says of itself is told, and a broken one is an error with its own words."""

import re
import subprocess

import pytest

from hybrid.ranks import library


def test_the_library_of_these_tests_may_be_called_by_several_threads():
    """It is the package mpich, which has no ULFM and knows no device."""
    found = library.ask()
    assert re.fullmatch(r"MPICH \d+\.\d\S*", found["name"]) and found["threads"] == "multiple"
    assert (found["survives"], found["cuda"]) == (False, False)
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


class Toy:
    """As much of an MPI as says whether it takes a device's arrays and may lose a rank."""

    __file__ = "/no/such/library"
    Exception = RuntimeError

    def __init__(self, kinds="", revoked=None):
        self.COMM_WORLD = self.COMM_SELF = self
        self._kinds, self._revoked = kinds, revoked

    def Get_info(self):
        return self

    def Dup(self):
        return self

    def Free(self):
        pass

    def get(self, name):
        return self._kinds

    def Revoke(self):
        if isinstance(self._revoked, type):
            raise self._revoked

    def Is_revoked(self):
        return self._revoked


@pytest.mark.parametrize(("kinds", "aware"), [("mpi,system", False), (None, False), ("system,cuda:device", True)])
def test_kinds_of_memory_tell_of_devices(kinds, aware):
    assert library._cuda(Toy(kinds)) is aware


@pytest.mark.parametrize(("revoked", "survives"), [(NotImplementedError, False), (RuntimeError, False), (True, True)])
def test_who_can_be_revoked_survives(revoked, survives):
    assert library._survives(Toy(revoked=revoked)) is survives
