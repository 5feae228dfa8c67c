"""Evaluation of trained, frozen Predictive Vision Models on a video: prediction, tracking, comparison of two runs."""

import dataclasses
import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import console
from ..feeds.video.clip import Clip, Frame, aspect_of
from ..feeds.video.open import open_clips
from ..settings import MODELS
from ..storage import checkpoint, files
from ..storage.checkpoint import CHECKPOINT
from ..train import runs, store
from . import panel
from .figures import Pair, compared, floats, judged
from .heads import box_of, combine
from .model import PVM, StepResult, parameters
from .source import CONFIG, labelled, read_config
from .wiring import Wiring

FRAMES = 500  # maximum, so that validation takes a small part of a run
PICTURE = "compare.png"
# Options that do not affect learning, and the last two, which the configuration repeats.
APART = set("kind steps every save_every patience tensorboard live device threads config set".split())
LONGEST = 40  # characters of a setting's value in the table
ARENA = (96, 96)  # rows and columns of the frame in which boxes are compared, as in the original
OVERLAPS = np.linspace(0, 1, 100)  # thresholds of the success curve


def opened(folder: Path, given: dict[str, Any]) -> tuple[PVM, dict[str, Any]]:
    """Returns the model of a run and the run's options: with one stream, frozen, and without untrained readouts.

    given  device, threads, and optionally checkpoint, of a command

    Raises ValueError for a run of another kind.
    """
    run = runs.trained(folder, given.get("checkpoint"), device=given["device"], threads=given["threads"])
    if CONFIG not in MODELS.load(run.options["kind"]).FILES:
        raise ValueError(f"{folder}: found a run of {run.options['kind']!r}, expected one of `hybrid train pvm`")
    runs.announce(run.options)
    model: PVM = run.load()
    model = alone(model, readouts=bool(model.readouts and model.readouts.learned(model.fetch()["readout.weights"])))
    model.frozen = True
    return model, run.options


def alone(model: PVM, *, readouts: bool = True) -> PVM:
    """Returns the model with only its first stream; without its readouts unless `readouts`."""
    drops = model.readouts is not None and not readouts
    if model.streams == 1 and not drops:
        return model
    one = single(model, readouts=not drops)
    follow(one, model)
    one.frozen = model.frozen
    return one


def single(model: PVM, *, readouts: bool) -> PVM:
    """Returns a new model of the same graph, on the same device and ranks, with one stream, with or without readouts."""
    config = model.config if readouts else dataclasses.replace(model.config, readout=None)
    same = {name: getattr(model, name) for name in ("wiring", "threads", "seed", "dtype", "ranks")}
    return PVM(config, device=model.backend.name, **same)


def follow(one: PVM, model: PVM) -> None:
    """Copies a model's parameters and the state of its first stream to a model from `single`."""
    first = {name: len(array) for name, array in one.fetch().items()}  # weights have no stream axis
    one.put({name: array[: first[name]] for name, array in model.fetch().items() if name in first})
    one.tick = model.tick


def shown_clips(given: dict[str, Any], options: dict[str, Any], model: PVM) -> Sequence[Clip]:
    """Returns the clips that a command names, or those of the run."""
    return open_clips(given["video"] or options["video"], model.config.frame)


def frames_of(clip: Clip) -> Iterator[Frame]:
    """Yields the frames of a clip, once."""
    for number in range(len(clip)):
        yield clip[number]


