"""Standard output that is closed, full or a terminal; errors that name what strangers named (hybrid/cli/command_line.py)."""

import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.cli import main
from hybrid.storage import checkpoint

COMMAND = "import sys; from hybrid.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def vectors(tmp_path):
    """A file of two words."""
    (tmp_path / "words.txt").write_text("2 2\na 1 0\nb 0 1\n")
    return str(tmp_path / "words.txt")


def run(shell, *arguments, **settings):
    """A command of its own, with what a shell does to its streams."""
    line = ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-c", COMMAND, *arguments]
    return subprocess.run(line, capture_output=True, text=True, **settings)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a shell and /dev/full")
def test_closed_streams_are_no_error_and_full_ones_are_named(vectors):
    done = run(">&-", "neighbours", vectors, "a")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run("2>&-", "neighbours", vectors, "absent")
    assert (done.returncode, done.stdout) == (2, ""), "errors go nowhere else"
    done = run("> /dev/full", "neighbours", vectors, "a")
    assert (done.returncode, done.stderr) == (2, "hybrid: error: standard output: No space left on device\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_where_stderr_cannot_be_written_training_ends_as_ever(tmp_path, vectors):
    (tmp_path / "text.txt").write_text("a b c d e f g h\n" * 50)
    command = ["language", "--text", str(tmp_path / "text.txt"), "--epochs", "1", "--device", "cpu"]
    done = run("2> /dev/full", "train", *command, "--out", str(tmp_path / "run"))
    assert done.returncode == 0 and "perplexity" in done.stdout
    assert checkpoint.stands(tmp_path / "run" / "checkpoint")
    assert run("2> /dev/full", "neighbours", vectors, "absent").returncode == 2


def test_names_with_ends_of_lines_leave_an_error_one_line(tmp_path, vectors, capsys):
    for command in (["eval", str(tmp_path / "a\nb\u202e")], ["neighbours", vectors, "a\nb\u202e"]):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and "a\\nb\\u202e" in error
