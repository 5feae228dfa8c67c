"""PyCUDA is installed for the tests only where it is missing, and a failure says what to do."""

import importlib.metadata
import sys

from tests.cudasim import prepare


def test_only_what_is_missing_is_installed_and_a_failure_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setenv("CXX", "/no/such/compiler")
    for version, enough in (("2025.1", True), ("2024.1.2", False)):
        monkeypatch.setattr(importlib.metadata, "version", lambda name, version=version: version)
        assert prepare.installed() is enough
    assert prepare.main() == 0 and "the GPU tests are skipped here" in capsys.readouterr().out
    monkeypatch.setenv("CXX", sys.executable)  # a program that is there

    def fails():
        raise prepare.PreparationError("there are no headers")

    monkeypatch.setattr(prepare, "install", fails)
    assert prepare.main() == 1
    assert "was not installed: there are no headers\n  a PyCUDA of your own is taken" in capsys.readouterr().err
