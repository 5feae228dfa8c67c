"""The campaign in small, and that it finds mistakes that are planted; `make crash` is the large one."""

import subprocess
import sys

import numpy as np
import pytest

from tests.support.small_runs import write_data

if not sys.platform.startswith("linux"):
    pytest.skip("looks through /proc", allow_module_level=True)

from tests.crash import power
from tests.crash.calls import Call
from tests.crash.child import Task
from tests.crash.faults import MANNERS, RUN, Faults
from tests.crash.kills import Kills
from tests.crash.runs import Broken, Model, finish, fresh_disk, going_on, has_begun, whole

KIND = "language"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def faults(data, tmp_path_factory):
    return Faults(tmp_path_factory.mktemp("faults"), data)


def place(scene, name: str, path: str) -> int:
    """How much was told when a call was made, for the first time."""
    return next(
        at for at, told in enumerate(scene.told) if isinstance(told, Call) and (told.name, told.path) == (name, path)
    )


@pytest.mark.parametrize("manner", MANNERS)
def test_a_fault_does_no_harm(faults, manner):
    rng = np.random.default_rng(0)
    for _ in range(3):
        faults.fault(KIND, "new", manner, rng)
    assert faults.counts[manner] == 3


def test_a_power_cut_while_a_run_takes_the_place_of_another_does_no_harm(faults):
    scene, rng = faults.scene(KIND, "replaced"), np.random.default_rng(0)
    erased = place(scene, "unlink", str(RUN / "checkpoint" / "checkpoint.json"))
    for at in range(erased, erased + 8):
        faults.cut(scene, at, rng)


def test_a_power_cut_behind_the_end_of_a_run_takes_nothing_of_it(faults):
    scene, rng = faults.scene(KIND, "new"), np.random.default_rng(0)
    for _ in range(10):
        faults.cut(scene, len(scene.told), rng)


def test_every_change_of_the_folder_is_seen(faults, tmp_path):
    """What was recorded makes, of what there was before, what the process left."""
    scene = faults.scene(KIND, "new")
    disk = power.Disk(scene.begin)
    for told in scene.told:
        if isinstance(told, Call):
            disk.take(told)
    assert seen(disk.root) == seen(power.Disk(scene.begin.parent / "disk").root)


def seen(node) -> object:
    """A folder as processes see it, by name."""
    if isinstance(node, power.File):
        return node.content(node.later)
    return {name: seen(below) for name, below in node.seen.items()}


@pytest.mark.parametrize("plant", ["nothing is synced", "files are not synced", "folders are not synced"])
def test_what_is_not_synced_is_found(data, tmp_path, plant):
    faults, rng = Faults(tmp_path, data, plant), np.random.default_rng(0)
    with pytest.raises(Broken):
        for _ in range(20):
            faults.fault(KIND, "new", "cut", rng)


def test_a_file_that_is_written_in_place_is_found(data, tmp_path):
    faults, rng = Faults(tmp_path, data, "files are written in place"), np.random.default_rng(0)
    scene = faults.scene(KIND, "new")
    emptied = place(scene, "truncate", str(RUN / "checkpoint" / "checkpoint.json"))
    with pytest.raises(Broken):
        for _ in range(20):
            faults.cut(scene, emptied + 1, rng)


@pytest.mark.parametrize("every", [0.0, 0.002])
def test_a_kill_does_no_harm(data, tmp_path, every):
    kills = Kills(tmp_path, data, ("cpu",))
    kills.life(whole(Model(KIND, "cpu", data)), every, np.random.default_rng(0))
    assert kills.count > 0


@pytest.mark.parametrize(("plant", "every"), [("epochs end unsaved", 0.0), ("no save is due", 0.002)])
def test_a_save_that_is_left_out_is_found(data, tmp_path, plant, every):
    kills = Kills(tmp_path, data, ("cpu",), plant)
    with pytest.raises(Broken, match=r"tick \d+ was not saved"):
        kills.life(whole(Model(KIND, "cpu", data)), every, np.random.default_rng(0))


@pytest.fixture
def small_disk(data, tmp_path):
    """A folder on a file system that `mount` gives another size, or makes read-only."""
    disk = fresh_disk(tmp_path)

    def mount(options: str) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], check=True, capture_output=True)

    try:
        mount("size=32k")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root mounts")
    yield disk, lambda options: mount(f"remount,{options}")
    subprocess.run(["umount", disk], check=True)


def test_a_disk_that_is_full_and_then_read_only_is_told_and_the_run_goes_on_when_it_is_not(data, small_disk):
    disk, remount = small_disk
    this, out = whole(Model(KIND, "cpu", data)), disk / "run"
    for options, why in (("size=32k", "No space left on device"), ("size=1m,ro", "Read-only file system")):
        remount(options)
        child = Task(going_on(this.model, out), disk, every=True).done()
        assert child.code == 2 and why in child.said and str(disk) in child.said.splitlines()[-1], child.said
    remount("size=1m,rw")
    anew, words = has_begun(out), going_on(this.model, out)
    finish(Task(words, disk).done(), out, anew, this.left)
