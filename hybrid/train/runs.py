"""What is done with a run: begin it, go on with it, measure it on other data, export its vectors.

run.json         the options it was started with
checkpoint/      see hybrid/storage/checkpoint.py; best/ the same, as it stood when a validation figure was the best
report.json      figures, the curve, seconds of every stage
curve.jsonl      the points of the curve, a line each, as they are made; tensorboard/ with --tensorboard
curve.png        the curve, .pdf and .csv too; timeline.json (open in ui.perfetto.dev), timeline.png and .pdf: the last ticks

What else there is, is its model's: a vocabulary, a configuration, the names of items.

Of several ranks each does all of this, but rank 0 alone touches the folder: it does that once for all (`Group.once`), and
the others read there what is whole.
"""

import contextlib
import functools
import gc
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .. import backend, console
from ..models import MODELS
from ..mpi.group import Group
from ..schedule import trace
from ..settings import defaults, flag, given
from ..storage import checkpoint, files, vectors
from ..storage.checkpoint import CHECKPOINT
from . import store
from .job import Job
from .loop import JsonLines, Observer, TensorBoard, check_same, required, train
from .options import Parts, free, kept
from .progress import CLOCKS, SPENT
from .store import options_of

# What a checkpoint tells of a run, beside its model: the feed and the progress; checked as they are read.
#
# A checkpoint may be whole and not of a run: a user's own save of a model has facts of his own, and a stranger may write any.

SHOWN = 60  # letters of what was found
LARGEST = 2**63  # beyond it sums with floats overflow


class Shape(NamedTuple):
    """What a value may be: in words, and as a test."""

    said: str
    fits: Callable[[Any], bool]


def _number(value: Any) -> bool:
    return isinstance(value, float) or (type(value) is int and abs(value) < LARGEST)


def _numbers(count: int) -> Shape:
    def fit(value: Any) -> bool:
        return isinstance(value, list) and len(value) == count and all(map(_number, value))

    return Shape(f"a list of {count} numbers", fit)


OBJECT = Shape("an object", lambda value: isinstance(value, dict))
LIST = Shape("a list", lambda value: isinstance(value, list))
TEXT = Shape("a string", lambda value: isinstance(value, str))
WHOLE = Shape("a whole number of at least 0", lambda value: type(value) is int and 0 <= value < LARGEST)
NUMBER = Shape("a number", _number)
FIGURE = Shape("a number or null", lambda value: value is None or _number(value))

# what earlier versions do not have, or not yet at the beginning
PROGRESS = {
    **dict.fromkeys(("examples", "clocked", *SPENT, *CLOCKS), NUMBER),
    "worse": WHOLE,
    "loss": FIGURE,
}
BEST = {"tick": WHOLE, "figure": TEXT, "value": NUMBER}
ENGINES = ("factors", "language", "words")  # models whose points are those of an engine


def check(facts: Any, job: Job, kind: str, model: Any, source: Path) -> None:
    """ValueError, naming the file, unless a checkpoint's facts are those of a run of this kind, so that its job can go on.

    facts   as they were read; those of earlier versions have less in them, and pass
    source  the checkpoint that they were read from: its folder or its JSON file
    """
    with _named(source):
        _have("", facts, {"feed": OBJECT, "progress": OBJECT})
        progress = facts["progress"]
        there = {name: shape for name, shape in PROGRESS.items() if name in progress}
        _have("progress", progress, {"curve": LIST} | there)
        _check_best(progress)
        points = {"seconds": NUMBER, job.unit: WHOLE} | _figures(job, kind, model)
        _check_points(progress, points)
        if kind == "pvm":
            _check_frames(progress, model)


def curve_of(facts: Any, model: Any, source: Path) -> list[dict[str, Any]]:
    """The curve of a Predictive Vision Model's run, [] for a save of a user's own; ValueError, naming the file, for facts that
    hold none.
    """
    with _named(source):
        _have("", facts, {})
        if facts.get("progress") is None:
            return []
        _have("", facts, {"progress": OBJECT})
        _have("progress", facts["progress"], {"curve": LIST})
        _check_points(facts["progress"], {"step": WHOLE, "prediction": FIGURE, "last_frame": FIGURE})
        _check_frames(facts["progress"], model)
    curve: list[dict[str, Any]] = facts["progress"]["curve"]
    return curve


