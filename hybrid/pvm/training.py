"""A Predictive Vision Model's run: options to a folder with a curve, pictures, checkpoints and a report.

run.json      the options it was started with      config.json  the whole configuration
checkpoint/   see hybrid/storage/checkpoint.py             report.json  figures and the curve
curve.png     errors over steps, .pdf and .csv too last.png     the last frame that was compared, and what it was taken for
timeline.json, timeline.png, .pdf  the last ticks  tensorboard/ with --tensorboard
"""

import contextlib
import dataclasses
import json
import math
import resource
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

from cpu.threads import available

from .. import console
from ..engine import trace
from ..feeds.video.clip import aspect_of
from ..feeds.video.frames import Frames
from ..storage import atomic, checkpoint
from ..storage.checkpoint import CHECKPOINT
from ..train import plots, store
from ..train.loop import USER_ERRORS, Stop, Stopped, leaving
from ..train.saving import Saves
from ..train.tensorboard import Board, required
from . import curve
from .config import Config
from .judge import panel, saturation
from .judge.baseline import Pair, Pairs, Recent, compared, judged
from .judge.latest import Latest
from .judge.live import Live, page
from .model import PVM, StepResult
from .presets import load
from .source import clips, labelled

AHEAD = 4  # ticks that a GPU may begin before the one is noted that was
SAMPLE = 10  # every so many ticks, at least, a prediction is compared with the frame that came
PICTURES = 10  # points of the curve between TensorBoard's pictures, which cost as much as some frames
CONFIG = "config.json"


def start(folder: Path, options: dict) -> dict:
    """Begin the run that resolved options describe, and finish it; returns its report."""
    if options["tensorboard"]:
        required()
    config = _configured(options)
    feed = _feed(options, config)
    config, options = _with_use(options, config, feed), options | {"streams": feed.streams}
    model = _fresh(options, config)
    with page(options) as live, store.begun(folder, bool(options.get("overwrite"))):  # a port in use is refused first
        atomic.write(folder / CONFIG, [config.to_json().encode()])
        store.keep_options(folder, options)
        return _finish(folder, options, model, feed, None, live)


def resume(folder: Path, options: dict) -> dict:
    """Go on with a stopped run; returns its report. The caller holds its folder."""
    if options["tensorboard"]:
        required()
    config = read_config(folder)
    feed, saved = _feed(options, config), folder / CHECKPOINT
    if not checkpoint.stands(saved):
        with page(options) as live:
            return _finish(folder, options, _fresh(options, config), feed, None, live)
    source = saved / checkpoint.PREVIOUS if options.get("previous") else saved
    model, facts = PVM.load(source, device=options["device"], threads=options["threads"])
    if _data(facts["feed"]) != _data(feed.describe()):
        raise ValueError(f"feed: the video or its options differ from those of the checkpoint in {folder}")
    made = model.step_number
    if options["steps"] < made:
        raise ValueError(f"--steps: found {options['steps']}, expected at least {made}, which the run has made")
    with page(options) as live:
        store.extend(folder, "steps", options["steps"])
        return _finish(folder, options, model, feed, facts["progress"], live)


