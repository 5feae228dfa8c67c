"""A program of the user's that makes the module: run where it was named, its failures told in one line."""

import argparse
import os

import pytest

from hybrid.trunk import torch as trunk

GIVEN = {"inputs": 4, "outputs": 3, "seed": 5, "context": 2}
LINEAR = "import torch\ndef make({}):\n return torch.nn.Linear(inputs, outputs), {}"


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program that nobody has named, of a user whose cache is empty."""
    monkeypatch.setattr(trunk, "caches", lambda: tmp_path / "cache")
    monkeypatch.setattr(trunk, "_named", set())
    (tmp_path / "cache").mkdir(mode=0o700)
    for name in ("net.py", "another.py", "third.py"):
        (tmp_path / name).touch()
    return tmp_path / "net.py"


def refused(program):
    try:
        trunk.refuse_stranger(program)
    except PermissionError as error:
        assert f"{program}: found a program" in str(error) and f"set HYBRID_MODULES={program}" in str(error)
        return True
    return False


def test_a_named_program_is_run_in_later_processes_too(program, monkeypatch):
    assert refused(program)
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", action=trunk.Named)
    assert parser.parse_args(["--module", f"{program}:make"]).module == f"{program}:make"
    assert not refused(program)
    monkeypatch.setattr(trunk, "_named", set())  # of this process
    assert not refused(program)
    assert refused(program.with_name("another.py"))


def test_a_program_is_named_as_it_was_then(program, tmp_path):
    """A file that is not there agrees to nothing, and a name with a line end to no second file."""
    trunk.agree(program)
    program.write_text("import os")
    assert refused(program)
    with pytest.raises(FileNotFoundError):
        trunk.agree(tmp_path / "none\nnet.py")
    (tmp_path / "two\nlines.py").touch()
    trunk.agree(tmp_path / "two\nlines.py")
    assert refused(program) and len(trunk._agreed()) == 2
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--module", action=trunk.Named)
    with pytest.raises(argparse.ArgumentError, match=r"none\.py: No such file"):
        parser.parse_args(["--module", "none.py:make"])


def test_a_link_is_named_as_what_it_points_to(program, tmp_path):
    link = tmp_path / "link.py"
    link.symlink_to(program)
    trunk.agree(link)
    assert not refused(link) and not refused(program)
    link.unlink()
    link.symlink_to(tmp_path / "another.py")
    assert refused(link)


def test_a_variable_names_programs(program, tmp_path, monkeypatch):
    monkeypatch.setenv(trunk.VARIABLE, f"{tmp_path / 'another.py'}:{program}")
    assert not refused(program) and refused(tmp_path / "third.py")
    monkeypatch.setenv(trunk.VARIABLE, "")
    assert refused(program)


def test_a_list_that_others_could_have_written_is_ignored(program, tmp_path, monkeypatch):
    trunk.agree(program)
    monkeypatch.setattr(trunk, "_named", set())  # of this process
    (tmp_path / "cache").chmod(0o777)
    assert refused(program)
    trunk.agree(program)  # this process remembers it
    assert not refused(program)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes a program that the user has named."""
    pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
    monkeypatch.setenv(trunk.VARIABLE, str(tmp_path / "net.py"))

    def write(text, name="net.py"):
        (tmp_path / name).write_text(text)
        return f"{tmp_path / name}:make"

    return write


def test_the_function_gets_the_arguments_that_it_has_and_draws_from_the_seed(written):
    import torch

    state = torch.get_rng_state()
    some = ("inputs, outputs", "0"), ("outputs, context, inputs", "context")
    made = [trunk.call(written(LINEAR.format(*each)), GIVEN) for each in some]
    assert made[1][1] == 2 and torch.equal(made[0][0].weight, made[1][0].weight)
    assert torch.equal(torch.get_rng_state(), state)
    assert trunk.call(written("def make(**all):\n return all"), GIVEN) == GIVEN


def test_a_program_may_import_its_neighbours_and_have_dataclasses(written):
    written("SIZE = 7", "neighbour_of_net.py")
    text = "from __future__ import annotations\nimport dataclasses\nfrom neighbour_of_net import SIZE\n"
    text += "@dataclasses.dataclass\nclass Sizes:\n    size: int = SIZE\ndef make():\n    return Sizes().size\n"
    assert trunk.call(written(text), GIVEN) == 7


@pytest.mark.parametrize(
    "text, message",
    [
        ("def make(): return 1 / 0", "fails: ZeroDivisionError: division by zero"),
        ("1 +", "fails: SyntaxError: "),
        ("def make(depth): pass", "fails: TypeError: .*depth"),
    ],
)
def test_a_program_that_fails_is_named(written, text, message):
    with pytest.raises(ValueError, match=rf"--module: .*net.py:make fails: .*{message.removeprefix('fails: ')}"):
        trunk.call(written(text), GIVEN)
    with pytest.raises(FileNotFoundError, match=r"missing\.py"):
        trunk.call("missing.py:make", GIVEN)


def test_a_program_that_the_user_has_not_named_is_not_run(written, tmp_path):
    reference = written(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef make(): pass", "another.py")
    with pytest.raises(PermissionError, match=r"another\.py: found a program that the run names"):
        trunk.call(reference, GIVEN)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", ["net.py", ":make", "net.py:", "net.py:a b"])
def test_a_reference_names_a_file_and_a_function(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"found .*, expected FILE.py:FUNCTION"):
        trunk.absolute(text)


def test_a_reference_has_the_whole_path_and_a_changed_file_is_noted(written, capsys):
    assert trunk.absolute("net.py:make") == f"{os.getcwd()}/net.py:make"
    text = LINEAR.format("inputs, outputs", "lambda own: torch.optim.SGD(own, lr=0.1)")
    options = {"module": written(text)}
    facts = trunk.make(4, 3, options, seed=5).describe()
    trunk.remade(facts, options)
    trunk.remade(facts | {"source": None}, options)
    assert capsys.readouterr().err == ""
    written(text + "  # a remark")
    assert trunk.remade(facts, options).source != facts["source"]
    assert "net.py has changed since the run was saved" in capsys.readouterr().err
