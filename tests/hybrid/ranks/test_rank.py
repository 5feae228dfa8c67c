"""What a rank says comes by lines behind its name; tests/hybrid/ranks/test_launch.py runs ranks."""

import io

import pytest

from hybrid.ranks import rank


def test_lines_are_written_whole_behind_a_name():
    file = io.StringIO()
    named = rank.Named(file, lambda: "rank 1 on north: ")
    named.write("a")
    assert file.getvalue() == ""
    named.write("b\nc\n\nd")
    named.flush()
    said = [f"rank 1 on north: {line}\n" for line in ("ab", "c", "", "d")]
    assert file.getvalue() == "".join(said)
    assert not named.isatty()


def test_a_rank_without_mpi4py_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"hybrid-engine\[mpi\]"):
        rank.run("module", [], 1.0)
