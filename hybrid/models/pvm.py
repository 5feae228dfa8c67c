"""The Predictive Vision Model (Piekniewski et al. 2016, arXiv:1607.06854): units that predict their input, frame by frame."""

import argparse
import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .. import console, machine
from ..feeds.video.clip import aspect_of
from ..feeds.video.frames import Frames
from ..feeds.video.open import open_clips
from ..pvm import evaluate as judging
from ..pvm import panel, presets
from ..pvm.config import Config
from ..pvm.figures import Pair, compared, floats, judged
from ..pvm.live import Latest, Live
from ..pvm.model import PVM, StepResult
from ..pvm.source import CONFIG, VIDEO_HELP, configured, labelled, read_config, updated
from ..schedule import trace
from ..settings import option, positive
from ..storage import files
from ..train import plots, store
from ..train.job import Job, Watched
from ..train.runs import Trained

AHEAD = 4  # ticks that a GPU may have in flight before an earlier one is noted
SAMPLE = 10  # maximum ticks between comparisons of a prediction with the next frame
# Points of the curve between validations, which take as long as frames.
VALIDATED = 10
FILES = store.FILES["pvm"]
RANKS = True
STEPS = 30_000  # default if neither --steps nor the configuration states them
KEPT = 8  # frames kept for comparison with predictions
POINTS = 200  # of the curve, without --every
LIVE_PORT = 8642
FRAMES = {"prediction": ("prediction", "C0"), "last_frame": ("repeating the last frame", "C7")}


def _setting(text: str) -> str:
    name, equals, _ = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected NAME=VALUE, as in activation=tanh")
    return text


def _port(text: str) -> int:
    value = positive(text)
    if value > 65535:
        raise argparse.ArgumentTypeError(f"found {text}, expected a port, 1 to 65535")
    return value


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of `hybrid train pvm`."""

    config: str = option(
        "quick", f"{', '.join(presets.names())}, or a .json or .toml file",
        metavar="NAME|FILE",
    )  # fmt: skip
    set: list[str] | None = option(
        None, "set a field of the configuration to a JSON value; may be repeated: --set activation=tanh --set"
        " readout.start=1000 (first step of the heatmaps' training) --set readout=null (no heatmaps)",
        metavar="NAME=VALUE", action="append", type=_setting,
    )  # fmt: skip
    video: str = option(
        "synthetic", f"{VIDEO_HELP}. Boxes of a video file are in the .txt or .csv beside it, others in labels.txt",
        group="data", metavar="VIDEO",
    )  # fmt: skip
    valid: str | None = option(
        None, "validation video, measured with the frozen model at every tenth point of the curve",
        group="data", metavar="VIDEO",
    )  # fmt: skip
    streams: int | None = option(
        None, "positions of the video processed in parallel, 1 to 16 (default: that of the configuration)",
        group="data", type=positive, metavar="N",
    )  # fmt: skip
    steps: int | None = option(
        None, "training frames per stream; the rates of quick and change decay over them (default: those of the"
        f" configuration, 4,000 for change, else {STEPS:,})", group="training", type=positive, metavar="N",
    )  # fmt: skip
    every: int | None = option(
        None, f"steps between points of the curve (default: steps / {POINTS})",
        group="training", type=positive, metavar="K",
    )  # fmt: skip
    live: int | None = option(
        None, "show the training on http://127.0.0.1:PORT, for browsers on this machine"
        f" (PORT: {LIVE_PORT})",
        group="the run", free=True, kept=False, type=_port, nargs="?", const=LIVE_PORT, metavar="PORT",
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Options of `hybrid eval` on a run of a Predictive Vision Model."""

    video: str | None = option(None, f"{VIDEO_HELP} (default: the training video)", metavar="VIDEO")
    steps: int | None = option(None, "maximum number of frames (default: the whole video)", type=positive, metavar="N")


