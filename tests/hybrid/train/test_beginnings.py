"""A kill or a full disk at every operation of a beginning: the run goes on, or begins anew."""

import contextlib
import errno
import itertools
import shutil
from pathlib import Path

import pytest

from hybrid.cli import main
from hybrid.train import store
from tests.support.full_disk import Disk, Fault
from tests.support.small_runs import Killed, command, kill, stop_at, tensors, ticks


@pytest.mark.parametrize(("kind", "dead"), [("language", True), ("factors", False), ("pvm", True), ("pvm", False)])
def test_a_beginning_that_fails_anywhere_goes_on_or_begins_anew(tmp_path, data, undrawn, kind, dead, capsys):
    """What a process leaves at any write, sync, rename, removal of its beginning; each state of the folder once."""
    assert main(command(kind, data, tmp_path / "whole")) == 0
    expected, states, out = tensors(tmp_path / "whole"), set(), tmp_path / "run"
    for number in itertools.count():
        with pytest.MonkeyPatch.context() as patch:
            stop_at(patch, 1, kill)
            tell = lambda *_: kill() if dead else None  # noqa: E731
            disk = Disk(str(out), Fault(number, errno.ENOSPC, lasting=dead), tell, patch.setattr)
            with contextlib.suppress(Killed):
                assert main(command(kind, data, out)) == 2
        if disk.number <= number:
            break
        said = capsys.readouterr().err
        assert dead or "No space left" in said, said
        begun = (out / store.RUN).exists()
        state = (begun, *sorted(name_of(path) for path in out.rglob("*")))
        if state not in states:
            states.add(state)
            assert main(["train", "--resume", str(out)] if begun else command(kind, data, out)) == 0
            assert tensors(out) == expected
            assert not list(out.rglob("*.part"))
        shutil.rmtree(out, ignore_errors=True)
    assert ticks(out) == 0  # killed in the first tick, behind the first save
    assert len(states) > 5


def name_of(path: Path) -> str:
    """A path's name without what is drawn or a digest."""
    return "".join(letter for letter in path.name if letter not in "0123456789abcdef")