@contextlib.contextmanager
def _named(source: Path) -> Iterator[None]:
    """While facts are checked: what is refused names the file, and says what to do."""
    try:
        yield
    except ValueError as failure:
        raise ValueError(f"{_file(source)}: {failure}; expected a checkpoint of a run{_remedy(source)}") from None


def _check_best(progress: Mapping[str, Any]) -> None:
    """The best point, and how many came since: no more than the curve has."""
    if progress.get("best") is not None:
        _have("progress.best", progress["best"], BEST)
    made = len(progress["curve"])
    if progress.get("worse", 0) > made:
        raise ValueError(f"progress.worse: found {progress['worse']}, expected at most {made}, the points of the curve")


def _check_points(progress: Mapping[str, Any], shapes: Mapping[str, Shape]) -> None:
    for at, point in enumerate(progress["curve"]):
        _have(f"progress.curve[{at}]", point, shapes)


def _figures(job: Job, kind: str, model: Any) -> dict[str, Shape]:
    """The figures that every point of a curve has; of a model of another distribution none are known."""
    if kind == "pvm":
        return {"error": _numbers(len(model.config.grids)), "prediction": FIGURE, "last_frame": FIGURE}
    if kind == "labels":
        return {"examples": NUMBER, job.drawn: FIGURE}
    return {"examples": NUMBER, "loss": FIGURE, job.drawn: FIGURE} if kind in ENGINES else {}


def _check_frames(progress: Mapping[str, Any], model: Any) -> None:
    """Of a Predictive Vision Model: what it has summed up since the last point; and frames were compared, or none was."""
    if "since" in progress:
        sums = dict.fromkeys(("prediction", "last_frame"), NUMBER) | dict.fromkeys(("ticks", "pairs"), WHOLE)
        _have("progress.since", progress["since"], sums | {"error": _numbers(len(model.config.grids))})
    for at, point in enumerate(progress["curve"]):
        if point["prediction"] is not None:
            _have(f"progress.curve[{at}]", point, {"last_frame": NUMBER})


def _have(name: str, found: Any, shapes: Mapping[str, Shape]) -> None:
    """ValueError unless what was found under a name is an object that has all these, in their shapes."""
    if not isinstance(found, dict):
        raise ValueError(f"{name or 'facts'}: found {_shown(found)}, expected an object")
    for key, shape in shapes.items():
        if key not in found:
            raise ValueError(f"{f'{name}.{key}'.lstrip('.')}: found none, expected {shape.said}")
        if not shape.fits(found[key]):
            raise ValueError(f"{f'{name}.{key}'.lstrip('.')}: found {_shown(found[key])}, expected {shape.said}")


def _shown(value: Any) -> str:
    """A value in few letters; the content of a list or an object may be anything, and is left out."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    said = repr(value) if not isinstance(value, int) or abs(value) < LARGEST else "a number beyond 2^63"
    return said if len(said) <= SHOWN else f"{said[:SHOWN]}..."


def _file(source: Path) -> Path:
    return source / checkpoint.LATEST if source.is_dir() else source


def _remedy(source: Path) -> str:
    """How the run may go on all the same: from the save before, where this is the last."""
    if not (source.is_dir() and (source / checkpoint.PREVIOUS).exists()):
        return ", as hybrid train writes it"
    return f", as hybrid train writes it: hybrid train --resume {source.parent} --previous goes on from the save before"


# A report as lines for a person.


def lines(report: dict[str, Any]) -> str:
    """A line a figure: its name, and words or a number; stages of a tick on one line; all else is left out."""
    shown = {name.replace("_", " "): value for name, value in report.items() if isinstance(value, str | int | float)}
    shown |= {"stages": trace.line(report["stages"])} if "stages" in report else {}
    width = max(map(len, shown), default=0)
    return "\n".join(f"{name:<{width}}  {_plain(value)}" for name, value in shown.items())


def _plain(value: str | int | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else f"{value:,.0f}"


# What a command does while kernels are compiled: it says so, once, and lets the garbage collector wait.
#
# Compiling makes objects by the million that live until its end; to look through them again and again takes a twentieth of it.

PATIENCE = 1.0  # seconds of compiling that nobody is told of


@functools.cache
def attend() -> None:
    """From now on do so, in this process."""
    from numba.core import event

    event.register("numba:compile", _listener(event.Listener))


def _listener(base: type) -> Any:
    class Attention(base):  # type: ignore[misc]
        """Told when the compilation of a function begins and ends, and of those that it calls within it."""

        def __init__(self) -> None:
            self.depth, self.spent, self.begun, self.told, self.collecting = 0, 0.0, 0.0, False, False

        def on_start(self, event: Any) -> None:
            if not self.depth:
                self.begun, self.collecting = time.perf_counter(), gc.isenabled()
                gc.disable()
            self.depth += 1
            self._tell()

        def on_end(self, event: Any) -> None:
            self._tell()
            self.depth -= 1
            if not self.depth:
                self.spent += time.perf_counter() - self.begun
                if self.collecting:
                    gc.enable()

        def _tell(self) -> None:
            if not self.told and self.spent + time.perf_counter() - self.begun > PATIENCE:
                self.told = True
                console.note("compiling kernels, once on this machine: up to a quarter of a minute")

    return Attention()


# Vectors in a file for other programs: in word2vec's two formats, whose names have no white space, or in one of three more.

FORMATS = ("text", "binary", "npz", "tsv", "parquet")  # the first two are word2vec's


def format_of(path: str | Path, named: str | None = None) -> str:
    """The format of a file: `named`, where that is given; else by the path's suffix (.npz, .tsv, .parquet), else "text"."""
    ending = Path(path).suffix.lower().removeprefix(".")
    return named or (ending if ending in FORMATS[2:] else "text")


