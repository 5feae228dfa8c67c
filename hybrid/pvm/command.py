"""What a user types about Predictive Vision Models: options, their defaults, and who answers. Imports nothing heavy."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from ..cli.arguments import positive as _positive
from ..cli.arguments import whole as _whole
from ..train.saving import EVERY

STEPS, FRAMES = 30_000, 250
POINTS = 200  # of the curve, where --every is not given
DEFAULTS: dict = {"config": "quick", "video": "synthetic", "steps": STEPS, "seed": 0}  # of `train pvm`
DEFAULTS |= {"save_every": EVERY}
WATCHED, DREAMT, FIELDS = "watch.mp4", "dream.mp4", "fields.png"
EVAL = ("video", "labels", "steps", "mode")  # what `hybrid eval` takes of a run of a PVM
COMPAT = ("cuda2023", "classic2016")
MODES = (
    "dream", "partial dream", "inverse partial dream", "blind spot", "inverse blind spot", "gray", "noise", "noise spot",
    "inverse noise spot", "blinks", "noisy signal", "none",
)  # fmt: skip
VIDEO_HELP = (
    'a file that FFmpeg reads, a directory of images or of videos, a zip of images, "camera", "camera:N", "synthetic"'
    ' or "synthetic:SEED": moving bodies over a moving background, with boxes'
)
LABELS_HELP = (
    "boxes for a video file, a line x,y,w,h a frame (default: the file beside it that ends in .txt or .csv; directories"
    " and zips hold their own)"
)
CROP_HELP = "cut frames to the model's aspect instead of stretching them to it"
LIVE_PORT = 8642


def joined(arguments: Sequence[str]) -> list[str]:
    """The arguments, where `train pvm` is the one word that names its parser."""
    at = next((place for place, word in enumerate(arguments) if not word.startswith("-")), 0)
    if list(arguments[at : at + 2]) != ["train", "pvm"]:
        return list(arguments)
    return [*arguments[:at], "train pvm", *arguments[at + 2 :]]


def configurations() -> list[str]:
    """Names of the configurations that come with the package."""
    return sorted(file.stem for file in (Path(__file__).parent / "configs").glob("*.json"))


def add(commands) -> argparse.ArgumentParser:
    """Add the commands `train pvm`, whose parser is returned, and `pvm` to a parser's."""
    train = commands.add_parser("train pvm", help="train a Predictive Vision Model on video")
    _train(train)
    pvm = commands.add_parser("pvm", help="watch, compare or import trained Predictive Vision Models, let them dream")
    actions = pvm.add_subparsers(dest="action", required=True, metavar="ACTION")
    _watch(actions.add_parser("watch", help="write a film: frame, prediction, difference, hidden maps, heatmap"))
    _dream(
        actions.add_parser("dream", help="write a film of a model that sees what it predicts, or half of it, or noise")
    )
    _fields(actions.add_parser("fields", help="draw what the hidden numbers of a layer look at in the frame"))
    _compare(actions.add_parser("compare", help="two runs on the same video, frozen: a table and a picture"))
    _import(actions.add_parser("import", help="make a run of a checkpoint of the CUDA original, Sim_*.zip"))
    configs = actions.add_parser("configs", help="list the configurations that come with the package")
    configs.add_argument("--json", action="store_true", help="print JSON")
    for action in actions.choices.values():
        action.add_quiet()
    return train


