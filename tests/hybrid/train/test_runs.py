"""The life of a run on disk, for every model: killed anywhere it goes on or begins anew, and ends with the same bytes.

Altered checkpoints are also the tests of hybrid/engine/saved.py.
"""

import contextlib
import errno
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.engine import Engine
from hybrid.pvm.judge import curve, panel
from hybrid.pvm.model import PVM
from hybrid.storage import atomic, checkpoint
from hybrid.train import plots, store
from hybrid.train.saving import Saves
from hybrid.train.stop import Stop, Stopped
from tests.hybrid.pvm import tiny

SIZES = ["--width", "4", "--threads", "2"]
TRUNK = ["--hidden", "6", "--readout-width", "4", "--batch", "64"]
KINDS = ("language", "words", "factors", "pvm")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A text of words in pairs, and ratings of users who walk in a circle."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    lines = (" ".join(f"noun{i} verb{i}" for i in rng.integers(0, 20, 6)) for _ in range(60))
    (folder / "text.txt").write_text("\n".join(lines))
    rows = (f"{u}\t{(3 * u + t) % 25}\t4\t{1000 + t}" for u in range(30) for t in range(9))
    (folder / "u.data").write_text("\n".join(rows) + "\n")
    return folder


def command(kind, data, out, *more):
    """The command that trains a small model, for two epochs of some ticks."""
    if kind == "pvm":
        return tiny.command(data, out, "--steps", "8", "--every", "4", *more)
    text, ratings = ["--text", str(data / "text.txt")], ["--ratings", str(data / "u.data")]
    own = {
        "language": [*text, *TRUNK],
        "words": [*text, "--min-count", "1", "--window", "1"],
        "factors": [*ratings, *TRUNK],
    }
    return ["train", kind, *own[kind], *SIZES, "--epochs", "2", "--out", str(out), *more]


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures, which take longest of a small run, are not drawn."""
    for module, name in ((plots, "curve"), (plots, "timeline"), (curve, "draw"), (panel, "save")):
        monkeypatch.setattr(module, name, lambda *_: None)


@pytest.fixture
def every_tick(monkeypatch):
    """A save is due after every tick."""
    monkeypatch.setattr(Saves, "due", lambda _: True)


def tensors(run: Path) -> str:
    """The name of the latest checkpoint's tensors, which is their sha256."""
    return tiny.tensors(run)


def ticks(run: Path) -> int:
    facts = checkpoint.read_facts(run)
    return facts["pvm"]["step"] if "pvm" in facts else facts["engine"]["tick"]


def stop_at(monkeypatch, tick: int, act) -> None:
    """Do something between two ticks, once so many are done."""
    for owner, name in ((Engine, "tick"), (PVM, "step_number")):
        run = owner.run

        def stopping(self, *feed, run=run, name=name, **options):
            for done in run(self, *feed, **options):
                if getattr(self, name) == tick:
                    act()
                yield done

        monkeypatch.setattr(owner, "run", stopping)


class Killed(BaseException):
    """What a test kills a run by."""


def kill():
    raise Killed


# A kill or a full disk, at every operation of a beginning


class Disk:
    """A folder whose operation `number` fails; dead: and all after it, as for a process that was killed there."""

    def __init__(self, patch, folder: Path, number: int, dead: bool):
        self.folder, self.left, self.dead, self.failed = str(folder), number, dead, False
        for name in ("mkdir", "replace", "unlink", "rmdir", "ftruncate", "write", "fsync", "open"):
            patch.setattr(os, name, self._guarded(name, getattr(os, name)))
        patch.setattr(atomic, "open", self._opened, raising=False)

    def _guarded(self, name, real):
        def call(first, *more, **named):
            path = os.readlink(f"/proc/self/fd/{first}") if isinstance(first, int) else os.fspath(first)
            if str(path).startswith(self.folder) and (name != "open" or more[0] & os.O_CREAT):
                self.operate()
            return real(first, *more, **named)

        return call

    def _opened(self, path, mode):
        self.operate()
        return _Watched(open(path, mode), self.operate)

    def operate(self) -> None:
        if self.failed and not self.dead:
            return
        if self.failed or self.left == 0:
            self.failed = True
            raise Killed if self.dead else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.left -= 1


class _Watched:
    """A file that asks before each piece it writes."""

    def __init__(self, file, operate):
        self._file, self._operate = file, operate

    def writelines(self, pieces) -> None:
        for piece in pieces:
            self._operate()
            self._file.write(piece)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self._file.close()


