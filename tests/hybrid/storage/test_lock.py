"""A run has one process at a time, and a lock ends with its process, however that ends."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

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


def test_no_link_is_written_through(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / lock.LOCK).symlink_to(tmp_path / "mine")
    with pytest.raises(ValueError, match=r"\.hybrid\.lock: found a link .*; remove the link"), lock.held(tmp_path):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def replaced(run):
    shutil.rmtree(run)
    run.mkdir()
    (run / lock.LOCK).touch()


@pytest.mark.parametrize("end", [shutil.rmtree, replaced, lambda run: (run / lock.LOCK).unlink()])
def test_who_holds_a_folder_that_is_gone_has_no_turn_in_what_stands_there_now(tmp_path, monkeypatch, end):
    """Whatever a failure within says of it, such as the room on the disk, the process is told why."""
    monkeypatch.chdir(tmp_path)
    said = "run: the run there was removed, or replaced by another, .* nothing more is saved"
    for run in (tmp_path / "run", Path("run")):
        run.mkdir()
        with pytest.raises(OSError, match=said), lock.held(run):
            lock.keep(run / "checkpoint")
            end(run)
            (run / "checkpoint").mkdir(parents=True)
            with pytest.raises(OSError, match=said), lock.turn(run / "checkpoint"):
                pass
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with lock.turn(run / "checkpoint"):  # now nobody is in the wrong place
            shutil.rmtree(run)


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
