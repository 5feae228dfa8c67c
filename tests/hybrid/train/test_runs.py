"""The life of a run on disk, for every model: killed anywhere it goes on or begins anew, and ends with the same bytes."""

import contextlib
import io
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from hybrid import Engine
from hybrid.cli import main
from hybrid.storage import checkpoint, lock
from hybrid.train import store
from hybrid.train.stop import Stop
from tests.support.small_runs import KINDS, Killed, command, figures, kill, stop_at, tensors, ticks

# Saves by the clock, and stops


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_in_its_first_epoch_goes_on_from_its_last_save(tmp_path, data, undrawn, kind):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(command(kind, data, whole)) == 0
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        stop_at(patch, 3, kill)
        main(command(kind, data, killed, "--save-every", "1e-9"))
    assert ticks(killed) == 2
    assert main(["train", "--resume", str(killed)]) == 0
    assert tensors(killed) == tensors(whole)
    assert figures(killed) == figures(whole)


def test_a_second_signal_does_not_wait():
    with pytest.raises(KeyboardInterrupt), Stop() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.signal == signal.SIGTERM
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


# One process, and its folder


def test_a_run_under_way_is_refused_by_name(tmp_path, data, undrawn, capsys):
    run, codes = tmp_path / "run", []

    def intrude():
        before = sorted(run.rglob("*"))
        for more in (["--resume", str(run)], [*command("language", data, run, "--overwrite")[1:]]):
            codes.append(main(["train", *more]))
        assert sorted(run.rglob("*")) == before

    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 2, intrude)
        assert main(command("language", data, run)) == 0
    assert codes == [2, 2]
    assert capsys.readouterr().err.count(f"{run}: process {os.getpid()} works on this run") == 2
    assert main(["train", "--resume", str(run)]) == 0


@pytest.mark.parametrize("kind", ["language", "pvm"])
def test_another_run_takes_the_place_of_one(tmp_path, data, undrawn, capsys, kind):
    run, fresh = tmp_path / "run", tmp_path / "fresh"
    assert main(command(kind, data, run, "--seed", "7")) == 0
    before = tensors(run)
    (run / "mine.txt").write_text("mine")
    assert main(command(kind, data, run)) == 2
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert main(command(kind, data, run, "--overwrite")) == 0
    assert main(command(kind, data, fresh)) == 0
    assert before != tensors(run) == tensors(fresh) and (run / "mine.txt").read_text() == "mine"
    assert {path.name for path in run.iterdir()} == {path.name for path in fresh.iterdir()} | {"mine.txt"}


# The end, and further


def test_a_finished_run_is_left_as_it_is(tmp_path, data, undrawn, capsys):
    run = tmp_path / "run"
    assert main([*command("language", data, run), "--json"]) == 0
    report, before = json.loads(capsys.readouterr().out), {path: path.read_bytes() for path in run.rglob("*.*s*n*")}
    assert main(["train", "--resume", str(run), "--json"]) == 0
    printed, said = capsys.readouterr()
    assert json.loads(printed) == report and len(before) > 4
    assert f"{run} is finished; --epochs N, above 2, with --resume continues it" in said
    assert before == {path: path.read_bytes() for path in run.rglob("*.*s*n*")}
    (run / store.REPORT).unlink()  # as a kill before it was written leaves it
    assert main(["train", "--resume", str(run)]) == 0
    assert json.loads((run / store.REPORT).read_text())["curve"] == report["curve"]


def test_a_finished_run_goes_further_the_same_way_however_often_it_is_stopped(tmp_path, data, undrawn, every_tick):
    """Rates fall over the whole length, so what an extended run learns depends on where it was extended, and on no more."""
    whole, once, often = (tmp_path / name for name in ("whole", "once", "often"))
    assert main(command("language", data, once)) == 0
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
    assert main(command("language", data, whole, "--epochs", "3")) == 0
    assert tensors(whole) != tensors(once)


