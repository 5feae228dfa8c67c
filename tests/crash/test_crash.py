"""The campaign in small, and that it finds a file that is written in place; `make crash` is the large one."""

import random
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