@pytest.mark.parametrize("dead", [True, False], ids=["killed", "full disk"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_beginning_that_fails_anywhere_goes_on_or_begins_anew(tmp_path, data, undrawn, kind, dead, capsys):
    """What a process leaves at any write, sync, rename, removal of its beginning; each state of the folder once."""
    assert main(command(kind, data, tmp_path / "whole")) == 0
    expected, states, out = tensors(tmp_path / "whole"), set(), tmp_path / "run"
    for number in itertools.count():
        with pytest.MonkeyPatch.context() as patch:
            stop_at(patch, 1, kill)
            disk = Disk(patch, out, number, dead)
            with contextlib.suppress(Killed):
                assert main(command(kind, data, out)) == 2
        if not disk.failed:
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


# Saves by the clock, and stops


def curve_of(run: Path) -> list[dict]:
    """The curve without its clocks."""
    points = json.loads((run / store.REPORT).read_text())["curve"]
    return [{name: value for name, value in point.items() if "seconds" not in name} for point in points]


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_in_its_first_epoch_goes_on_from_its_last_save(tmp_path, data, undrawn, every_tick, kind):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(command(kind, data, whole)) == 0
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        stop_at(patch, 3, kill)
        main(command(kind, data, killed))
    assert ticks(killed) == 2
    assert main(["train", "--resume", str(killed)]) == 0
    assert tensors(killed) == tensors(whole)
    assert curve_of(killed) == curve_of(whole)


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_clock_a_run_is_saved_at_its_beginning_after_epochs_and_at_its_end(tmp_path, data, undrawn, kind):
    saved, save = [], checkpoint.save
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save", lambda folder, *what: (save(folder, *what), saved.append(ticks(folder))))
        assert main(command(kind, data, tmp_path / "run", "--save-every", "0")) == 0
    last = saved[-1]
    assert saved == ([0, last] if kind == "pvm" else [0, last // 2, last])


@pytest.mark.parametrize("kind", ["language", "pvm"])
def test_kill_9_in_the_first_epoch_costs_no_more_than_the_time_between_saves(tmp_path, data, undrawn, kind):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    length = ["--steps", "4000"] if kind == "pvm" else ["--batch", "4"]
    arguments = command(kind, data, killed, *length, "--save-every", "0.001")
    process = subprocess.Popen([sys.executable, "-m", "hybrid.cli", *arguments], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            if ticks(killed) > 1:
                break
    process.send_signal(signal.SIGKILL)
    said = process.communicate()[1]
    assert process.returncode == -signal.SIGKILL, said
    assert 1 < ticks(killed) < (4000 if kind == "pvm" else 150)  # ticks of an epoch
    further = ["--steps", str(ticks(killed) + 4)] if kind == "pvm" else []
    assert main(["train", "--resume", str(killed), *further, "--save-every", "60"]) == 0
    if kind == "pvm":
        length = further
    assert main(command(kind, data, whole, *length)) == 0
    assert tensors(killed) == tensors(whole)


@pytest.mark.parametrize("kind", ["language", "pvm"])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_run_cleanly(tmp_path, data, undrawn, capsys, monkeypatch, kind, number):
    stop_at(monkeypatch, 3, lambda: signal.raise_signal(number))
    assert main(command(kind, data, tmp_path / "run")) == 128 + number
    assert "stopped at tick 3; go on with: hybrid train --resume" in capsys.readouterr().err
    assert ticks(tmp_path / "run") == 3


def test_a_signal_that_is_ignored_stays_so(tmp_path, data, undrawn, monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        stop_at(monkeypatch, 3, lambda: signal.raise_signal(signal.SIGHUP))
        assert main(command("language", data, tmp_path / "run")) == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_does_not_wait():
    with pytest.raises(KeyboardInterrupt), Stop() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.signal == signal.SIGTERM
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_run_may_begin_in_another_thread(tmp_path, data, undrawn):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(command("language", data, tmp_path / "run"))))
    thread.start()
    thread.join()
    assert codes == [0]


def test_stopped_is_of_the_signal_that_came():
    assert Stopped(signal.SIGHUP, 3, Path("run")).signal == signal.SIGHUP


# One process, and its folder


@pytest.mark.parametrize("kind", ["language", "pvm"])
def test_a_run_under_way_is_refused_by_name(tmp_path, data, undrawn, capsys, kind):
    run, codes = tmp_path / "run", []

    def intrude():
        for more in (["--resume", str(run)], [*command(kind, data, run, "--overwrite")[1:]]):
            codes.append(main(["train", *more]))

    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 2, intrude)
        assert main(command(kind, data, run)) == 0
    assert codes == [2, 2]
    assert capsys.readouterr().err.count(f"{run}: process {os.getpid()} works on this run") == 2
    assert main(["train", "--resume", str(run)]) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_another_run_takes_the_place_of_one(tmp_path, data, undrawn, capsys, kind):
    run, fresh = tmp_path / "run", tmp_path / "fresh"
    assert main(command(kind, data, run, "--seed", "7")) == 0
    (run / "mine.txt").write_text("mine")
    assert main(command(kind, data, run)) == 2
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert main(command(kind, data, run, "--overwrite")) == 0
    assert main(command(kind, data, fresh)) == 0
    assert tensors(run) == tensors(fresh) and (run / "mine.txt").read_text() == "mine"
    assert {path.name for path in run.iterdir()} == {path.name for path in fresh.iterdir()} | {"mine.txt"}


# The end, and further


@pytest.mark.parametrize("kind", ["language", "factors"])
def test_a_finished_run_is_left_as_it_is(tmp_path, data, undrawn, capsys, kind):
    run = tmp_path / "run"
    assert main([*command(kind, data, run), "--json"]) == 0
    report, before = json.loads(capsys.readouterr().out), {path: path.read_bytes() for path in run.rglob("*.*s*n*")}
    assert main(["train", "--resume", str(run), "--json"]) == 0
    printed, said = capsys.readouterr()
    assert json.loads(printed) == report and len(before) > 4
    assert f"{run} is finished; --epochs N, above 2, with --resume goes on" in said
    assert before == {path: path.read_bytes() for path in run.rglob("*.*s*n*")}
    (run / store.REPORT).unlink()  # as a kill before it was written leaves it
    assert main(["train", "--resume", str(run)]) == 0
    assert json.loads((run / store.REPORT).read_text())["curve"] == report["curve"]


@pytest.mark.parametrize("kind", ["language", "words", "factors"])
def test_a_finished_run_goes_further_the_same_way_however_often_it_is_stopped(
    tmp_path, data, undrawn, every_tick, kind
):
    """Rates fall over the whole length, so what an extended run learns depends on where it was extended, and on no more."""
    whole, once, often = (tmp_path / name for name in ("whole", "once", "often"))
    assert main(command(kind, data, once)) == 0
    shutil.copytree(once, often)
    done = ticks(once)
    assert main(["train", "--resume", str(once), "--epochs", "3"]) == 0
    assert ticks(once) == 3 * done // 2
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        stop_at(patch, done + 2, kill)
        main(["train", "--resume", str(often), "--epochs", "3"])
    assert ticks(often) == done + 1
    assert main(["train", "--resume", str(often)]) == 0  # to 3 epochs: it was told before
    assert tensors(often) == tensors(once)
    assert main(command(kind, data, whole, "--epochs", "3")) == 0
    assert tensors(whole) != tensors(once)


def test_a_run_extended_before_its_first_tick_is_one_begun_so_long(tmp_path, data, undrawn):
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert main(command("language", data, whole, "--epochs", "3")) == 0
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        stop_at(patch, 1, kill)
        main(command("language", data, run))
    assert main(["train", "--resume", str(run), "--epochs", "3"]) == 0
    assert tensors(run) == tensors(whole)


def test_what_a_run_cannot_go_on_with_is_refused(tmp_path, data, undrawn, capsys):
    run = tmp_path / "run"
    assert main(command("language", data, run, "--seed", "5", "--delay", "1")) == 0
    before = (run / store.RUN).read_bytes()
    for more, said in (
        (["--epochs", "1"], "--epochs: found 1, expected at least 2, which the run has begun"),
        (["--steps", "9"], f"--steps: {run} holds a run of language, which counts epochs; --epochs N goes on to N"),
        (["--seed", "0"], "--seed: --resume goes on with the options"),
        (["--delay", "0"], "--delay: --resume goes on with the options"),
        (["--overwrite"], "--overwrite: --resume goes on with the options"),
        (["--previous", "--save-every", "-1"], "--save-every: found '-1', expected a number of at least 0"),
        (["--save-every", "inf"], "--save-every: found 'inf'"),
        (["--save-every", "100 ticks"], "--save-every: found '100 ticks'"),
    ):
        with contextlib.suppress(SystemExit):
            assert main(["train", "--resume", str(run), *more]) == 2
        assert said in capsys.readouterr().err
        assert (run / store.RUN).read_bytes() == before
    assert main(["train", "words", "--resume", str(run)]) == 2
    assert f"{run} holds a run of language" in capsys.readouterr().err
    assert main(command("language", data, tmp_path / "new", "--previous")) == 2
    assert "--previous: goes with --resume DIR" in capsys.readouterr().err
    assert main(command("language", data, tmp_path / "new", "--steps", "3")) == 2
    assert "--steps: not used by" in capsys.readouterr().err


# What went wrong


def test_a_run_that_diverged_says_where_and_what_to_do(tmp_path, data, undrawn, capsys, monkeypatch):
    from hybrid.models import language

    run, figures = tmp_path / "run", iter([9.0, 9.0, float("inf")])
    with monkeypatch.context() as patch:
        patch.setattr(language, "perplexity", lambda *_: next(figures))
        assert main(command("language", data, run, "--save-every", "0")) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert (
        "perplexity is inf: the model has diverged; begin again with lower rates and --overwrite; the checkpoint"
        in line
    )
    assert line.startswith("hybrid: error: tick ") and line.endswith(f"of tick 0 stands in {run}")
    assert main(command("language", data, run, "--overwrite")) == 0


def test_a_figure_of_nothing_is_null_in_the_curve(tmp_path, data, monkeypatch):
    from hybrid.models import language

    monkeypatch.setattr(language, "perplexity", lambda *_: float("nan"))
    assert main(command("language", data, tmp_path / "run")) == 0
    report = (tmp_path / "run" / store.REPORT).read_text()
    points = json.loads(report, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))["curve"]
    assert points and all(point["perplexity"] is None for point in points)


@pytest.mark.parametrize("kind", ["language", "pvm"])
def test_a_damaged_checkpoint_names_the_option_that_goes_on(tmp_path, data, undrawn, every_tick, capsys, kind):
    run = tmp_path / "run"
    assert main(command(kind, data, run)) == 0
    expected = tensors(run)
    file = run / "checkpoint" / expected
    file.write_bytes(file.read_bytes()[:-1])
    assert main(["train", "--resume", str(run)]) == 2
    assert f"hybrid train --resume {run} --previous" in capsys.readouterr().err
    assert main(["train", "--resume", str(run), "--previous"]) == 0
    assert tensors(run) == expected
    assert main(["eval", str(run), *(["--steps", "4"] if kind == "pvm" else [])]) == 0


def test_models_are_loaded_from_the_folder_of_their_run(tmp_path, data, undrawn):
    assert main(command("language", data, tmp_path / "language")) == 0
    assert main(command("pvm", data, tmp_path / "pvm")) == 0
    assert Engine.load(tmp_path / "language", threads=2)[0].tick == ticks(tmp_path / "language")
    assert PVM.load(tmp_path / "pvm", device="cpu", threads=2)[0].step_number == 8


def altered(run: Path, change) -> None:
    """Change what a checkpoint tells of its model, and seal it again."""
    path = run / "checkpoint" / checkpoint.LATEST
    manifest = json.loads(path.read_text())
    manifest.pop("checksum")
    change(manifest["facts"])
    path.write_text(json.dumps(manifest | {"checksum": checkpoint._checksum(manifest)}))


@pytest.mark.parametrize("part, name", [("embedding", "rows"), ("readout", "classes"), ("trunk", "hidden")])
def test_a_checkpoint_that_tells_of_more_than_it_holds_takes_no_memory(tmp_path, whole_language, part, name):
    run = tmp_path / "run"
    shutil.copytree(whole_language, run)
    altered(run, lambda facts: facts["engine"][part].update({name: 10**9}))
    with pytest.raises(ValueError, match=r"run: tells of \d+ parameters, but holds \d+ numbers"):
        Engine.load(run)


def test_a_pvm_that_tells_of_more_than_it_holds_takes_no_memory(tmp_path, data, undrawn):
    run = tmp_path / "run"
    assert main(command("pvm", data, run)) == 0
    altered(run, lambda facts: facts["pvm"]["config"].update(grids=[[10**5, 10**5], [2, 2], [1, 1]]))
    with pytest.raises(ValueError, match=r"run: tells of \d+ hidden numbers, but holds \d+"):
        PVM.load(run)


@pytest.mark.parametrize("value", [None, [], "many", {"rows": "many"}])
@pytest.mark.parametrize("part", ["embedding", "readout", "settings", "begun", "tick"])
def test_a_checkpoint_that_tells_of_no_model_is_refused_by_name(tmp_path, whole_language, part, value):
    run = tmp_path / "run"
    shutil.copytree(whole_language, run)
    altered(run, lambda facts: facts["engine"].update({part: value}))
    with pytest.raises(ValueError, match=r"run: tells of no model|found|expected"):
        Engine.load(run)


@pytest.fixture(scope="module")
def whole_language(tmp_path_factory, data):
    """A finished run of a language model."""
    run = tmp_path_factory.mktemp("whole") / "run"
    assert main(command("language", data, run, "--epochs", "1")) == 0
    return run


def test_a_run_without_a_checkpoint_begins_again(tmp_path, data, undrawn):
    whole, run = tmp_path / "whole", tmp_path / "run"
    for kind in ("language", "pvm"):
        assert main(command(kind, data, whole / kind)) == 0
        shutil.copytree(whole / kind, run / kind)
        shutil.rmtree(run / kind / "checkpoint")
        (run / kind / "checkpoint").mkdir()
        assert main(["train", "--resume", str(run / kind)]) == 0
        assert tensors(run / kind) == tensors(whole / kind)
