"""The command `hybrid pvm`: uses of trained Predictive Vision Models other than training and evaluation."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ... import console
from ...feeds.video.frames import Frames
from ...feeds.video.open import open_clips
from ...pvm import evaluate, film, presets
from ...pvm.film import DREAMT, FIELDS, WATCHED
from ...pvm.model import parameters
from ...pvm.originals import checkpoint
from ...pvm.source import CONFIG, VIDEO_HELP
from ...pvm.wiring import wire
from ...settings import positive, whole
from ...storage import files
from ...storage.checkpoint import CHECKPOINT
from ...train import store
from ...train.options import DEVICE, THREADS, choose, kept
from ...train.progress import Progress
from ..arguments import OVERWRITE, Parser

FRAMES = 250  # frames of a film


def add(pvm: Parser) -> None:
    """Adds the subcommands to the command's parser."""
    actions: Any = pvm.add_subparsers(dest="action", required=True, metavar="ACTION")
    _watch(actions.add_parser("watch", help="write a film: frame, prediction, difference, hidden maps, heatmap"))
    _dream(actions.add_parser("dream", help="write a film of a model that takes its predictions as input"))
    _fields(actions.add_parser("fields", help="draw the receptive fields of the hidden activations of a layer"))
    _compare(actions.add_parser("compare", help="compare two frozen models on one video: a table and a picture"))
    _import(actions.add_parser("import", help="convert a checkpoint of the original CUDA program, Sim_*.zip, to a run"))
    configs = actions.add_parser("configs", help="list the configurations of the package")
    configs.add_argument("--json", action="store_true", help="print JSON")
    for action in actions.choices.values():
        action.add_quiet()


def _watch(watch: Parser) -> None:
    _run(watch)
    watch.add_argument("--video", metavar="VIDEO", help=f"{VIDEO_HELP} (default: the training video)")
    watch.add_argument(
        "--steps", type=positive, default=FRAMES, metavar="N", help=f"maximum number of frames (default: {FRAMES})"
    )
    _film(watch, WATCHED)


def _dream(dream: Parser) -> None:
    _run(dream)
    seen = f"video before the dream: {VIDEO_HELP} (default: the training video)"
    count = f"frames to dream (default: {FRAMES})"
    dream.add_argument("--steps", type=positive, default=FRAMES, metavar="N", help=count)
    dream.add_argument("--video", metavar="VIDEO", help=seen)
    _film(dream, DREAMT)


def _fields(command: Parser) -> None:
    _run(command)
    command.add_argument("--layer", type=whole, default=0, metavar="L", help="layer (default: 0)")
    _out(command, f"the picture, .png (default: RUN/{FIELDS})")


def _compare(compare: Parser) -> None:
    for name in ("A", "B"):
        compare.add_argument(name.lower(), metavar=name, help="the folder of a trained run")
    compare.add_argument("--video", metavar="VIDEO", help=f"{VIDEO_HELP} (default: the training video of both)")
    compare.add_argument(
        "--steps", type=positive, metavar="N", help="maximum number of frames (default: the whole video)"
    )
    _out(compare, "the picture to write, .png (default: A/compare.png)")


def _import(command: Parser) -> None:
    command.add_argument("file", metavar="FILE", help="Sim_<name>_<id>_<step>.zip; its pickles are not executed")
    command.add_argument("--out", metavar="DIR", required=True, help="folder of the new run")
    command.add_overwrite(OVERWRITE)
    command.add_argument("--video", metavar="VIDEO", default="synthetic", help=f"{VIDEO_HELP} (default: synthetic)")
    command.add_argument("--json", action="store_true", help="print JSON")


def _run(command: Parser) -> None:
    command.add_argument("run", metavar="RUN", help="the folder of a trained run")


def _film(command: Parser, name: str) -> None:
    _out(command, f"the film to write: .mp4, .gif, or no suffix for a directory of .png (default: RUN/{name})")


def _out(command: Parser, text: str) -> None:
    """Adds the output option and the machine options."""
    command.add_argument("-o", "--out", metavar="FILE", help=text)
    command.add_overwrite()
    command.add_argument("--device", help=DEVICE)
    command.add_argument("--threads", type=positive, help=THREADS)
    command.add_argument("--json", action="store_true", help="print the report as JSON")


def run(given: argparse.Namespace) -> int:
    """Runs a `hybrid pvm` subcommand; returns the exit code."""
    report = ACTIONS[given.action](given)
    print(json.dumps(report, indent=1) if given.json else report["text"])
    return 0


def _imported(given: argparse.Namespace) -> dict[str, Any]:
    """Creates a run from a checkpoint of the CUDA original; `hybrid train --resume` continues it."""
    folder = Path(given.out)
    store.refuse_taken(folder, given.overwrite)
    read = checkpoint.read(given.file)
    for note in read.notes:
        console.note(f"{given.file}: {note}")
    model = checkpoint.model(read, device="cpu")
    options = choose("pvm", config=str(given.file), video=given.video, steps=read.step, streams=1)
    feed = Frames(open_clips(given.video, model.config.frame), read.step)
    with store.begun(folder, given.overwrite):
        files.write(folder / CONFIG, [model.config.to_json().encode()])
        # before run.json, without which there is no run to resume
        progress = Progress({"examples": read.step, "clocked": 0}).facts
        model.save(folder / CHECKPOINT, {"feed": feed.describe(), "progress": progress})
        store.keep_options(folder, kept(options | {"data": None}))
    text = f"step {read.step:,} of {model.config.name}, {sum(model.size):,} parameters -> {folder}"
    return {"out": str(folder), "step": read.step, "parameters": sum(model.size), "notes": read.notes, "text": text}


def _configs(given: argparse.Namespace) -> dict[str, Any]:
    lines, found = [f"{'':<12}{'frame':>12}{'layers':>8}{'units':>8}{'parameters':>14}{'of readouts':>14}"], {}
    for name in presets.names():
        config = presets.load(name)[0]
        wiring = wire(config)
        units, readouts = parameters(config, wiring)
        rows, columns, channels = config.frame
        found[name] = {"frame": config.frame, "units": len(wiring.hidden), "parameters": units, "readouts": readouts}
        frame = f"{rows}x{columns}x{channels}"
        lines.append(f"{name:<12}{frame:>12}{len(config.grids):>8}{len(wiring.hidden):>8,}{units:>14,}{readouts:>14,}")
    return {"configurations": found, "text": "\n".join(lines)}


ACTIONS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {"import": _imported, "configs": _configs}
ACTIONS |= {"watch": film.watch, "dream": film.dream, "fields": film.fields, "compare": evaluate.compare}