class Watcher:
    """A viewer that shows frames to a model and accumulates the errors of its predictions. Start a clip with `cut`.

    pair  the last frame with its prediction; None if there was none
    """

    def __init__(self, model: PVM):
        self.model = model
        self.frames = self.pairs = 0
        self.error = np.zeros(len(model.config.grids))
        self.prediction = self.last_frame = 0.0
        self.cut()

    def cut(self) -> None:
        """Marks a break: the next frame does not follow the last."""
        self._last: tuple[StepResult, np.ndarray] | None = None  # with the frame that it has seen
        self.pair: Pair | None = None

    def see(self, image: np.ndarray, label: Any = None) -> StepResult:
        """Shows the next frame to the model."""
        real = floats(image)
        self.pair = self._last and Pair(*self._last, real)
        if self.pair:
            self.pairs += 1
            self.prediction += self.pair.error
            self.last_frame += self.pair.last_frame
        seen = self.model.step(real, label)
        self.frames += 1
        self.error += seen.error
        self._last = seen, real
        return seen

    def figures(self) -> dict[str, Any]:
        """Returns means over all frames, JSON-compatible."""
        means = [total / self.pairs if self.pairs else None for total in (self.prediction, self.last_frame)]
        return {
            "frames": self.frames,
            "error": (self.error / max(self.frames, 1)).tolist(),
            **judged(*means),
        }


class Validation:
    """A validation that shows the first FRAMES frames of some clips to a frozen copy of a model, which doubles the
    memory, without effect on the model's training."""

    def __init__(self, model: PVM, shown: Sequence[Clip]):
        self._copy, self._clips = single(model, readouts=False), shown
        self._copy.frozen = True

    def figures(self, model: PVM) -> dict[str, float | None]:
        """Returns mean |prediction - frame| in 0..1 for the current model, and the same for repeating the last frame."""
        follow(self._copy, model)
        watcher = Watcher(self._copy)
        for clip in self._clips:
            watcher.cut()
            for frame in islice(frames_of(clip), FRAMES - watcher.frames):
                watcher.see(frame.image)
        shown = watcher.figures()
        return {"valid prediction": shown["prediction_error"], "valid last_frame": shown["last_frame_error"]}


