"""One benchmark at a time: the second is refused and told of the first, whose end frees the machine."""

import subprocess
import sys

import pytest

from bench import lock

HOLD = """
import sys
from pathlib import Path
from bench import lock
with lock.alone(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that measures."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_one_is_refused_and_told_who_measures(tmp_path, holder):
    with (
        pytest.raises(lock.Taken, match=rf"process {holder.pid} \({sys.executable}") as refused,
        lock.alone(tmp_path / "lock"),
    ):
        pass
    assert "wait until it is done" in str(refused.value)


def test_the_end_of_a_process_frees_the_machine_however_it_ends(tmp_path, holder):
    holder.kill()
    holder.wait()
    with lock.alone(tmp_path / "lock"):
        pass


def test_the_lock_is_given_back_and_its_file_stays(tmp_path):
    path = tmp_path / "lock"
    for _ in range(2):
        with lock.alone(path), pytest.raises(lock.Taken), lock.alone(path):
            pass
    assert path.exists()
