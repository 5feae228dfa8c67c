"""Runs of a Predictive Vision Model: their folder, their figures, stops and failures, and exact resume."""

import itertools
import json

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.feeds.video.film import Film
from hybrid.feeds.video.frames import Frames
from hybrid.feeds.video.open import open_clips
from hybrid.models import pvm
from hybrid.pvm.config import Config
from hybrid.pvm.live import Latest
from hybrid.pvm.model import PVM
from hybrid.pvm.presets import load
from hybrid.storage.lock import LOCK
from hybrid.train.loop import Saves
from tests.hybrid.pvm.tiny import TINY, command, tensors
from tests.support.small_runs import figures


def report_of(run):
    return json.loads((run / "report.json").read_text())


def unlabelled(path):
    with Film(path, 25) as film:
        for shade in range(6):
            film.write(np.full((8, 8, 3), 40 * shade, np.uint8))
    return path


def test_a_run_leaves_its_folder_and_a_report(capsys, tmp_path):
    run = tmp_path / "run"
    assert main([*command(tmp_path, run, "--steps", "30", "--every", "5"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    files = "config.json report.json checkpoint curve.png last.png timeline.json curve.pdf curve.csv curve.jsonl"
    assert {path.name for path in run.iterdir()} == {*files.split(), "run.json", LOCK}
    assert json.loads((run / "run.json").read_text())["kind"] == "pvm"
    assert report["steps"] == 30 and report["device"] == "cpu" and report["parameters"] > 0
    assert [point["step"] for point in report["curve"]] == [0, 5, 10, 15, 20, 25, 30]
    assert report["parameters_per_second"] == pytest.approx(report["frames_per_second"] * report["parameters"])
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != LOCK}
    assert main(["train", "--resume", str(run)]) == 0
    printed, said = capsys.readouterr()
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != LOCK}
    assert f"{run} is finished; --steps N, above 30, with --resume continues it" in said
    assert "next frame" in printed and "parameters a second" in printed and "tiny" in printed


@pytest.mark.parametrize("streams", [1, 2])
def test_the_figures_are_those_of_a_loop_written_by_hand(tmp_path, streams):
    run = tmp_path / "run"
    assert main(command(tmp_path, run, "--steps", "12", "--every", "12", "--streams", str(streams))) == 0
    model = PVM.from_config(load(run / "config.json")[0], device="cpu", streams=streams)
    feed = Frames(open_clips("synthetic", model.config.frame), 12, streams)
    errors, off, still, seen = [], [], [], None
    for tick in range(12):
        batch, before = feed[tick], feed[max(tick - 1, 0)]
        if seen and (tick - 1) % 2 == 0:  # gcd(12, 10)
            off.append(np.abs(seen.prediction - batch.image / 255).mean())
            still.append(np.abs(before.image / 255 - batch.image / 255).mean())
        seen = model.step(batch.image, list(batch.box) if streams > 1 else batch.box[0])
        errors.append(seen.error)
    first, last = report_of(run)["curve"]
    assert first["step"] == 0 and first["prediction"] == pytest.approx(off[0], rel=1e-5)
    assert last["error"] == pytest.approx(np.mean(errors[2:], axis=0), rel=1e-5)
    assert last["prediction"] == pytest.approx(np.mean(off[1:]), rel=1e-5)
    assert last["last_frame"] == pytest.approx(np.mean(still[1:]), rel=1e-5)


def test_a_finished_run_goes_further_to_the_same_bytes(tmp_path, capsys):
    short, long = tmp_path / "short", tmp_path / "long"
    assert main(command(tmp_path, short, "--steps", "10")) == 0
    assert main(command(tmp_path, long, "--steps", "20")) == 0
    assert main(["train", "--resume", str(short), "--steps", "15"]) == 0
    assert main(["train", "pvm", "--resume", str(short), "--steps", "20"]) == 0
    assert tensors(short) == tensors(long)
    capsys.readouterr()
    for wrong, said in (
        (["--steps", "5"], "--steps: found 5, expected at least 20"),
        (["--epochs", "5"], f"--epochs: {short} holds a run of pvm, which counts steps; --steps N continues to N"),
    ):
        assert main(["train", "--resume", str(short), *wrong]) == 2
        assert said in capsys.readouterr().err
    assert report_of(short)["steps"] == 20


@pytest.mark.parametrize(
    ("activation", "said"),
    [
        ("tanh", "(layer 2, row 0, column 0) is nan; lower the rates; "),  # layer 1 publishes it, layer 2 misses it
        ("rational", "found NaN or infinity, expected finite numbers; the model diverged: "),
    ],
)
def test_a_divergence_is_one_line_and_the_last_checkpoint_stands(tmp_path, capsys, monkeypatch, activation, said):
    run, asked = tmp_path / "run", itertools.count(1)
    schedule = [[0, None, 0.01, 0.1], [14, 1, 1e38, 0.9]]
    monkeypatch.setattr(Saves, "due", lambda _: next(asked) % 12 == 0)
    assert main(command(tmp_path, run, "--steps", "60", schedule=schedule, activation=activation)) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert said in line and "begin again with lower rates and --overwrite; " in line
    assert line.endswith(f"the checkpoint of step 12 is in {run}")
    saved = PVM.load(run / "checkpoint", device="cpu")[0]
    assert saved.tick == 12
    assert all(np.isfinite(array).all() for array in saved.fetch().values())


@pytest.mark.parametrize(("points", "error", "since"), [(1, 1, 0), (3, 2.5, 10), (30, 29, 270)])
def test_errors_of_a_report_are_means_over_the_last_tenth_of_the_curve_and_two_points_at_least(points, error, since):
    model = PVM(Config.from_fields(TINY | {"readout": None}), device="cpu")
    numbers = range(1, points + 1)
    curve = [{"step": 10 * n, "error": [n, 2, n / 2], "prediction": n, "last_frame": 2} for n in numbers]
    latest = Latest(model, 1.0, "synthetic")
    found = pvm.report_of(model, {"curve": curve, "seconds": 1.0}, 5.0, latest)
    assert found["error"] == [error, 2, error / 2]
    assert (found["prediction_error"], found["last_frame_error"]) == (error, 2)
    assert found["averaged_from_step"] == since
    told = pvm.training_text(found | {"run": "r", "model_bytes": 3 << 20, "peak_memory_bytes": 5 << 30})
    assert "memory            3 MiB of the model, 5,120 MiB of the process\n" in told
    assert "process" not in pvm.training_text(found | {"run": "r", "peak_memory_bytes": None})


def test_readouts_are_left_out_where_there_are_no_labels_unless_asked_for(capsys, tmp_path):
    video = unlabelled(tmp_path / "video")
    for name, more, kept in (("out", (), False), ("asked", ("--set", "readout.start=2"), True)):
        run = tmp_path / name
        assert main([*command(tmp_path, run, "--steps", "6", "--video", str(video), *more), "--json"]) == 0
        printed = capsys.readouterr()
        assert (json.loads(printed.out)["readout_parameters"] > 0) == kept
        assert (f"hybrid: {video} has no labels: no readouts" in printed.err) == (not kept)
        assert (load(run / "config.json")[0].readout is not None) == kept
        assert main(["train", "pvm", "--resume", str(run), "--steps", "8"]) == 0
        capsys.readouterr()
    assert main(command(tmp_path, tmp_path / "labelled", "--steps", "3")) == 0
    assert load(tmp_path / "labelled" / "config.json")[0].readout is not None
    assert "no labels" not in capsys.readouterr().err


def test_steps_of_the_configuration_may_be_set():
    chosen = {"config": "quick", "set": ["activation=tanh", "steps=70"], "steps": None, "every": None}
    assert pvm.complete(chosen, {})["steps"] == 70 and pvm.complete(chosen | {"steps": 9}, {})["steps"] == 9


def test_every_tenth_point_of_the_curve_and_the_last_are_validated(tmp_path):
    run = tmp_path / "run"
    assert main(command(tmp_path, run, "--steps", "23", "--every", "1", "--valid", "synthetic")) == 0
    found = [point["step"] for point in figures(run) if "valid prediction" in point]
    assert found == [0, 10, 20, 21], "the prediction of the last step waits for its frame"


@pytest.mark.parametrize(
    ("more", "steps", "at"),
    [
        (("--steps", "30"), 30, [0, 20]),
        (("--steps", "30", "--set", "schedule=[[0, null, 0.1, 0], [50, null, 0.01, 0]]"), 30, [0, 50]),
    ],
)
def test_the_schedule_of_a_configuration_follows_the_steps(tmp_path, more, steps, at):
    run = tmp_path / "run"
    assert main(command(tmp_path, run, *more, steps=60, schedule=[[0, None, 0.05, 0.1], [40, None, 0.01, None]])) == 0
    assert report_of(run)["steps"] == steps
    assert [event[0] for event in json.loads((run / "config.json").read_text())["schedule"]] == at