def _train(train) -> None:
    train.description = "Train a Predictive Vision Model: units that predict what they see, frame by frame."
    train.set_defaults(command="train", kind="pvm")
    model = train.add_argument_group("model")
    model.add_argument(
        "--config", metavar="NAME|FILE",
        help=f"{', '.join(configurations())}, or a file .json or .toml, ours or one of the originals'",
    )  # fmt: skip
    model.add_argument(
        "--set", metavar="NAME=VALUE", action="append", type=_setting,
        help="another value of a field of the configuration, in JSON; several times. --set activation=tanh, --set"
        " readout.start=1000 (the first step at which readouts learn), --set readout=null (none)",
    )  # fmt: skip
    model.add_argument("--compat", choices=COMPAT, help="repeat the mistakes of an original, and its numbers")
    data = train.add_argument_group("data")
    data.add_argument("--video", metavar="VIDEO", help=VIDEO_HELP)
    data.add_argument("--labels", metavar="FILE", help=LABELS_HELP)
    data.add_argument("--crop", action="store_true", help=CROP_HELP)
    data.add_argument(
        "--streams", type=_positive, metavar="B",
        help="places of the video seen at once, 1 to 16 (default: what the configuration asks for, 4 of quick, else 1)",
    )  # fmt: skip
    training = train.add_argument_group("training")
    training.add_argument("--steps", type=_positive, metavar="N", help="frames of each stream to learn")
    training.add_argument(
        "--every", type=_positive, metavar="K", help=f"steps between points of the curve (default: steps / {POINTS})"
    )
    training.add_argument(
        "--live", type=_port, nargs="?", const=LIVE_PORT, metavar="PORT",
        help=f"show the run while it learns on http://127.0.0.1:PORT, to browsers of this machine only (PORT: {LIVE_PORT})",
    )  # fmt: skip
    training.add_argument(
        "--tensorboard", action="store_true", help="write figures, and pictures every 10 K steps, to OUT/tensorboard"
    )
    _machine(train)
    train.add_argument("--seed", type=_whole, help="seed of the weights")
    train.add_defaults(lambda name: str(DEFAULTS.get(name, "")))


def _machine(command) -> None:
    command.add_argument(
        "--device", help='"cpu", "cuda:N" or "auto": a GPU when one can be used (default), and says why'
    )
    command.add_argument("--threads", type=_positive, help="CPU threads in total (default: all cores that it may use)")
    command.add_argument("--json", action="store_true", help="print the report as JSON")


def add_eval(command) -> None:
    """Add to `hybrid eval` what a Predictive Vision Model takes."""
    group = command.add_argument_group("pvm", "prediction against repeating the last frame; with labels, tracking")
    group.add_argument("--video", metavar="VIDEO", help=f"{VIDEO_HELP} (default: what it was trained on)")
    group.add_argument("--labels", metavar="FILE", help=LABELS_HELP)
    group.add_argument("--crop", action="store_true", help=f"{CROP_HELP} (default: as in training)")
    group.add_argument("--steps", type=_positive, metavar="N", help="most frames (default: the video once)")
    group.add_argument("--mode", choices=MODES, metavar="MODE", help=f"change the frames: {', '.join(MODES)}")


def _watch(watch) -> None:
    watch.add_argument("run", metavar="RUN", help="the folder of a trained run")
    watch.add_argument("--video", metavar="VIDEO", help=f"{VIDEO_HELP} (default: what it was trained on)")
    watch.add_argument("--labels", metavar="FILE", help=LABELS_HELP)
    watch.add_argument("--crop", action="store_true", help=f"{CROP_HELP} (default: as in training)")
    watch.add_argument("--frames", type=_positive, default=FRAMES, metavar="N", help=f"most frames (default {FRAMES})")
    _film(watch, WATCHED)


def _dream(dream) -> None:
    dream.add_argument("run", metavar="RUN", help="the folder of a trained run")
    dream.add_argument(
        "--frames", type=_positive, default=FRAMES, metavar="N", help=f"frames to dream (default {FRAMES})"
    )
    dream.add_argument(
        "--mode", choices=(*MODES, "freeze"), default="dream", metavar="MODE",
        help=f"{', '.join(MODES)} or freeze: what the model sees (default dream: its own predictions)",
    )  # fmt: skip
    dream.add_argument("--seed-video", metavar="VIDEO", help=f"{VIDEO_HELP} (default: what it was trained on)")
    dream.add_argument("--seed-frames", type=_whole, default=50, metavar="K", help="frames seen before (default 50)")
    dream.add_argument("--seed", type=_whole, default=0, help="seed of noise (default 0)")
    _film(dream, DREAMT, "--video")


