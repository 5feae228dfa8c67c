"""A run on disk: a folder with its options, vocabulary, checkpoint, report and pictures.

run.json         the options it was started with
vocabulary.json  the words and their counts (language, words); items.json: the items' names (factors)
checkpoint/      see hybrid/storage/checkpoint.py
report.json      figures, the curve, seconds of every stage
curve.png        the curve, .pdf and .csv too; timeline.json (open in ui.perfetto.dev), timeline.png and .pdf: the last ticks
"""

import importlib
from pathlib import Path
from types import ModuleType

from .. import backend, console
from ..cli import options as settings
from ..engine import Engine, trace
from ..storage import checkpoint
from ..storage.checkpoint import CHECKPOINT
from . import plots, store
from .loop import KNOWN, Job, check_same, train
from .store import options_of

# What may change between a stop and the going on: threads change no number, another device rounds otherwise.
FREE_ON_RESUME = {"resume", "previous", "device", "rows_device", "readout_device", "threads", "pin", "save_every"}
FREE_FOR_PVM = {"resume", "previous", "device", "threads", "save_every", "tensorboard", "live"}
HOME = {"rows_device": "cpu", "readout_device": "cpu"}


def start(options: dict) -> dict:
    """Begin the run that resolved options describe, and finish it; returns its report."""
    folder, overwrite = Path(options["out"] or f"runs/{options['kind']}"), bool(options.get("overwrite"))
    if options.get("previous"):
        raise ValueError("--previous: goes with --resume DIR; leave it out to begin a run")
    store.refuse_taken(folder, overwrite)  # before the data are read, which may take long
    announce(options)
    if options["kind"] == "pvm":
        return _pvm("training").start(folder, options)
    model = _model(options["kind"])
    job = model.prepare(options)
    engine = job.make()  # before anything is written: this refuses what the options cannot have
    options |= _measured(options, engine) | {"data": job.data}  # a resumed run does not measure again
    with store.begun(folder, overwrite):
        model.keep(job, folder)
        store.keep_options(folder, options)
        return _finish(folder, options, job, engine)


def resume(folder: str, given: dict) -> dict:
    """Go on with a stopped run, with its own options, or further than it was begun for; returns its report.

    given  what the user says to that: epochs (of a Predictive Vision Model steps) to go on to, `previous` to go on from the
           save before the last, and options that change no number
    """
    path = Path(folder)
    with store.resumed(path) as options:
        options |= _changed(folder, options, given)
        announce(options)
        if options["kind"] == "pvm":
            return _pvm("training").resume(path, options)
        job = _model(options["kind"]).prepare(options)
        if options.get("data") not in (None, job.data):  # None: a run of before it was kept
            raise ValueError(
                f"{folder}: the data differ from those that it was started with; give back the old, or begin anew"
            )
        if not checkpoint.stands(path / CHECKPOINT):
            return _finish(path, options, job, job.make())
        engine, facts = _load(path, options)
        check_same(job.feed, facts["feed"], engine.tick, path)
        store.extend(path, "epochs", options["epochs"])
        return _finish(path, options, job, engine, facts)


def length_of(kind: str) -> str:
    """What a run of this kind counts, and is extended by."""
    return "steps" if kind == "pvm" else "epochs"


def _changed(folder: str, options: dict, given: dict) -> dict:
    """The options that the user gives a run to go on with; ValueError for those that it cannot go on with."""
    kind = options["kind"]
    said = {name: value for name, value in given.items() if value is not None and value is not False}
    if said.pop("kind", kind) != kind:
        raise ValueError(f"--resume: {folder} holds a run of {kind}; leave the model's name out")
    length, free = length_of(kind), FREE_FOR_PVM if kind == "pvm" else FREE_ON_RESUME
    for name in ("steps", "epochs"):
        if name in said and name != length:
            raise ValueError(
                f"--{name}: {folder} holds a run of {kind}, which counts {length}; --{length} N goes on to N"
            )
    wrong = [name for name, value in said.items() if name not in {*free, length} and value != options.get(name)]
    if wrong:
        flags = ", ".join("--" + name.replace("_", "-") for name in wrong)
        raise ValueError(f"{flags}: --resume goes on with the options that {folder} was started with; leave them out")
    for name in ("rows_device", "readout_device"):
        if said.get(name) == "auto":
            flag = name.replace("_", "-")
            raise ValueError(f'--{flag} auto: measured when a run begins; to go on name "cpu" or "cuda:N"')
    return said


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
        return _pvm("judge.evaluate").evaluate(Path(folder), given)
    given_here = {"threads": given["threads"], "device": given["device"]}
    options = options_of(Path(folder)) | HOME | given_here
    engine, _ = _load(Path(folder), options)
    return _model(options["kind"]).evaluate(Path(folder), options, engine, given)


def export(folder: str, file: str, format: str | None = None, escape: bool = False) -> str:
    """Write a run's vectors, see hybrid/storage/export.py; returns the sentence that says so."""
    from ..storage import export

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
        return _pvm("judge.evaluate" if "mode" in report else "training").text(report)
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
    """Train to the end, where the run is not there yet; write report and pictures, where it has none of that end."""
    if facts and engine.tick == len(job.feed):
        report = store.finished(folder, "tick", engine.tick, f"--epochs N, above {job.feed.epochs},")
        if report:
            return report
    report = train(job, folder, engine, facts, options["kind"], options.get("save_every"))
    report = {"run": str(folder), "model": options["kind"], "readout": options["readout"]} | report
    store.write_json(folder / store.REPORT, report | {"options": options})
    figure = next((name for name in report["curve"][-1] if name not in ("tick", *KNOWN)), "loss")
    plots.curve(folder / "curve.png", {f"{options['kind']}, {options['readout']}": report["curve"]}, figure)
    if engine.trace.recent:
        engine.trace.write_chrome(folder / "timeline.json")
        plots.timeline(folder / "timeline.png", engine.trace)
    return report


def _load(folder: Path, options: dict) -> tuple[Engine, dict]:
    saved = folder / CHECKPOINT
    return Engine.load(
        saved / checkpoint.PREVIOUS if options.get("previous") else saved,
        device=options.get("device"),
        rows_device=options.get("rows_device") or "cpu",
        readout_device=options.get("readout_device") or "cpu",
        threads=options.get("threads"),
        overlap=False if options["serial"] else None,
        pin=bool(options.get("pin")),
    )


def _model(kind: str) -> ModuleType:
    return importlib.import_module(f"hybrid.models.{kind}")


def _pvm(name: str) -> ModuleType:
    return importlib.import_module(f"hybrid.pvm.{name}")
