"""The campaign in small, and that it finds a file that is written in place; `make crash` is the large one."""

import random
import subprocess
import sys

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("looks through /proc", allow_module_level=True)

from hybrid.storage import files
from tests.crash import campaign as crash

KIND = "language"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return crash.Campaign(tmp_path_factory.mktemp("crash"), ["cpu"])


@pytest.mark.parametrize("scene", ["new", "replaced"])
def test_a_call_that_fails_or_kills_does_no_harm(campaign, scene):
    rng = random.Random(0)
    for _ in range(4):
        campaign.fault(KIND, scene, rng)


def test_kills_do_no_harm(campaign):
    for seed in range(1, 9):  # a run on a busy machine may end before the first signal
        campaign.life(KIND, "cpu", random.Random(seed))
        if campaign.kills:
            return
    pytest.fail("no run was killed")


def test_a_file_that_is_written_in_place_is_found(campaign, monkeypatch):
    rng = random.Random(0)
    monkeypatch.setattr(crash, "run", in_place)
    with pytest.raises(crash.Broken):
        for _ in range(40):
            campaign.fault(KIND, "new", rng)


REAL = crash.run


def in_place(*given):
    """As run, but without temporary names."""

    def written(path, pieces):
        with open(path, "wb") as file:
            for piece in pieces:
                file.write(piece)
                file.flush()
        return path

    files.written = written
    REAL(*given)


def test_a_disk_that_is_full_and_then_read_only_is_told_and_the_run_goes_on_when_it_is_not(campaign):
    whole, disk = campaign.whole(KIND, "cpu")[0], campaign.fresh()

    def mount(options):
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], check=True, capture_output=True)

    try:
        mount("size=32k")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root mounts")
    try:
        out = disk / "runs" / "run"
        for options, why in (("size=32k", "No space left on device"), ("size=1m,ro", "Read-only file system")):
            mount(f"remount,{options}")
            child = crash.Child(campaign.going_on(KIND, "cpu", out), disk).ended()
            assert child.code == 2 and why in child.said and str(disk) in child.said.splitlines()[-1], child.said
        mount("remount,size=1m,rw")
        campaign.finish(KIND, "cpu", disk, [whole])
    finally:
        subprocess.run(["umount", disk], check=True)