def read_config(folder: Path) -> Config:
    """The configuration of a run."""
    path = folder / CONFIG
    try:
        return Config.from_json(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: not JSON ({error}); the file was altered or cut off") from None


def _configured(options: dict) -> Config:
    """The configuration that the options name; notes on an original's file go to stderr."""
    config, notes = load(options["config"], compat=options["compat"])
    for note in notes:
        console.note(f"{options['config']}: {note}")
    fields = json.loads(config.to_json())
    for setting in options["set"] or ():
        name, _, text = setting.partition("=")
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = text  # a name, which JSON would quote
        inside = fields["readout"] if name.startswith("readout.") else fields
        if inside is None:
            raise ValueError(f"--set {setting}: found a configuration without readouts, expected one with")
        inside[name.removeprefix("readout.")] = value
    return Config.from_fields(fields)


def _with_use(options: dict, config: Config, feed: Frames) -> Config:
    """The configuration without readouts where there are no labels for them to learn, unless they were asked for."""
    asked = any(setting.startswith("readout") for setting in options["set"] or ())
    if config.readout is None or asked or labelled(feed.clips):
        return config
    console.note(f"{options['video']} has no labels: no readouts, which would learn nothing")
    return dataclasses.replace(config, readout=None)


def _feed(options: dict, config: Config) -> Frames:
    found = clips(options["video"], config.frame, options["labels"], bool(options["crop"]))
    ends = all(hasattr(clip, "__len__") for clip in found)  # a live one cannot be in two places
    return Frames(found, options["steps"], options["streams"] or (config.streams if ends else 1))


def _data(facts: dict) -> dict:
    """What the feed says of itself but its length: a run may go on further than it was begun for."""
    return {name: value for name, value in json.loads(json.dumps(facts)).items() if name != "steps"}


def _fresh(options: dict, config: Config) -> PVM:
    """The untrained model of a run."""
    return PVM(config, **{name: options[name] for name in ("device", "threads", "streams", "seed")})


class Progress:
    """What a run has done so far; `facts` is JSON-able and travels in the checkpoint.

    The curve has a point every so many steps: means over the ticks since the point before. seconds and clocked, frames of
    each stream, are those of training alone: without saving, and without the first tick of a start, which compiles.
    """

    def __init__(self, layers: int, facts: dict | None):
        self.facts = facts or {"seconds": 0.0, "clocked": 0, "curve": [], "since": _nothing(layers)}
        self._start: float | None = None

    def note(self, seen: StepResult) -> None:
        """Count a tick that is done."""
        since = self.facts["since"]
        since["ticks"] += 1
        since["error"] = [a + b for a, b in zip(since["error"], seen.error.tolist(), strict=True)]
        self.facts["clocked"] += self._start is not None
        self.pause()
        self._start = time.perf_counter()

    def compare(self, pair: Pair) -> None:
        """Count a prediction with the frame that came."""
        since = self.facts["since"]
        since["pairs"] += 1
        since["prediction"] += pair.error
        since["last_frame"] += pair.last_frame

    def pause(self) -> None:
        """Stop the clock."""
        if self._start is not None:
            self.facts["seconds"] += time.perf_counter() - self._start

    def go_on(self) -> None:
        """Start the clock again, unless the next tick is to be left out."""
        self._start = self._start and time.perf_counter()

    def point(self, step: int) -> dict:
        """Add a point to the curve."""
        since = self.facts["since"]
        found = {
            "step": step,
            "seconds": self.facts["seconds"],
            "error": [sum_ / since["ticks"] for sum_ in since["error"]],
        }
        for name in ("prediction", "last_frame"):
            found[name] = since[name] / since["pairs"] if since["pairs"] else None
        self.facts["curve"].append(found)
        self.facts["since"] = _nothing(len(since["error"]))
        return found

    @property
    def rate(self) -> float:
        """Frames a second of training, of one stream."""
        return self.facts["clocked"] / self.facts["seconds"] if self.facts["seconds"] else 0.0


def _nothing(layers: int) -> dict:
    return {"ticks": 0, "error": [0.0] * layers, "pairs": 0, "prediction": 0.0, "last_frame": 0.0}


class Run:
    """One training run under way: a model, its feed, its folder."""

    def __init__(self, folder: Path, options: dict, model: PVM, feed: Frames, facts: dict | None):
        self.folder, self.options, self.model, self.feed = folder, options, model, feed
        self.progress = Progress(len(model.config.grids), facts)
        self.frames = Recent(feed)
        self.pairs = Pairs(self.frames)
        self.every = math.gcd(options["every"], SAMPLE)
        self.latest = Latest(model, aspect_of(feed.clips[0]), Path(options["video"]).name)
        self.saves, self.anew = Saves(options.get("save_every")), facts is None
        if model.step_number and (model.step_number - 1) % self.every == 0:
            self.pairs.wait(StepResult(model.step_number - 1, np.empty(0), model.prediction(), [], []))

    def train(self) -> None:
        """To the end of the feed. Raises Stopped, after a checkpoint, on a signal, and what the feed or the model raise."""
        total, first = len(self.feed), self.model.step_number
        bar = console.bar(total, self.model.config.name, "steps", first)
        board = Board(self.folder / "tensorboard", first) if self.options["tensorboard"] else None
        with Stop() as stop, bar, board or contextlib.nullcontext(), leaving(self.folder):
            if self.anew:
                self.save()  # so that whatever begins can go on
            with contextlib.closing(self._ticks()) as ticks:
                for seen in ticks:
                    self._note(seen, bar, board)
                    if self.model.under_way:
                        continue
                    if self.model.step_number == total or stop.signal:
                        break
                    if self.saves.due():
                        self.save()
            if self.model.step_number == total and self.progress.facts["since"]["ticks"]:
                self.progress.point(total)
            self.save()
        if self.model.step_number < total:
            raise Stopped(stop.signal, self.model.step_number, self.folder)

    def save(self) -> None:
        """Write the checkpoint; ValueError where the model has diverged, which its errors do not show yet."""
        self.progress.pause()
        facts = {"feed": self.feed.describe(), "progress": self.progress.facts}
        try:
            self.model.save(self.folder / CHECKPOINT, facts)
        except ValueError as failure:
            failure.add_note("the model diverged: begin again with lower rates and --overwrite")
            raise
        self.saves.done()
        self.progress.go_on()

    def _ticks(self) -> Generator[StepResult, None, None]:
        """Those of the model; what fails says what is left. A model that is whole is saved."""
        try:
            yield from self.model.run(self.frames, every=self.every, ahead=AHEAD)
        except USER_ERRORS:
            if self.model.torn is None:
                self.save()
            raise

    def _note(self, seen: StepResult, bar, board: Board | None) -> None:
        self.progress.note(seen)
        pair = self.pairs.take(seen)
        if pair:
            self.latest.take(pair)
            self.progress.compare(pair)
        bar.update()
        if pair and pair.seen.tick % self.options["every"] == 0:
            self.progress.pause()
            point = self.progress.point(pair.seen.tick)
            bar.set_postfix_str(_postfix(point, self._speed()), refresh=False)
            if board:
                drawn = point["step"] % (self.options["every"] * PICTURES) == 0
                views = self.latest.views() if drawn else {}
                board.write(point["step"], self._figures(point), {name: view.picture for name, view in views.items()})
            self.progress.go_on()

    def _speed(self) -> tuple[float, float]:
        """Frames of all streams a second, and parameters times that."""
        frames = self.progress.rate * self.model.streams
        return frames, frames * self.model.size[0]

    def _figures(self, point: dict) -> dict[str, float]:
        """A point of the curve by TensorBoard's tags."""
        frames, parameters = self._speed()
        found = {f"error/layer {layer}": error for layer, error in enumerate(point["error"])}
        found |= {"next frame/prediction": point["prediction"], "next frame/last frame": point["last_frame"]}
        found |= {"speed/frames a second": frames, "speed/parameters a second": parameters}
        return found | {f"rate/layer {layer}": rate for layer, rate in enumerate(self.model.rates[0].tolist())}

    def standing(self) -> dict[str, Any]:
        """Where the run is, for the page that --live shows; asked by another thread."""
        curve, frames = list(self.progress.facts["curve"]), self._speed()[0]
        return {"step": self.model.step_number, "of": len(self.feed), "rate": frames, "curve": curve}

    def report(self) -> dict[str, Any]:
        """The figures of the run, JSON-able."""
        model, facts = self.model, self.progress.facts
        frames, parameters = self._speed()
        last = facts["curve"][-max(len(facts["curve"]) // 10, 2) :]  # the very last may compare nothing
        prediction, repeated = (_mean([point[name] for point in last]) for name in ("prediction", "last_frame"))
        return {
            "run": str(self.folder),
            "model": "pvm",
            "configuration": model.config.name,
            "video": self.options["video"],
            "device": model.backend.name,
            "threads": self.options["threads"] or available(),
            "streams": model.streams,
            "steps": model.step_number,
            "seconds": facts["seconds"],
            "frames_per_second": frames,
            "parameters": model.size[0],
            "readout_parameters": model.size[1],
            "parameters_per_second": parameters,
            "error": [_mean([point["error"][layer] for point in last]) for layer in range(len(model.config.grids))],
            **judged(prediction, repeated),
            "activity": [counts._asdict() for counts in self.latest.counts()],
            "averaged_from_step": facts["curve"][-len(last) - 1]["step"] if len(facts["curve"]) > len(last) else 0,
            "model_bytes": sum(array.nbytes for array in model.arrays().values()),
            "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "stages": model.trace.summary(),
            "curve": facts["curve"],
        }


def _finish(folder: Path, options: dict, model: PVM, feed: Frames, facts: dict | None, live: Live | None) -> dict:
    """Train to the end, where the run is not there yet; write report and pictures, where it has none of that end."""
    made, run = model.step_number, Run(folder, options, model, feed, facts)
    if facts is None or made < len(feed):
        if live:
            live.show(run.latest, run.standing)
        run.train()
    elif not facts["curve"]:
        raise ValueError(
            f"{folder}: imported at step {made}, with nothing left to learn; --steps N, above {made}, goes on"
        )
    elif kept := store.finished(folder, "steps", made, f"--steps N, above {made},"):
        return kept
    report = run.report()
    store.write_json(folder / store.REPORT, report | {"options": options})
    curve.draw(folder / "curve.png", report["curve"])
    if (picture := run.latest.picture()) is not None:
        panel.save(folder / "last.png", picture)
    if model.trace.recent:
        model.trace.write_chrome(folder / "timeline.json")
        plots.timeline(folder / "timeline.png", model.trace)
    return report


def _mean(values: list) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _postfix(point: dict, speed: tuple[float, float]) -> str:
    errors = " ".join(f"{error:.3f}" for error in point["error"])
    shown = f"{speed[0]:,.0f} frames/s, {engineering(speed[1])} parameters/s, error {errors}"
    if point["prediction"] is None:
        return shown
    return f"{shown}, next frame {point['prediction']:.4f} (last frame {point['last_frame']:.4f})"


def engineering(value: float) -> str:
    """1234567 -> 1.23 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def text(report: dict) -> str:
    """A report as lines for a person."""
    units, readouts, steps = (f"{report[name]:,}" for name in ("parameters", "readout_parameters", "steps"))
    speed = f"{report['frames_per_second']:,.1f}; parameters a second: {engineering(report['parameters_per_second'])}"
    streams = f", {report['streams']} streams" if report["streams"] > 1 else ""
    model, process = (f"{report[name] / 2**20:,.0f} MiB" for name in ("model_bytes", "peak_memory_bytes"))
    lines = {
        "run": report["run"],
        "configuration": f"{report['configuration']}: {units} parameters, and {readouts} of readouts",
        "video": report["video"],
        "device": f"{report['device']}, {report['threads']} threads{streams}",
        "steps": f"{steps} in {report['seconds']:,.1f} s",
        "frames a second": speed,
        "memory": f"{model} of the model, {process} of the process",
        "error a layer": "  ".join(f"{error:.4f}" for error in report["error"]),
        "next frame": compared(report),
        "hidden numbers": saturation.said(report["activity"]),
        "means since": f"step {report['averaged_from_step']:,}",
        "stages": trace.line(report["stages"]),
    }
    return "\n".join(f"{name:<18}{line}" for name, line in lines.items())