def write(path: str | Path, names: Sequence[str], rows: np.ndarray, format: str) -> None:
    """Write names and their vectors. The file appears whole or, on any error, stays as it was.

    names   V strings
    rows    (V, D) floats, written as float32; every format keeps every bit of them
    format  "text" or "binary": those of word2vec
            "npz": arrays `names` (V,) and `vectors` (V, D), for numpy.load
            "tsv": a header, then a line for each name, which is quoted as in CSV where it holds a tab, a quote or a line end
            "parquet": columns `name` and `vector`; needs pyarrow

    Raises ValueError for what a format cannot hold, and where pyarrow is missing; OSError for a file that cannot be written.
    """
    vectors.save(path, names, rows, binary=format == "binary", format=format if format in FORMATS[2:] else None)


LENGTHS = ("epochs", "steps", "trees")


class Trained(NamedTuple):
    """A run that was trained.

    source  the checkpoint to take: the last, or the best
    """

    folder: Path
    options: dict[str, Any]
    source: Path

    def load(self) -> Any:
        """The model."""
        if not checkpoint.stands(self.source):
            raise ValueError(f"{self.folder}: found no checkpoint; hybrid train --resume {self.folder} goes on to one")
        return MODELS.load(self.options["kind"]).load(self.source, self.options)[0]


def start(options: dict[str, Any], *observers: Observer) -> dict[str, Any]:
    """Begin the run that chosen options (see `options.choose`) describe, and finish it; returns its report.

    observers  are told each point of its curve, too
    """
    folder, overwrite = Path(options.get("out") or f"runs/{options['kind']}"), bool(options.get("overwrite"))
    if options.get("previous"):
        raise ValueError("--previous: is used with --resume DIR; leave it out to begin a run")

    def refuse() -> None:
        store.refuse_taken(folder, overwrite)
        store.refuse_strangers(folder, overwrite)

    # before the data are read, which may take long; from then on what is in the folder is this run's
    ranks = Group()
    ranks.once(refuse)
    with contextlib.ExitStack() as under_way:
        chosen = dict(options)
        job = _prepared(chosen)
        _refuse_blind(job, chosen)
        ranks.once(lambda: under_way.enter_context(job.open()))
        model = job.make()  # before anything is written: this refuses what the options cannot have
        chosen |= job.chosen(model) | {"data": job.data}

        def write() -> None:
            under_way.enter_context(store.begun(folder, overwrite))
            job.keep(folder)
            store.keep_options(folder, kept(chosen))

        ranks.once(write)
        return _learn(folder, ranks, chosen, job, model, observers)


