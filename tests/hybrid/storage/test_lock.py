"""A run has one process at a time, and a lock ends with its process, however that ends."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading

import pytest

from hybrid.storage import lock

HOLD = """
import sys, time
from pathlib import Path
from hybrid.storage import lock
with lock.held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_and_told_which_the_first_is(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with pytest.raises(ValueError, match=f"process {process.pid} works on this run"), lock.held(tmp_path):
        pass
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with lock.held(tmp_path):
        assert (tmp_path / lock.LOCK).read_text() == f"{os.getpid()}\n"


def test_a_process_that_is_being_ended_is_waited_for(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    threading.Timer(0.1, process.kill).start()
    with lock.held(tmp_path, wait=30.0):
        assert process.wait() == -signal.SIGKILL
    process.communicate()


def test_a_second_thread_is_refused_too(tmp_path):
    with lock.held(tmp_path), pytest.raises(ValueError, match=f"process {os.getpid()}"), lock.held(tmp_path):
        pass
    with lock.held(tmp_path):
        pass


def test_no_link_is_written_through(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / lock.LOCK).symlink_to(tmp_path / "mine")
    with pytest.raises(OSError), lock.held(tmp_path):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("missing", ["O_CLOEXEC", "O_NOFOLLOW"])
def test_a_system_without_a_flag_locks_without_it(tmp_path, monkeypatch, missing):
    monkeypatch.delattr(os, missing)
    with lock.held(tmp_path):
        assert (tmp_path / lock.LOCK).read_text() == f"{os.getpid()}\n"


def test_where_a_file_system_has_no_locks_it_is_said(tmp_path, monkeypatch, capsys):
    def refused(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    with lock.held(tmp_path), lock.turn(tmp_path) as alone:
        assert not alone
    assert "cannot be locked (No locks available)" in capsys.readouterr().err


def test_a_full_disk_is_told_with_the_name_of_the_lock(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError) as error, lock.held(tmp_path):
        pass
    assert error.value.filename == str(tmp_path / lock.LOCK)


def test_turns_are_taken(tmp_path):
    with lock.turn(tmp_path) as alone:
        assert alone
        descriptor = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