def complete(chosen: dict[str, Any], explicit: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options with dependent ones filled in."""
    steps = chosen["steps"] or updated(chosen)[0].steps or STEPS
    return chosen | {"steps": steps, "every": chosen["every"] or max(steps // POINTS, 1)}


class Recent:
    """A feed that caches its last frames, so that a comparison need not decode them again."""

    def __init__(self, feed: Any):
        self.feed, self.streams = feed, feed.streams
        self._images: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.feed)

    def __getitem__(self, tick: int) -> Any:
        batch = self.feed[tick]
        self._images[tick] = batch.image
        self._images.pop(tick - KEPT, None)
        return batch

    def image(self, tick: int) -> np.ndarray:
        """Returns (B, rows, columns, channels) floats in 0..1."""
        return floats(self._images[tick] if tick in self._images else self[tick].image)


class Watching(Job):
    """The training of a Predictive Vision Model on a video.

    A point of the curve holds means over the ticks since the previous point: the error of each layer, and the distance of
    predictions from the next frames, compared with repeating the last frame.
    """

    unit, length, logged = "step", "steps", False
    feed: Frames

    def __init__(self, options: dict[str, Any], config: Config, feed: Frames):
        options = complete(options, {})  # run.json may lack dependent options
        self.options, self.config, self.feed = options, config, feed
        self.every = math.gcd(options["every"], SAMPLE)
        self._live: Live | None = None
        self._validation: judging.Validation | None = None
        self._valid = open_clips(options["valid"], config.frame) if options.get("valid") else ()
        if self._valid or options.get("patience"):
            self.watched = Watched("valid prediction" if self._valid else "prediction")

    def make(self) -> PVM:
        """Returns the untrained model."""
        settings = {name: self.options[name] for name in ("device", "threads", "seed")}
        return PVM(self.config, streams=self.feed.streams, ranks=_ranks(), **settings)

    def chosen(self, model: PVM) -> dict[str, Any]:
        """Returns the number of streams of the configuration."""
        return {"streams": self.feed.streams}

    def keep(self, folder: Path) -> None:
        """Writes the configuration."""
        files.write(folder / CONFIG, [self.config.to_json().encode()])

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Opens the page of --live; rejects a port in use before training."""
        with contextlib.ExitStack() as opened:
            if self.options.get("live"):
                self._live = opened.enter_context(Live(self.options["live"]))
                console.tell(f"live on {self._live.address}")
            yield

    def begin(self, model: PVM, facts: dict[str, Any]) -> None:
        """Starts a job, see `Job`; the last prediction of a loaded model is compared with the next frame."""
        facts.setdefault("since", _nothing(len(model.config.grids)))
        self._model, self._facts = model, facts
        self._frames = Recent(self.feed)
        self._waiting: StepResult | None = None  # whose prediction is compared with the next frame
        self._pair: Pair | None = None
        self.latest = Latest(model, aspect_of(self.feed.clips[0]), Path(self.options["video"]).name)
        if self._valid:
            self._validation = judging.Validation(model, self._valid)
        if model.tick and (model.tick - 1) % self.every == 0:
            self._waiting = StepResult(model.tick - 1, np.empty(0), model.prediction(), [], [])

    def ticks(self, model: PVM) -> Iterator[StepResult]:
        """Yields the ticks of the model; a GPU prefetches some, unless the model may be saved at any point."""
        if self._live:
            self._live.show(self.latest, self._standing)
        return model.run(self._frames, every=self.every, ahead=0 if self.watched else AHEAD)

    def busy(self, model: PVM) -> bool:
        """True if a GPU has ticks in flight after the given one."""
        return model.under_way > 0

    def note(self, tick: StepResult, facts: dict[str, Any]) -> int:
        """Accumulates errors, and the distance of the previous tick's prediction from this frame."""
        since = facts["since"]
        since["ticks"] += 1
        since["error"] = [a + b for a, b in zip(since["error"], tick.error.tolist(), strict=True)]
        waiting, self._waiting = self._waiting, tick if tick.prediction is not None else None
        self._pair = waiting and Pair(waiting, self._frames.image(waiting.tick), self._frames.image(tick.tick))
        if self._pair:
            self.latest.pair = self._pair
            since["pairs"] += 1
            since["prediction"] += self._pair.error
            since["last_frame"] += self._pair.last_frame
        return self.feed.streams

    def due(self, model: PVM) -> int | None:
        """Returns the compared tick if it is a multiple of --every."""
        if self._pair and self._pair.seen.tick % self.options["every"] == 0:
            return self._pair.seen.tick
        return None

    def ending(self, model: PVM, facts: dict[str, Any]) -> int | None:
        """Returns the last tick if some follow the last point."""
        return model.tick if facts["since"]["ticks"] else None

    def measure(self, model: PVM, facts: dict[str, Any]) -> dict[str, Any]:
        """Returns means since the previous point; every tenth point also has validation figures."""
        since, facts["since"] = facts["since"], _nothing(len(model.config.grids))
        figures: dict[str, Any] = {"error": [total / since["ticks"] for total in since["error"]]}
        for name in ("prediction", "last_frame"):
            figures[name] = since[name] / since["pairs"] if since["pairs"] else None
        if self._validation and (len(facts["curve"]) % VALIDATED == 0 or model.tick == len(self.feed)):
            figures |= self._validation.figures(model)
        return figures

    def postfix(self, point: Mapping[str, Any], rate: float) -> str:
        """Returns speed, errors, and the errors of the prediction and the last frame."""
        errors = " ".join(f"{error:.3f}" for error in point["error"])
        parameters = engineering(rate * self._model.size[0])
        shown = f"{rate:,.0f} frames/s, {parameters} parameters/s, error {errors}"
        if point["prediction"] is None:
            return shown
        return f"{shown}, next frame {point['prediction']:.4f} (last frame {point['last_frame']:.4f})"

    def figures(self, point: Mapping[str, Any]) -> dict[str, float]:
        """Returns a point of the curve by TensorBoard tags."""
        rate, layers = self._facts["clocked"] / (self._facts["seconds"] or 1), self._model.rates[0].tolist()
        found = {f"error/layer {layer}": error for layer, error in enumerate(point["error"])}
        named = {"prediction": "next frame/prediction", "last_frame": "next frame/last frame"}
        named |= {"valid prediction": "valid/prediction", "valid last_frame": "valid/last frame"}
        found |= {tag: point[name] for name, tag in named.items() if point.get(name) is not None}
        found |= {"speed/frames a second": rate, "speed/parameters a second": rate * self._model.size[0]}
        return found | {f"rate/layer {layer}": value for layer, value in enumerate(layers)}

    def report(self, model: PVM, facts: dict[str, Any], rate: float) -> dict[str, Any]:
        """Returns the report; see `report_of`."""
        return report_of(model, facts, rate, self.latest) | {"video": self.options["video"]}

    def draw(self, folder: Path, report: dict[str, Any], model: PVM) -> None:
        """Draws the curve and the last compared frame, and writes the trace of the last steps."""
        draw_curve(folder / "curve.png", report["curve"])
        if (picture := self.latest.picture()) is not None:
            panel.save(folder / "last.png", picture)
        model.trace.write_chrome(folder / "timeline.json")

    def _standing(self) -> dict[str, Any]:
        """Returns the progress of the run for the page of --live; called by another thread."""
        rate = self._facts["clocked"] / (self._facts["seconds"] or 1)
        known = {"step": self._model.tick, "of": len(self.feed), "rate": rate}
        return known | {"curve": list(self._facts["curve"])}


def prepare(options: dict[str, Any]) -> Watching:
    """Makes a feed of the video, with the configuration of the options, or of the run; without labels it has no readouts."""
    folder = options.get("resume")
    config = read_config(Path(folder)) if folder else configured(options)
    shown = open_clips(options["video"], config.frame)
    feed = Frames(shown, options["steps"], options["streams"] or config.streams)
    asked = folder or any(setting.startswith("readout") for setting in options["set"] or ())
    if config.readout and not asked and not labelled(feed.clips):
        console.note(f"{options['video']} has no labels: no readouts, which would learn nothing")
        config = dataclasses.replace(config, readout=None)
    without = sum(clip[0].box is None for clip in feed.clips)
    if config.readout and 0 < without < len(feed.clips):
        console.note(
            f"{without} of {len(feed.clips)} clips have no labels: readouts learn in steps with labels in all streams"
        )
    return Watching(options, config, feed)


def load(source: Path, options: dict[str, Any]) -> tuple[PVM, dict[str, Any]]:
    """Returns the model of a checkpoint, and the facts saved with it."""
    return PVM.load(source, device=options["device"], threads=options["threads"], ranks=_ranks())


def evaluate(run: Trained, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the distance of predictions from frames, compared with repeating the last; with labels, also tracking scores."""
    return judging.evaluated(run.folder, given).figures


def text(report: dict[str, Any]) -> str:
    """Returns a report, of training or of an evaluation, as human-readable lines."""
    return judging.text(report) if "steps_learned" in report else training_text(report)


def _ranks() -> Any:
    """Returns the ranks that partition the units; None, without importing MPI, unless a launcher started them."""
    if not machine.launched():
        return None
    from ..mpi import pvm

    return pvm.Ranks()


def _nothing(layers: int) -> dict[str, Any]:
    return {"ticks": 0, "error": [0.0] * layers, "pairs": 0, "prediction": 0.0, "last_frame": 0.0}


# Reports


def draw_curve(path: Path, points: list[dict[str, Any]]) -> None:
    """Plots the error of each layer, and the prediction error of the next frame with that of repeating the last.

    points  of a report's "curve"; they go to a CSV next to the picture
    """
    with plots.drawn(path, 7.5, 3.1) as picture:
        layers, frames = picture.subplots(1, 2)
        steps = [point["step"] for point in points]
        for layer in range(len(points[0]["error"]) if points else 0):
            y = [point["error"][layer] for point in points]
            layers.plot(steps, y, color=f"C{layer % 10}", linewidth=1.2, label=f"layer {layer}")
        layers.set_title("mean |error| of a layer's units")
        known = [point for point in points if point["prediction"] is not None]
        for name, (label, colour) in FRAMES.items():
            x, y = [point["step"] for point in known], [point[name] for point in known]
            last = y[-max(len(y) // 10, 1) :]
            text = f"{label}: {sum(last) / len(last):.4f}" if last else label
            frames.plot(x, y, color=colour, linewidth=1.2, label=text)
        frames.set_title("mean |error| of the next frame, pixels in 0..1")
        for axis in (layers, frames):
            axis.set_xlabel("steps")
            plots.logarithmic(axis)
            if points:
                axis.legend(fontsize=8, title="means of the last tenth" if axis is frames else None, title_fontsize=8)
    rows = []
    for point in points:
        errors = {f"error of layer {layer}": error for layer, error in enumerate(point["error"])}
        rows.append({name: value for name, value in point.items() if name != "error"} | errors)
    plots.table(path.with_suffix(".csv"), rows)


def report_of(model: PVM, facts: Mapping[str, Any], rate: float, latest: Latest) -> dict[str, Any]:
    """Returns the figures of a run, JSON-compatible; errors are means over the last tenth of the curve.

    facts   of the run's progress
    rate    frames per second, of all streams
    latest  the latest views
    """
    points = facts["curve"]
    last = points[-max(len(points) // 10, 2) :]  # the very last may compare nothing
    prediction, repeated = (_mean([point[name] for point in last]) for name in ("prediction", "last_frame"))
    return {
        "configuration": model.config.name,
        "video": latest.video,
        "device": model.backend.name,
        "threads": model.threads,
        "streams": model.streams,
        "steps": model.tick,
        "seconds": facts["seconds"],
        "frames_per_second": rate,
        "parameters": model.size[0],
        "readout_parameters": model.size[1],
        "parameters_per_second": rate * model.size[0],
        "error": [_mean([point["error"][layer] for point in last]) for layer in range(len(model.config.grids))],
        **judged(prediction, repeated),
        **{name: value for name, value in points[-1].items() if name.startswith("valid")},
        "averaged_from_step": points[-len(last) - 1]["step"] if len(points) > len(last) else 0,
        "model_bytes": sum(array.nbytes for array in model.arrays().values()),
        "peak_memory_bytes": machine.peak_memory(),
        "stages": model.trace.summary(),
        "curve": points,
    }


def engineering(value: float) -> str:
    """Formats 1234567 as 1.23 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def training_text(report: Mapping[str, Any]) -> str:
    """Returns a report of training as human-readable lines."""
    units, readouts, steps = (f"{report[name]:,}" for name in ("parameters", "readout_parameters", "steps"))
    speed = f"{report['frames_per_second']:,.1f}; parameters a second: {engineering(report['parameters_per_second'])}"
    streams = f", {report['streams']} streams" if report["streams"] > 1 else ""
    held = {"model": report["model_bytes"], "process": report["peak_memory_bytes"]}
    memory = ", ".join(f"{size / 2**20:,.0f} MiB of the {name}" for name, size in held.items() if size is not None)
    lines = {
        "run": report["run"],
        "configuration": f"{report['configuration']}: {units} parameters, and {readouts} of readouts",
        "video": report["video"],
        "device": f"{report['device']}, {report['threads']} threads{streams}",
        "steps": f"{steps} in {report['seconds']:,.1f} s",
        "frames a second": speed,
        "memory": memory,
        "error a layer": "  ".join(f"{error:.4f}" for error in report["error"]),
        "next frame": compared(report),
        "means since": f"step {report['averaged_from_step']:,}",
        "stages": trace.line(report["stages"]),
    }
    if "valid prediction" in report:
        figures = judged(report["valid prediction"], report["valid last_frame"])
        lines["next frame, valid"] = compared(figures | {"prediction_to_last_frame": None})
    lines |= {name: report[name] for name in ("best", "stopped early") if name in report}
    return "\n".join(f"{name:<18}{line}" for name, line in lines.items())


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