def resume(folder: str, said: dict[str, Any], *observers: Observer) -> dict[str, Any]:
    """Go on with a stopped run, with its own options, or further than it was begun for; returns its report.

    said       what the user says to that: epochs (or steps, as its model counts) to go on to, `previous` to go on from the
               save before the last, and options that change no number
    observers  are told each new point of its curve, too
    """
    path, ranks = Path(folder), Group()
    with contextlib.ExitStack() as under_way:
        options = _whole(path, ranks.once(lambda: under_way.enter_context(store.resumed(path))))
        options |= (changes := _changed(folder, options, said)) | {"resume": folder}
        with _asking_for_data(path, options, "to go on"):
            job = _prepared(options)
        if options.get("data") != job.data:
            raise ValueError(
                f"{folder}: the data differ from those that it was started with; give back the old, or begin anew"
            )
        _refuse_blind(job, options)
        ranks.once(lambda: under_way.enter_context(job.open()))
        if not checkpoint.stands(path / CHECKPOINT):
            ranks.once(lambda: store.refuse_lost(path))
            console.say(f"{folder} was ended before its first save: it begins anew")
            return _learn(path, ranks, options, job, job.make(), observers)
        source = path / CHECKPOINT
        source = source / checkpoint.PREVIOUS if changes.get("previous") else source
        model, facts = MODELS.load(options["kind"]).load(source, options)
        check(facts, job, options["kind"], model, source)
        check_same(job, facts["feed"], model.tick, path)
        further = {name: options[name] for name in (job.length, "patience")}
        ranks.once(lambda: store.extend(path, further))
        return _learn(path, ranks, options, job, model, observers, facts)


def trained(folder: str | Path, which: str | None = None, **free: Any) -> Trained:
    """A run to be measured or exported.

    which  "last" or "best", the checkpoint to take; None: the best where the run could stop early, else the last
    free   options that change no number, such as device
    """
    path = Path(folder)
    options = _whole(path, options_of(path))
    # nothing crosses between devices that need not
    options |= {name: "cpu" for name in ("rows_device", "readout_device") if name in options} | free
    which = which or ("best" if options.get("patience") and checkpoint.stands(path / store.BEST) else "last")
    source = path / (store.BEST if which == "best" else CHECKPOINT)
    if which == "best" and not checkpoint.stands(source):
        raise ValueError(f"--checkpoint best: {folder} has none; it had no validation figure to choose it by")
    return Trained(path, options, source)


def evaluate(folder: str, said: dict[str, Any]) -> dict[str, Any]:
    """Figures of a trained run on other data, JSON-able; on which, is its model's business."""
    run = trained(folder, said.get("checkpoint"), device=said["device"], threads=said["threads"])
    model = _model(run.options)
    asked = said | {name: value for name, value in defaults(model.Evaluation).items() if said.get(name) is None}
    with _asking_for_data(Path(folder), run.options, "to measure on it, or name other data"):
        figures: dict[str, Any] = model.evaluate(run, asked)
    return figures


def export(folder: str, file: str, format: str | None = None, which: str | None = None) -> str:
    """Write a run's vectors, see hybrid/train/runs.py; returns the sentence that says so."""

    run = trained(folder, which, device="cpu")  # nothing is computed
    model = _model(run.options)
    if not hasattr(model, "vectors"):
        raise ValueError(f"{folder}: a run of {run.options['kind']} has no vectors of words or items to export")
    names, table = model.vectors(run)
    write(file, names, table, format := format_of(file, format))
    return f"{len(names):,} vectors of {table.shape[1]} numbers, {format} -> {file}"


def text(report: dict[str, Any]) -> str:
    """A report or the figures of an evaluation as lines for a person."""
    model = MODELS.load(report["model"]) if report.get("model") in MODELS.names() else None
    if model and hasattr(model, "text"):
        said: str = model.text(report)
        return said

    return lines(report)


def announce(options: dict[str, Any]) -> None:
    """Where the user said "auto", say on stderr which it is and why; from here on, also that kernels are compiled."""
    attend()
    if options.get("device") == "auto":
        alone = getattr(MODELS.load(options["kind"]), "CPU_ONLY", None)
        console.note(f"device auto: {f'cpu, because {alone}' if alone else backend.auto()}")


def _prepared(options: dict[str, Any]) -> Job:
    """The job of a run; its data are read."""
    if options.get("tensorboard"):
        required()
    announce(options)
    job: Job = _model(options).prepare(options)
    return job


def _refuse_blind(job: Job, options: dict[str, Any]) -> None:
    """ValueError where --patience has no figure to go by."""
    if options.get("patience") and job.watched is None:
        raise ValueError(
            f"--patience: found {options['patience']} for a run without a validation figure; expected data to validate on, "
            f"see hybrid train {options['kind']} --help"
        )


