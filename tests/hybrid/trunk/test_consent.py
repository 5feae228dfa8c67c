"""A program is run where the user has named it: on the command line, here and before, or in HYBRID_MODULES."""

import argparse

import pytest

from hybrid.trunk import torch


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program that nobody has named, of a user whose cache is empty."""
    monkeypatch.setattr(torch, "caches", lambda: tmp_path / "cache")
    monkeypatch.setattr(torch, "_named", set())
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "net.py").touch()
    return tmp_path / "net.py"


def forget_this_process(monkeypatch):
    monkeypatch.setattr(torch, "_named", set())


def refused(program):
    try:
        torch.refuse_stranger(program)
    except PermissionError as error:
        assert f"{program}: found a program" in str(error) and f"set HYBRID_MODULES={program}" in str(error)
        return True
    return False


def test_a_program_is_refused_until_it_is_named_and_then_in_later_processes_too(program, monkeypatch):
    assert refused(program)
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", action=torch.Named)
    assert parser.parse_args(["--module", f"{program}:make"]).module == f"{program}:make"
    assert not refused(program)
    forget_this_process(monkeypatch)
    assert not refused(program)
    assert refused(program.with_name("another.py"))


def test_the_agreement_is_with_the_program_and_not_with_what_a_link_of_its_name_points_to(program, tmp_path):
    link = tmp_path / "link.py"
    link.symlink_to(program)
    torch.agree(link)
    assert not refused(link) and not refused(program)
    link.unlink()
    link.symlink_to(tmp_path / "another.py")
    assert refused(link)


def test_a_variable_names_programs(program, tmp_path, monkeypatch):
    monkeypatch.setenv(torch.VARIABLE, f"{tmp_path / 'another.py'}:{program}")
    assert not refused(program) and refused(tmp_path / "third.py")
    monkeypatch.setenv(torch.VARIABLE, "")
    assert refused(program)


def test_a_list_that_others_could_have_written_is_not_believed(program, tmp_path, monkeypatch):
    torch.agree(program)
    forget_this_process(monkeypatch)
    (tmp_path / "cache" / "hybrid-engine").chmod(0o777)
    assert refused(program)
    torch.agree(program)  # of this process it is believed
    assert not refused(program)
