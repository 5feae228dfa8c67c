"""Nothing is left behind by a tick: resident memory is flat, in a process of its own."""

import itertools
import subprocess
import sys

import pytest

from tests.soak.memory import MOST, resident, risen
from tests.support.imports import ROOT


@pytest.mark.parametrize("share", ["0.1", pytest.param("1", marks=pytest.mark.slow)])
def test_memory_is_flat_over_ticks_and_frames(share):
    ended = subprocess.run([sys.executable, "-m", "tests.soak.memory", share], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_what_is_kept_of_every_tick_is_seen():
    kept, each = [], resident() // 1_000  # a tenth of a percent a tick: most of it is more than what was free before
    assert risen((kept.append(bytes([tick % 255 + 1]) * each) for tick in itertools.count()), 200) > MOST
