"""PyCUDA is installed for the tests only where it is missing, and a failure says what to do."""

import importlib.metadata
import platform
import sys

import pytest

from tests.cudasim import prepare


@pytest.fixture
def machine(monkeypatch):
    """A Linux machine without PyCUDA, and how often it is asked for there."""
    asked = []
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(prepare, "installed", lambda: False)
    monkeypatch.setattr(prepare, "install", lambda: asked.append(1))
    monkeypatch.setenv("CXX", f"{sys.executable} --version")  # a program that is there
    return asked


@pytest.mark.parametrize(
    ("version", "enough"), [("2025.1", True), ("2026.1.2", True), ("2024.1.2", False), ("2025.0", False), (None, False)]
)
def test_a_pycuda_that_is_there_is_taken(monkeypatch, version, enough):
    def found(name):
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", found)
    assert prepare.installed() is enough


@pytest.mark.parametrize(
    ("system", "processor", "compiler", "said"),
    [
        ("darwin", "arm64", "c++", "needs Linux on x86_64"),
        ("linux", "aarch64", "c++", "needs Linux on x86_64"),
        ("linux", "x86_64", "/no/such/compiler", "needs a C++ compiler"),
    ],
)
def test_elsewhere_the_gpu_tests_are_skipped(monkeypatch, machine, capsys, system, processor, compiler, said):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: processor)
    monkeypatch.setenv("CXX", compiler)
    assert prepare.main() == 0 and machine == []
    assert said in capsys.readouterr().out


def test_what_is_missing_is_installed_and_nothing_is_done_or_said_where_it_is_there(machine, monkeypatch, capsys):
    with monkeypatch.context() as there:
        there.setattr(prepare, "installed", lambda: True)
        assert prepare.main() == 0 and machine == []
    assert capsys.readouterr() == ("", "")
    assert prepare.main() == 0 and machine == [1]

    def fails():
        raise prepare.PreparationError("there are no headers")

    monkeypatch.setattr(prepare, "install", fails)
    assert prepare.main() == 1
    assert "was not installed: there are no headers\n  a PyCUDA of your own is taken" in capsys.readouterr().err