def box_in(seen: StepResult, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the box that the heatmaps show, in pixels of an image of this shape."""
    return box_of(combine(seen.heatmaps, shape))


class Evaluated(NamedTuple):
    """The result of an evaluation.

    figures  JSON-compatible
    options  of the run
    wiring   of its units
    pair     the last frame with its prediction; None if there was none
    aspect   width / height of the original frames
    """

    figures: dict[str, Any]
    options: dict[str, Any]
    wiring: Wiring
    pair: Pair | None
    aspect: float


def evaluated(folder: Path, given: dict[str, Any]) -> Evaluated:
    """Evaluates a run on a video."""
    model, options = opened(folder, given)
    shown, most = shown_clips(given, options, model), given["steps"]
    model = alone(model, readouts=labelled(shown))  # without labels, no heatmap is compared
    watcher, frames = Watcher(model), sum(map(len, shown))
    with console.bar(frames if most is None else min(frames, most), "eval", "frames") as bar:
        tracks = [_follow(clip, watcher, most, bar.update) for clip in shown]
    truth, found = map(np.concatenate, zip(*tracks, strict=True))  # each frame has the same weight
    figures = {
        "run": str(folder),
        "model": "pvm",
        "video": given["video"] or options["video"],
        "learned": model.tick > watcher.frames and _learned(folder, shown),
        "steps_learned": model.tick - watcher.frames,
        **watcher.figures(),
        "tracking": score(truth, found)._asdict() if len(truth) else None,
    }
    return Evaluated(figures, options, model.wiring, watcher.pair, aspect_of(shown[0]))


def _learned(folder: Path, shown: Sequence[Clip]) -> bool:
    """True if a run has learned any of the shown clips, by their content."""
    known = checkpoint.read_facts(folder / CHECKPOINT)["facts"]["feed"]["clips"]
    both = (clip.describe() for clip in shown), known
    seen, had = ([facts | {"labelled": None} for facts in one] for one in both)  # whatever their labels
    return any(facts in had for facts in seen)


def _follow(clip: Clip, watcher: Watcher, most: int | None, shown: Callable[[], Any]) -> tuple[np.ndarray, np.ndarray]:
    """Shows a clip; returns the boxes of labels and of the tracker, (n, 4) each, in the labelled frames.

    As in the original, the tracker starts with the first target: before it, all counts as absent.
    """
    watcher.cut()
    labels, boxes = [], []
    for frame in islice(frames_of(clip), None if most is None else most - watcher.frames):
        seen = watcher.see(frame.image)
        shown()
        if frame.box is not None and seen.heatmaps:
            labels.append(frame.box * np.divide(ARENA, frame.image.shape[:2])[[1, 0, 1, 0]])
            boxes.append(box_in(seen, ARENA))
    truth, found = (np.array(one, np.float32).reshape(-1, 4) for one in (labels, boxes))
    found[~np.logical_or.accumulate(_present(truth))] = 0
    return truth, found


def text(figures: dict[str, Any]) -> str:
    """Returns figures as human-readable lines."""
    lines = {
        "run": f"{figures['run']}, after {figures['steps_learned']:,} steps of learning, frozen",
        "video": f"{figures['video']}, {figures['frames']:,} frames"
        + f", which it has {'' if figures['learned'] else 'not '}learned",
        "error a layer": "  ".join(f"{error:.4f}" for error in figures["error"]),
        "next frame": compared(figures),
    }
    if figures["tracking"]:
        lines["tracking"] = tracking_text(figures["tracking"])
    return "\n".join(f"{name:<18}{line}" for name, line in lines.items())


def compare(given: Namespace) -> dict[str, Any]:
    """Runs `hybrid pvm compare A B`: writes the picture, returns a report."""
    folders = [Path(given.a), Path(given.b)]
    options = [store.options_of(folder) for folder in folders]
    a, b = (one.get("video") for one in options)
    if not given.video and a != b:
        raise ValueError(f"--video: found none, and A was trained on {a}, B on {b}; name one for both")
    video = given.video or str(a)
    own = folders[0] / PICTURE
    path = panel.path_of(given.out or own)
    files.check(path, given.overwrite, own=own, inputs=[video])
    sides = [_side(folder, vars(given)) for folder in folders]
    draw_sides(path, sides)
    names = dict.fromkeys(name for side in sides for name in side.options if name != "name")
    settings = {name: [side.options.get(name) for side in sides] for name in names}  # None for a missing one
    report = {
        "video": video,
        "runs": {name: side.figures for name, side in zip("AB", sides, strict=True)},
        "settings": {name: pair for name, pair in settings.items() if pair[0] != pair[1]},
        "picture": str(path),
    }
    return report | {"text": compared_text(report)}


def _side(folder: Path, given: dict[str, Any]) -> Evaluated:
    """Evaluates a run; adds its sizes to the figures and its configuration, with names like readout.NAME, to the options."""
    seen, config = evaluated(folder, given), read_config(folder)  # the evaluated model may lack its readouts
    units, readouts = parameters(config, seen.wiring)
    own = {"configuration": config.name, "parameters": units, "readout_parameters": readouts}
    if seen.pair is None:
        raise ValueError(f"{folder}: too few frames to compare a prediction; expected at least 2 of one clip")
    learned = {option: value for option, value in seen.options.items() if option not in APART}
    fields = json.loads(config.to_json())
    inner = fields.pop("readout")
    fields |= {"readout": None} if inner is None else {f"readout.{name}": one for name, one in inner.items()}
    return seen._replace(figures=seen.figures | own, options=learned | fields)


def compared_text(report: dict[str, Any]) -> str:
    """Returns a report as a human-readable table."""
    figures = list(report["runs"].values())
    lines = [("", "A", "B"), *((name, *(one[name] for one in figures)) for name in ("run", "configuration"))]
    counts = {"parameters": "parameters", "of readouts": "readout_parameters", "steps": "steps_learned"}
    lines += [(name, *(f"{one[key]:,}" for one in figures)) for name, key in counts.items()]
    named = {
        "next frame, error": "prediction_error",
        "repeating the last": "last_frame_error",
        "ratio (less is better)": "prediction_to_last_frame",
    }
    for name, key in named.items():
        lines.append((name, *("-" if one[key] is None else f"{one[key]:.4f}" for one in figures)))
    for layer in range(max(len(one["error"]) for one in figures)):
        errors = (f"{one['error'][layer]:.4f}" if layer < len(one["error"]) else "-" for one in figures)
        lines.append((f"error, layer {layer}", *errors))
    trackers = [one["tracking"] for one in figures]
    if any(trackers):
        successes = (f"{one['success']:.3f}" if one and one["success"] else "-" for one in trackers)
        lines.append(("tracking, success", *successes))
    lines += [(f"{name} *", *map(_short, pair)) for name, pair in report["settings"].items()]
    wide = max(len(a) for _, a, _ in lines) + 2
    text = "\n".join(f"{name:<24}{a:<{wide}}{b}".rstrip() for name, a, b in lines)
    return f"{text}\n\n* settings that differ; both saw {report['video']}, frozen -> {report['picture']}"


def _short(value: Any) -> str:
    shown = value if isinstance(value, str) else json.dumps(value)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 3] + "..."


def draw_sides(path: Path, sides: list[Evaluated]) -> None:
    """Writes a picture: the last frame, each side's prediction of it, and the differences."""
    views: dict[str, panel.View] = {}
    for name, side in zip("AB", sides, strict=True):
        assert side.pair
        prediction, frame = side.pair.prediction, side.pair.after
        off = np.abs(prediction - frame).mean(axis=-1)
        views.setdefault("the last frame", panel.View(panel.rgb(frame)))
        views[f"{name} had predicted"] = panel.View(panel.rgb(prediction))
        views[f"{name} is off by {off.mean():.4f}"] = panel.coloured(off, panel.Scale(0, panel.ERROR, "inferno"))
    panel.save(path, panel.side_by_side(views, aspect=sides[0].aspect))


# Tracking: the box that the heatmaps show, compared with the label; a box without area is absent. The measures are those of
# braincorp/PVM (PVM_tools/benchmark.py), after Wu, Lim and Yang, Online object tracking: a benchmark (CVPR 2013).


class Scores(NamedTuple):
    """The scores of the tracker in labelled frames; `_asdict` is JSON-compatible."""

    true_positives: int  # target present, and any box reported
    true_negatives: int  # target absent, and reported absent
    false_positives: int  # target absent, and any box reported
    false_negatives: int  # target present, and reported absent
    success: float | None  # mean over 100 thresholds of the fraction of targets with a larger overlap; .99 at most


def score(truth: np.ndarray, found: np.ndarray) -> Scores:
    """Scores boxes (n, 4) against the labels. A target that was not found counts as missed at every threshold."""
    there, present = _present(truth), _present(found)
    both, targets = there & present, int(there.sum())
    overlaps = overlap(truth, found)[both]
    return Scores(
        true_positives=int(both.sum()),
        true_negatives=int((~there & ~present).sum()),
        false_positives=int((present & ~there).sum()),
        false_negatives=int((there & ~present).sum()),
        success=float(np.mean((overlaps[:, None] > OVERLAPS).sum(axis=0) / targets)) if targets else None,
    )


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns I / (A + B - I + 1e-5) of boxes (n, 4), areas in square pixels, (n,) float64; 0 if either is absent."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    low, high = np.maximum(a[:, :2], b[:, :2]), np.minimum(a[:, :2] + a[:, 2:], b[:, :2] + b[:, 2:])
    common = (high - low).clip(0).prod(axis=1)
    union = a[:, 2:].prod(axis=1) + b[:, 2:].prod(axis=1) - common
    return np.where(_present(a) & _present(b), common / (union + 1e-5), 0.0)


def _present(boxes: np.ndarray) -> np.ndarray:
    """Returns a mask (...) bool of the boxes (..., 4) with an area."""
    return np.asarray(np.all(boxes[..., 2:] > 0, axis=-1))


def tracking_text(scores: Mapping[str, Any]) -> str:
    """Returns `Scores`, as in a report, as text."""
    success = "no target" if scores["success"] is None else f"success {scores['success']:.3f}"
    found, targets = scores["true_positives"], scores["true_positives"] + scores["false_negatives"]
    right, others = scores["true_negatives"], scores["true_negatives"] + scores["false_positives"]
    return f"{success}, found {found} of {targets}, absent {right} of {others}"
