"""A run on disk: a folder with its options, vocabulary, checkpoint, report and pictures.

run.json         the options it was started with
vocabulary.json  the words and their counts (language, words); items.json: the items' names (factors)
checkpoint/      see hybrid/checkpoint.py
report.json      figures, the curve, seconds of every stage
curve.png        the curve, .pdf and .csv too; timeline.json (open in ui.perfetto.dev), timeline.png and .pdf: the last ticks
"""

import importlib
import json
from pathlib import Path
from types import ModuleType

from . import backend, console, pictures, trace
from . import options as settings
from .engine import Engine
from .training import CHECKPOINT, KNOWN, Job, train, write_json

# What may change between a stop and the going on: threads change no number, another device rounds otherwise.
FREE_ON_RESUME = {"resume", "device", "rows_device", "readout_device", "threads", "pin"}
FREE_FOR_PVM = {
    "resume",
    "device",
    "threads",
    "steps",
    "save_every",
    "tensorboard",
    "live",
}  # it may be told to go on further
HOME = {"rows_device": "cpu", "readout_device": "cpu"}


def start(options: dict) -> dict:
    """Begin the run that resolved options describe, and finish it; returns its report."""
    folder = Path(options["out"] or f"runs/{options['kind']}")
    if (folder / "run.json").exists():
        raise ValueError(
            f"--out: {folder} holds a run; --resume {folder} goes on with it, another --out begins a new one"
        )
    announce(options)
    if options["kind"] == "pvm":
        return _pvm("training").start(options)
    model = _model(options["kind"])
    job = model.prepare(options)
    engine = job.make()  # before anything is written: this refuses what the options cannot have
    options |= _measured(options, engine) | {"data": job.data}  # a resumed run does not measure again
    folder.mkdir(parents=True, exist_ok=True)
    model.keep(job, folder)
    write_json(folder / "run.json", options)
    return _finish(folder, options, job, engine)


def resume(folder: str, given: dict) -> dict:
    """Go on with a stopped run, with its own options; returns its report."""
    path = Path(folder)
    options = options_of(path)
    free = FREE_FOR_PVM if options["kind"] == "pvm" else FREE_ON_RESUME
    said = [name for name, value in given.items() if value not in (None, False) and name not in free]
    if any(given[name] != options.get(name) for name in said):
        flags = ", ".join("--" + name.replace("_", "-") for name in said if given[name] != options.get(name))
        raise ValueError(f"{flags}: --resume goes on with the options that {folder} was started with; leave them out")
    for name in ("rows_device", "readout_device"):
        if given.get(name) == "auto":
            flag = name.replace("_", "-")
            raise ValueError(f'--{flag} auto: measured when a run begins; to go on name "cpu" or "cuda:N"')
    options |= {name: given[name] for name in free - {"resume"} if given.get(name)}
    announce(options)
    if options["kind"] == "pvm":
        return _pvm("training").resume(path, options)
    job = _model(options["kind"]).prepare(options)
    if options.get("data") not in (None, job.data):  # None: a run of before it was kept
        raise ValueError(
            f"{folder}: the data differ from those that it was started with; give back the old, or begin anew"
        )
    if not (path / CHECKPOINT).exists():
        return _finish(path, options, job, job.make())
    return _finish(path, options, job, *_load(path, options))


def announce(options: dict) -> None:
    """Where the user left the device to us by name, say on stderr which it is and why."""
    if options.get("device") == "auto":
        taken = "cpu, because word vectors have no dense part" if options["kind"] == "words" else backend.auto()
        console.note(f"device auto: {taken}")


def evaluate(folder: str, given: dict) -> dict:
    """Figures of a trained run on other data; which, is the model's business."""
    kind = options_of(Path(folder))["kind"]
    given = settings.for_eval(given, kind)
    if kind == "pvm":
        return _pvm("evaluate").evaluate(Path(folder), given)
    given_here = {"threads": given["threads"], "device": given["device"]}
    options = options_of(Path(folder)) | HOME | given_here
    engine, _ = _load(Path(folder), options)
    return _model(options["kind"]).evaluate(Path(folder), options, engine, given)


def export(folder: str, file: str, format: str | None = None, escape: bool = False) -> str:
    """Write a run's vectors, see hybrid/export.py; returns the sentence that says so."""
    from . import export

    options = options_of(Path(folder)) | HOME | {"device": "cpu"}  # nothing is computed
    if options["kind"] == "pvm":
        raise ValueError(f"{folder}: a Predictive Vision Model has no vectors of words or items to export")
    engine, _ = _load(Path(folder), options)
    names, table = _model(options["kind"]).vectors(Path(folder), engine)
    export.write(file, names, table, format := export.format_of(file, format), escape=escape)
    return f"{len(names):,} vectors of {table.shape[1]} numbers, {format} -> {file}"


def text(report: dict) -> str:
    """A report as lines for a person."""
    if report.get("model") == "pvm":
        return _pvm("evaluate" if "mode" in report else "training").text(report)
    shown = {name.replace("_", " "): value for name, value in report.items() if isinstance(value, str | int | float)}
    shown |= {"stages": trace.line(report["stages"])} if "stages" in report else {}
    width = max(map(len, shown), default=0)
    return "\n".join(f"{name:<{width}}  {_plain(value)}" for name, value in shown.items())


def _plain(value: str | int | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else f"{value:,.0f}"


def _measured(options: dict, engine: Engine) -> dict:
    """The options whose value was measured."""
    found = {}
    if options.get("rows_device") == "auto":
        found["rows_device"] = engine.embedding.backend.name
    if options.get("readout_device") == "auto":
        found |= {"readout_device": engine.readout.backend.name, "split": getattr(engine.readout, "split", None)}
    return found


def _finish(folder: Path, options: dict, job: Job, engine: Engine, facts: dict | None = None) -> dict:
    """Train to the end; write report and pictures."""
    report = train(job, folder, engine, facts, label=options["kind"])
    report = {"run": str(folder), "model": options["kind"], "readout": options["readout"]} | report | job.final(engine)
    write_json(folder / "report.json", report | {"options": options})
    figure = next((name for name in report["curve"][-1] if name not in ("tick", *KNOWN)), "loss")
    pictures.curve(folder / "curve.png", {f"{options['kind']}, {options['readout']}": report["curve"]}, figure)
    if engine.trace.recent:
        engine.trace.write_chrome(folder / "timeline.json")
        pictures.timeline(folder / "timeline.png", engine.trace)
    return report


def _load(folder: Path, options: dict) -> tuple[Engine, dict]:
    return Engine.load(
        folder / CHECKPOINT,
        device=options.get("device"),
        rows_device=options.get("rows_device") or "cpu",
        readout_device=options.get("readout_device") or "cpu",
        threads=options.get("threads"),
        overlap=False if options["serial"] else None,
        pin=bool(options.get("pin")),
    )


def options_of(folder: Path) -> dict:
    """The options that a run was started with; ValueError for a folder that holds none."""
    try:
        return json.loads((folder / "run.json").read_text())
    except FileNotFoundError:
        raise ValueError(f"{folder}: holds no run (no run.json); expected the --out folder of `hybrid train`") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{folder / 'run.json'}: not JSON ({error}); the file was altered or cut off") from None


def _model(kind: str) -> ModuleType:
    return importlib.import_module(f"hybrid.models.{kind}")


def _pvm(name: str) -> ModuleType:
    return importlib.import_module(f"hybrid.pvm.{name}")