def _changed(folder: str, options: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """The options that the user gives a run to go on with; ValueError for those that it cannot go on with."""
    kind = options["kind"]
    said = {name: value for name, value in given(said).items() if name != "resume"}
    if said.pop("kind", kind) != kind:
        raise ValueError(f"--resume: {folder} holds a run of {kind}; leave the model's name out")
    length = next(name for name in LENGTHS if name in options)
    for name in LENGTHS:
        if name in said and name != length:
            raise ValueError(
                f"--{name}: {folder} holds a run of {kind}, which counts {length}; --{length} N goes on to N"
            )
    may = {*free(kind), length, "previous"}
    wrong = [name for name, value in said.items() if name not in may and value != options.get(name)]
    if wrong:
        flags = ", ".join(map(flag, wrong))
        raise ValueError(f"{flags}: --resume goes on with the options that {folder} was started with; leave them out")
    for name in ("rows_device", "readout_device"):
        if said.get(name) == "auto":
            raise ValueError(f'{flag(name)} auto: measured when a run begins; to go on name "cpu" or "cuda:N"')
    return said


def _whole(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a run, with the defaults of those that it does not keep."""
    parts = Parts(options["kind"])
    with files.named(folder / store.RUN):
        for name, value in options.items():
            if _has_nul(value):
                raise ValueError(
                    f"{name}: found a string with a NUL in it, which no option can be; the file was altered"
                )
        parts.validate(options)
        for name, field in parts.own.items():
            if field.metadata["needed"] and not options.get(name):
                raise ValueError(f"{name}: found none, which a run of {parts.kind} needs; the file was altered")
        return parts.defaults(options) | options


def _has_nul(value: Any) -> bool:
    """Whether an option is a string, or a list with one, that holds a NUL, as no name of a file may."""
    return any(isinstance(one, str) and "\0" in one for one in (value if isinstance(value, list) else [value]))


@contextlib.contextmanager
def _asking_for_data(folder: Path, options: dict[str, Any], then: str) -> Generator[None, None, None]:
    """While the data of a run are read: where they are gone, FileNotFoundError says what to do."""
    try:
        yield
    except FileNotFoundError as failure:
        if failure.filename is None or str(failure.filename) not in options.values():
            raise
        said = f"{failure.strerror}; the run of {folder} was begun with it; put it back there as it was {then}"
        raise FileNotFoundError(failure.errno, said, failure.filename) from failure


def _learn(
    folder: Path,
    ranks: Group,
    options: dict[str, Any],
    job: Job,
    model: Any,
    others: Sequence[Observer],
    facts: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Train to the end, where the run is not there yet; write report and pictures, where it has none of that end."""
    if facts and model.tick == len(job.feed):
        further = f"--{job.length} N, above {job.reached},"
        if not facts["progress"]["curve"]:
            raise ValueError(
                f"{folder}: stands at {job.unit} {model.tick}, with nothing left to learn; {further} goes on"
            )
        if report := ranks.once(lambda: store.finished(folder, job.unit, model.tick, further)):
            return report
    observers: list[Observer] = []
    with contextlib.ExitStack() as watching:
        ranks.once(lambda: observers.extend(watching.enter_context(_observers(folder, options, job, model, facts))))
        observers.extend(others)
        report = train(
            job,
            folder,
            model,
            facts,
            label=options["kind"],
            save_every=options.get("save_every"),
            patience=options.get("patience") or 0,
            observers=observers,
            measured=lambda: _best(folder, options, model),
            ranks=ranks,
        )
    report = {"run": str(folder), "model": options["kind"]} | report

    def show() -> None:
        store.write_json(folder / store.REPORT, report | {"options": kept(options)})
        job.draw(folder, report, model)

    ranks.once(show)
    return report


@contextlib.contextmanager
def _observers(
    folder: Path, options: dict[str, Any], job: Job, model: Any, facts: dict[str, Any] | None
) -> Generator[list[Observer], None, None]:
    with contextlib.ExitStack() as stack:
        points = facts["progress"]["curve"] if facts else ()
        observers: list[Observer] = [stack.enter_context(contextlib.closing(JsonLines(folder / store.CURVE, points)))]
        if options.get("tensorboard"):
            board = TensorBoard(folder / store.TENSORBOARD, job, model.tick)
            observers.append(stack.enter_context(contextlib.closing(board)))
        yield observers


def _best(folder: Path, options: dict[str, Any], model: Any) -> Any:
    """The model that a report measures: where the run could stop early the best, once there is one, else the last."""
    if not (options.get("patience") and checkpoint.stands(folder / store.BEST)):
        return model
    return trained(folder, "best", device=options["device"], threads=options["threads"]).load()


def _model(options: dict[str, Any]) -> ModuleType:
    return MODELS.load(options["kind"])
