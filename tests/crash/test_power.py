"""What a power cut leaves, drawn many times of a few calls (tests/crash/power.py)."""

import numpy as np
import pytest

from tests.crash import power
from tests.crash.calls import Call


@pytest.fixture
def states(tmp_path):
    """All folders that are left when the power is cut after some calls: by name, the bytes of each file."""

    def draw(*calls: Call, number: int = 200) -> list[dict[str, bytes]]:
        (tmp_path / "before").mkdir()
        (tmp_path / "before" / "old").write_bytes(b"old")
        disk, rng, found = power.Disk(tmp_path / "before"), np.random.default_rng(0), []
        for call in calls:
            disk.take(call)
        for turn in range(number):
            disk.cut(folder := tmp_path / str(turn), rng)
            left = {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
            if left not in found:
                found.append(left)
        return found

    return draw


WRITTEN = (Call("create", "new"), Call("write", "new", data=b"abc"))
SYNCED = Call("fsync", "new"), Call("fsync", "")


def test_what_is_synced_with_its_name_is_there(states):
    assert states(*WRITTEN, *SYNCED) == [{"old": b"old", "new": b"abc"}]


def test_without_its_name_a_file_may_be_lost_and_never_has_other_bytes(states):
    found = states(*WRITTEN, SYNCED[0])
    assert {"old": b"old"} in found and {"old": b"old", "new": b"abc"} in found and len(found) == 2


def test_bytes_that_are_not_synced_may_be_lost_torn_or_behind_zeros(states):
    calls = (*WRITTEN, Call("write", "new", at=3, data=b"de"), Call("fsync", ""))
    found = {left["new"] for left in states(*calls)}
    assert {b"", b"abc", b"abcde", b"\0\0\0de", b"a", b"abcd"} <= found
    assert all(one == bytes(a or b for a, b in zip(one, b"abcde", strict=False)) or 0 in one for one in found)


def test_a_rename_is_there_whole_or_not_at_all(states):
    found = states(*WRITTEN, *SYNCED, Call("replace", "new", "old"))
    assert {"old": b"abc"} in found and {"old": b"old", "new": b"abc"} in found and len(found) == 2


def test_changes_of_different_names_may_come_to_the_disk_in_any_order(states):
    found = states(*WRITTEN, *SYNCED, Call("replace", "new", "newer"), Call("unlink", "old"))
    assert {"newer": b"abc"} in found and {"new": b"abc"} in found and len(found) == 4


def test_no_change_of_a_name_is_there_without_those_before_it(states):
    found = states(*WRITTEN, SYNCED[0], Call("replace", "new", "newer"))
    assert all("newer" not in left or left["newer"] == b"abc" for left in found) and len(found) == 3


def test_a_folder_that_is_not_synced_takes_with_it_what_is_in_it(states):
    calls = Call("mkdir", "in"), Call("create", "in/new"), Call("fsync", "in/new"), Call("fsync", "in")
    assert {"old": b"old"} in states(*calls)


def test_a_file_that_is_emptied_may_lose_its_bytes(states):
    found = [left["old"] for left in states(Call("truncate", "old"), Call("write", "old", data=b"young"))]
    assert {b"old", b"", b"young"} <= set(found)
