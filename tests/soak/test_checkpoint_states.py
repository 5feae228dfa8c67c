"""Any order of saves, loads, failing disks, deaths and altered files: a folder has the last save and the one before."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hybrid.storage import checkpoint, files
from tests.support.full_disk import Disk
from tests.support.saved_arrays import arrays, same, tensor_file
from tests.support.small_runs import Killed
from tests.support.states import finds


class Folder(RuleBasedStateMachine):
    """What is saved is known by its number.

    latest, previous  the numbers of the saves that stand; None: there is none
    """

    def __init__(self):
        super().__init__()
        self._made = tempfile.TemporaryDirectory()
        self.folder = Path(self._made.name) / "checkpoint"
        self.latest = self.previous = None
        self.number = 0

    def teardown(self):
        self._made.cleanup()

    def _save(self):
        self.number += 1
        checkpoint.save(self.folder, arrays(self.number), {"number": self.number})

    @rule()
    def save(self):
        self._save()
        self.latest, self.previous = self.number, self.latest

    @rule(operation=st.integers(0, 30), dead=st.booleans())
    def save_breaks(self, operation, dead):
        """The disk is full, or the process dies: the folder has this save or the one before, and never less than it had."""
        with pytest.MonkeyPatch.context() as patch:
            Disk(patch, self.folder, operation, dead)
            try:
                self._save()
            except (OSError, Killed) as failure:
                assert dead == isinstance(failure, Killed)
        found, before = _number(self.folder / checkpoint.LATEST), self.latest
        assert found in (self.number, before)
        if found == self.number:
            kept = _number(self.folder / checkpoint.PREVIOUS)
            assert kept in (before, self.previous)
            self.latest, self.previous = found, kept

    @rule()
    def erase(self):
        checkpoint.erase(self.folder)
        assert not self.folder.exists()
        self.latest = self.previous = None

    @rule(seed=st.integers(0, 5))
    def other_arrays_are_refused_and_stay_as_they_are(self, seed):
        other = {name: array for name, array in arrays(seed).items() if name != "table"}
        before = {name: array.copy() for name, array in other.items()}
        with pytest.raises((ValueError, FileNotFoundError), match=r"another model|no such checkpoint"):
            checkpoint.load_into(self.folder, other)
        assert same(other, before)

    @rule(place=st.integers(0, 10**6), cut=st.booleans())
    def a_file_that_was_altered_is_refused_and_the_save_before_stands(self, place, cut):
        if self.latest is None or self.latest == self.previous:
            return
        path = tensor_file(self.folder / checkpoint.LATEST)
        whole = path.read_bytes()
        place %= len(whole)
        changed = whole[:place] + (b"" if cut else bytes([whole[place] ^ 1]) + whole[place + 1 :])
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"truncated|altered"):
            checkpoint.load(self.folder)
        if self.previous is not None:
            assert _number(self.folder / checkpoint.PREVIOUS) == self.previous
        path.write_bytes(whole)

    @invariant()
    def the_last_two_saves_stand(self):
        assert checkpoint.stands(self.folder) == (self.latest is not None)
        for name, number in ((checkpoint.LATEST, self.latest), (checkpoint.PREVIOUS, self.previous)):
            assert _number(self.folder / name) == number


def _number(path):
    """Which save a file is of, all of whose arrays are right; None without one."""
    if not path.exists():
        return None
    found, facts = checkpoint.load(path)
    assert same(found, arrays(facts["number"]))
    assert checkpoint.read_facts(path) == facts
    return facts["number"]


TestFolder = Folder.TestCase
TestFolder.settings = settings(max_examples=max(1, settings.default.max_examples // 5), stateful_step_count=12)


def test_a_save_that_forgets_the_one_before_is_found(monkeypatch):
    publish = files.publish
    monkeypatch.setattr(files, "publish", lambda part, path: path.name == checkpoint.PREVIOUS or publish(part, path))
    finds(Folder)


def test_a_load_that_does_not_look_at_the_bytes_is_found(monkeypatch):
    monkeypatch.setattr(checkpoint, "_verify", checkpoint._verify_size)
    finds(Folder, pytest.fail.Exception)
