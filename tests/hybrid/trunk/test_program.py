"""A program of the user's makes the module: it is called with what it asks for, and its failures are told in one line."""

import argparse
import os

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid.trunk import torch as consent
from hybrid.trunk import torch as program

GIVEN = {"inputs": 4, "outputs": 3, "seed": 5, "context": 2}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes a program that the user has named."""
    monkeypatch.setenv(consent.VARIABLE, str(tmp_path / "net.py"))

    def write(text, name="net.py"):
        (tmp_path / name).write_text(text)
        return f"{tmp_path / name}:make"

    return write


def test_the_function_gets_the_arguments_that_it_has_and_draws_from_the_seed(written):
    state = torch.get_rng_state()
    text = "import torch\ndef make({}):\n return torch.nn.Linear(inputs, outputs), {}"
    some = ("inputs, outputs", "0"), ("outputs, context, inputs", "context")
    made = [program.call(written(text.format(*each)), GIVEN) for each in some]
    assert made[1][1] == 2 and torch.equal(made[0][0].weight, made[1][0].weight)
    assert torch.equal(torch.get_rng_state(), state)
    assert program.call(written("def make(**all):\n return all"), GIVEN) == GIVEN


def test_a_program_may_import_its_neighbours_and_have_dataclasses(written):
    written("SIZE = 7", "neighbour_of_net.py")
    text = "from __future__ import annotations\nimport dataclasses\nfrom neighbour_of_net import SIZE\n"
    text += "@dataclasses.dataclass\nclass Sizes:\n    size: int = SIZE\ndef make():\n    return Sizes().size\n"
    assert program.call(written(text), GIVEN) == 7


@pytest.mark.parametrize(
    "text, message",
    [
        ("def other(): pass", "it has no function make; expected FILE.py:FUNCTION"),
        ("def make(): return 1 / 0", "fails: ZeroDivisionError: division by zero"),
        ("1 +", "fails: SyntaxError: "),
        ("def make(depth): pass", "fails: TypeError: .*depth"),
    ],
)
def test_a_program_that_fails_is_named(written, text, message):
    with pytest.raises(ValueError, match=rf"--module: .*net.py:make fails: .*{message.removeprefix('fails: ')}"):
        program.call(written(text), GIVEN)
    with pytest.raises(FileNotFoundError, match=r"missing\.py"):
        program.call("missing.py:make", GIVEN)


def test_a_program_that_the_user_has_not_named_is_not_run(written, tmp_path):
    reference = written(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef make(): pass", "another.py")
    with pytest.raises(PermissionError, match=r"another\.py: found a program that the run names"):
        program.call(reference, GIVEN)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", ["net.py", ":make", "net.py:", "net.py:a b"])
def test_a_reference_names_a_file_and_a_function(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"found .*, expected FILE.py:FUNCTION"):
        program.absolute(text)


def test_a_reference_is_kept_with_the_whole_path_and_a_changed_file_is_told_of(written, capsys):
    assert program.absolute("net.py:make") == f"{os.getcwd()}/net.py:make"
    reference = written("a = 1")
    before = program.program_facts(reference)
    program.compare(reference, before)
    program.compare(reference, None)
    assert capsys.readouterr().err == "" and len(before["sha256"]) == 64
    program.compare(written("a = 2"), before)
    assert "net.py has changed since the run was saved" in capsys.readouterr().err