def _fields(command) -> None:
    command.add_argument("run", metavar="RUN", help="the folder of a trained run")
    command.add_argument("--layer", type=_whole, default=0, metavar="L", help="of which layer (default 0)")
    command.add_argument(
        "--unit", type=_whole, metavar="U", help="of one unit alone, counted within its layer (default: all)"
    )
    command.add_argument("-o", "--out", metavar="FILE", help=f"the picture, .png, .pdf or .svg (default RUN/{FIELDS})")
    _machine(command)


def _compare(compare) -> None:
    for name in ("A", "B"):
        compare.add_argument(name.lower(), metavar=name, help="the folder of a trained run")
    compare.add_argument("--video", metavar="VIDEO", help=f"{VIDEO_HELP} (default: what both were trained on)")
    compare.add_argument("--labels", metavar="FILE", help=LABELS_HELP)
    compare.add_argument("--crop", action="store_true", help=f"{CROP_HELP} (default: as each was trained)")
    compare.add_argument("--steps", type=_positive, metavar="N", help="most frames (default: the video once)")
    compare.add_argument("-o", "--out", metavar="FILE", help="the picture to write, .png (default A/compare.png)")
    _machine(compare)


def _import(command) -> None:
    command.add_argument("file", metavar="FILE", help="Sim_<name>_<id>_<step>.zip; nothing in it is unpickled")
    command.add_argument(
        "--out", metavar="DIR", required=True, help="the run that it becomes; --resume goes on with it"
    )
    command.add_argument("--video", metavar="VIDEO", default="synthetic", help=f"{VIDEO_HELP} (default synthetic)")
    command.add_argument("--corrected", action="store_true", help="go on without the original's mistakes")
    command.add_argument("--json", action="store_true", help="print JSON")


def _film(command, name: str, *names: str) -> None:
    command.add_argument(
        "-o", "--out", *names, dest="out", metavar="FILE",
        help=f"the film to write: .mp4, .gif, or no suffix for a directory of .png (default RUN/{name})",
    )  # fmt: skip
    command.add_argument("--learn", action="store_true", help="go on learning, in memory alone (default: frozen)")
    _machine(command)


def _setting(text: str) -> str:
    name, equals, _ = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected NAME=VALUE, as in activation=tanh")
    return text


def _port(text: str) -> int:
    value = _positive(text)
    if value > 65535:
        raise argparse.ArgumentTypeError(f"found {text}, expected a port, 1 to 65535")
    return value


def resolve(options: dict) -> dict:
    """The options of `train pvm` with the defaults filled in."""
    if "config" not in options:
        raise ValueError("train: pvm has options of its own; it comes first, as in `hybrid train pvm --seed 3`")
    chosen = options | {name: value for name, value in DEFAULTS.items() if options.get(name) is None}
    return chosen | {"every": chosen["every"] or max(chosen["steps"] // POINTS, 1)}


def run(given) -> int:
    """Do a `hybrid pvm` command; returns the exit code."""
    if given.action == "configs":
        report = _configs()
    elif given.action == "import":
        from .originals import checkpoint

        report = checkpoint.into_run(given)
    elif given.action == "fields":
        from .judge import montage

        report = montage.fields(given)
    elif given.action == "compare":
        from .judge import comparison

        report = comparison.compare(given)
    else:
        from .judge import watch

        report = watch.watch(given) if given.action == "watch" else watch.dream(given)
    print(json.dumps(report, indent=1) if given.json else report["text"])
    return 0


def _configs() -> dict:
    from .presets import load
    from .rules import wire
    from .sizes import parameters

    lines, found = [f"{'':<12}{'frame':>12}{'layers':>8}{'units':>8}{'parameters':>14}{'of readouts':>14}"], {}
    for name in configurations():
        config = load(name)[0]
        wiring = wire(config)
        units, readouts = parameters(config, wiring)
        rows, columns, channels = config.frame
        found[name] = {"frame": config.frame, "units": len(wiring.hidden), "parameters": units, "readouts": readouts}
        frame = f"{rows}x{columns}x{channels}"
        lines.append(f"{name:<12}{frame:>12}{len(config.grids):>8}{len(wiring.hidden):>8,}{units:>14,}{readouts:>14,}")
    return {"configurations": found, "text": "\n".join(lines)}