def test_what_a_run_cannot_go_on_with_is_refused(tmp_path, data, undrawn, capsys):
    run = tmp_path / "run"
    assert main(command("language", data, run, "--seed", "5", "--micro-batches", "1")) == 0
    before = (run / store.RUN).read_bytes()
    for more, said in (
        (["--epochs", "1"], "--epochs: found 1, expected at least 2, which the run has started"),
        (["--steps", "9"], f"--steps: {run} holds a run of language, which counts epochs; --epochs N continues to N"),
        (["--seed", "0"], "--seed: --resume uses the options"),
        (["--micro-batches", "2"], "--micro-batches: --resume uses the options"),
        (["--overwrite"], "--overwrite: --resume uses the options"),
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
    assert "--previous: is used with --resume DIR" in capsys.readouterr().err
    assert main(command("language", data, tmp_path / "new", "--steps", "3")) == 2
    assert "--steps: not used by" in capsys.readouterr().err


def test_an_engine_saved_over_the_checkpoint_of_a_run_is_not_resumed_and_the_save_before_is(
    tmp_path, whole_language, undrawn, capsys
):
    run = shutil.copytree(whole_language, tmp_path / "run")
    with lock.held(run):  # as any version before this one let everybody do
        Engine.load(run)[0].save(run / "checkpoint")
    before = {path: path.read_bytes() for path in run.rglob("*.json*")}
    assert main(["train", "--resume", str(run), "--epochs", "2"]) == 2
    file = run / "checkpoint" / checkpoint.LATEST
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"hybrid: error: {file}: expected a checkpoint of a run")
    assert {path: path.read_bytes() for path in run.rglob("*.json*")} == before
    assert main(["train", "--resume", str(run), "--epochs", "2", "--previous"]) == 0
    assert json.loads((run / store.RUN).read_text())["epochs"] == 2


# What run.json says


@pytest.mark.parametrize(
    "kind, option", [("language", "text"), ("words", "text"), ("factors", "ratings"), ("labels", "examples")]
)
def test_a_run_whose_file_lacks_what_its_model_needs_is_refused_by_name(tmp_path, capsys, kind, option):
    for options in ({"kind": kind}, {"kind": kind, "epochs": 2, option: None}, {"kind": kind, option: ""}):
        (tmp_path / store.RUN).write_text(json.dumps(options))
        for line in (["train", "--resume", str(tmp_path)], ["eval", str(tmp_path)]):
            assert main(line) == 2
            said = capsys.readouterr().err.splitlines()[-1]
            assert said.startswith(f"hybrid: error: {tmp_path / store.RUN}: {option}: found "), said


def test_a_run_whose_data_were_moved_or_changed_says_where_they_were_and_what_to_do(tmp_path, data, undrawn, capsys):
    text, away, run = tmp_path / "text.txt", tmp_path / "away.txt", tmp_path / "run"
    shutil.copy(data / "text.txt", text)
    assert main(command("language", tmp_path, run)) == 0
    text.rename(away)
    assert main(["train", "--resume", str(run), "--epochs", "3"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    gone = f"hybrid: error: {text}: No such file or directory; the run of {run} was started with it"
    assert said == f"{gone}; restore it to continue"
    assert main(["eval", str(run)]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"{gone}; restore it to measure on it, or name other data"
    away.rename(text)
    assert main(["train", "--resume", str(run), "--epochs", "3"]) == 0
    text.write_text(text.read_text() + "\nnoun1 noun2 noun3")
    assert main(["train", "--resume", str(run), "--epochs", "4"]) == 2
    said = capsys.readouterr().err
    assert f"{run}: the data differ from those it was started with ({text}); restore them, or start a" in said


def test_a_finished_run_that_lost_its_checkpoint_is_not_begun_anew(tmp_path, data, undrawn, capsys):
    run = tmp_path / "run"
    assert main(command("language", data, run)) == 0
    folder = run / checkpoint.CHECKPOINT
    folder.rename(tmp_path / "away")
    before = sorted(path.name for path in run.iterdir())
    assert main(["train", "--resume", str(run), "--epochs", "3"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"hybrid: error: {folder}: missing, but report.json is of a finished run; restore")
    assert sorted(path.name for path in run.iterdir()) == before
    (tmp_path / "away").rename(folder)
    assert main(["train", "--resume", str(run), "--epochs", "3"]) == 0


# Figures


def test_a_run_that_stops_early_is_measured_as_it_was_at_its_best_and_so_it_is_later(
    tmp_path, data, undrawn, monkeypatch
):
    from hybrid.models import language

    monkeypatch.setattr(language, "perplexity", lambda engine, feed: 1.0 + abs(engine.tick - 5))
    run, report = tmp_path / "run", lambda: json.loads((tmp_path / "run" / store.REPORT).read_text())
    begin = command("language", data, run, "--test", str(data / "text.txt"))
    assert main([*begin, "--patience", "2"]) == 0
    assert (ticks(run), report()["best"], report()["test_perplexity"]) == (11, "perplexity 1 at 5", 1.0)
    assert evaluated(run) == 1.0 and evaluated(run, "--checkpoint", "last") == 7.0
    assert main([*begin, "--overwrite", "--save-every", "0"]) == 0
    assert report()["test_perplexity"] == evaluated(run) == 18.0
    assert main(["train", "--resume", str(run), "--epochs", "3", "--patience", "1"]) == 0
    assert report()["test_perplexity"] == evaluated(run) == 1.0  # the best of all, as this run could stop early


def evaluated(run: Path, *more: str) -> float:
    """What `hybrid eval` says of a run."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(["eval", str(run), *more, "--json"]) == 0
    return json.loads(said.getvalue())["perplexity"]
