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
from collections.abc import Generator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import backend, console
from ..machine import SingleRank
from ..schedule import trace
from ..settings import MODELS, defaults, flag, given
from ..storage import checkpoint, files
from ..storage.checkpoint import CHECKPOINT
from . import store
from .job import Job
from .loop import SINGLE, JsonLines, LoopOptions, Observer, TensorBoard, tensorboard, train
from .options import Parts, free, kept
from .progress import check, check_feed

if TYPE_CHECKING:
    from ..use.vectors import Vectors

SIDES = ("inputs", "outputs", "users")  # of `export`
ENDINGS = {"bin": "binary"}  # of files of word2vec's format
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


def start(options: dict[str, Any], *observers: Observer, ranks: SingleRank = SINGLE) -> dict[str, Any]:
    """Begin the run that chosen options (see `options.choose`) describe, and finish it; returns its report.

    observers  take each point of its curve, too
    ranks      those that train together, see `train`
    """
    folder, overwrite = Path(options.get("out") or f"runs/{options['kind']}"), bool(options.get("overwrite"))
    if options.get("previous"):
        raise ValueError("--previous: is used with --resume DIR; leave it out to begin a run")

    def refuse() -> None:
        store.refuse_taken(folder, overwrite)
        store.refuse_strangers(folder, overwrite)

    # before the data are read, which may take long; from then on what is in the folder is this run's
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


def resume(folder: str, said: dict[str, Any], *observers: Observer, ranks: SingleRank = SINGLE) -> dict[str, Any]:
    """Go on with a stopped run, with its own options, or further than it was begun for; returns its report.

    said       what the user says to that: epochs (or steps, as its model counts) to go on to, `previous` to go on from the
               save before the last, and options that change no number
    observers  take each new point of its curve, too
    ranks      those that train together, see `train`
    """
    path = Path(folder)
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
        check_feed(job, facts["feed"], model.tick, path)
        further = {name: options[name] for name in (job.length, "patience")}
        ranks.once(lambda: store.extend(path, further))
        return _learn(path, ranks, options, job, model, observers, facts)


def trained(folder: str | Path, which: str | None = None, **free: Any) -> Trained:
    """A run to be measured or exported.

    which  "last" or "best", the checkpoint to take; None: the best where the run could stop early, else the last
    free   options that change no number, such as device
    """
    path = Path(folder)
    options = _whole(path, store.options_of(path))
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


def export(folder: str, file: str, format: str | None = None, which: str | None = None, side: str = SIDES[0]) -> str:
    """Write a run's vectors; returns the sentence that says so.

    format  "text" or "binary", which are word2vec's, or of vectors.FORMATS; None: by the end of the file's name, else "text"
    side    which vectors, of SIDES
    """
    from ..formats import vectors

    run = trained(folder, which, device="cpu")  # nothing is computed but the vectors of users
    model = _model(run.options)
    if not hasattr(model, "vectors"):
        raise ValueError(f"{folder}: a run of {run.options['kind']} has no vectors of words or items to export")
    of = getattr(model, "vectors" if side == SIDES[0] else side, None)
    if of is None:
        raise ValueError(f"--side {side}: not of a run of {run.options['kind']}; leave it out")
    names, rows = of(run)
    ending = Path(file).suffix.lower().removeprefix(".")
    format = format or ENDINGS.get(ending, ending if ending in vectors.FORMATS else "text")
    own = format if format in vectors.FORMATS else None
    vectors.save(file, names, rows, binary=format == "binary", format=own)
    return f"{len(names):,} vectors of {rows.shape[1]} numbers ({side}), {format} -> {file}"


def open_run(
    folder: str | Path, *, checkpoint: str | None = None, device: str | None = None, threads: int | None = None
) -> Any:
    """What a trained run can be used for, by its model: a `Recommender` (factors), a `LanguageModel` (language), an object
    with `.vectors` and `.similar` (words) or with `.predict` (labels); of a model that offers nothing of that kind, the model
    itself (pvm: a PVM).

    checkpoint  "last" or "best"; None: the best where the run could stop early, else the last
    device      "cpu", "cuda:N" or "auto", see `Engine`; None: a GPU when one can be used
    threads     CPU threads in total; None: all cores that the process may use

    Raises ValueError for a folder that holds no trained run, and for a checkpoint that is damaged.
    """
    run = trained(folder, checkpoint, device=device, threads=threads)
    use = getattr(MODELS.load(run.options["kind"]), "Use", None)
    return use(run) if use else run.load()


def vectors_of(folder: str | Path, *, checkpoint: str | None = None, device: str = "cpu") -> "Vectors":
    """The vectors of a trained run, those that `hybrid export` writes; ValueError for a run whose model has none."""
    from ..use.vectors import Vectors

    run = trained(folder, checkpoint, device=device)
    model = MODELS.load(run.options["kind"])
    if not hasattr(model, "vectors"):
        raise ValueError(f"{folder}: a run of {run.options['kind']} has no vectors of words or items")
    return Vectors(*model.vectors(run), what="name")


def able(folder: str | Path, method: str, does: str) -> None:
    """ValueError for a run whose model has no `Use` with this method, naming the models that have.

    does  what the method does, as in "a run of pvm cannot recommend"
    """
    kind = trained(folder).options["kind"]
    if not _offers(kind, method):
        others = " or ".join(name for name in MODELS.names() if _offers(name, method))
        raise ValueError(f"{folder}: a run of {kind} cannot {does}; expected a run of {others}")


def text(report: dict[str, Any]) -> str:
    """A report or the figures of an evaluation as lines for a person: as its model says, or a figure a line.

    Of figures it has words and numbers, and the stages of a tick on one line; all else is left out.
    """
    model = MODELS.load(report["model"]) if report.get("model") in MODELS.names() else None
    if model and hasattr(model, "text"):
        lines: str = model.text(report)
        return lines
    shown = {name.replace("_", " "): value for name, value in report.items() if isinstance(value, str | int | float)}
    shown |= {"stages": trace.line(report["stages"])} if "stages" in report else {}
    width = max(map(len, shown), default=0)
    return "\n".join(f"{name:<{width}}  {_plain(value)}" for name, value in shown.items())


def _offers(kind: str, method: str) -> bool:
    return hasattr(getattr(MODELS.load(kind), "Use", None), method)


def _plain(value: str | int | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else f"{value:,.0f}"


def announce(options: dict[str, Any]) -> None:
    """Where the user said "auto", say on stderr which it is and why; from here on, also that kernels are compiled."""
    console.note_compiling()
    if options.get("device") == "auto":
        alone = getattr(MODELS.load(options["kind"]), "CPU_ONLY", None)
        console.note(f"device auto: {f'cpu, because {alone}' if alone else backend.auto()}")


def _prepared(options: dict[str, Any]) -> Job:
    """The job of a run; its data are read."""
    if options["tensorboard"]:
        tensorboard()
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
    ranks: SingleRank,
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

        def watch(observer: JsonLines | TensorBoard) -> None:
            observers.append(watching.enter_context(contextlib.closing(observer)).point)

        def watch_all() -> None:
            watch(JsonLines(folder / store.CURVE, facts["progress"]["curve"] if facts else ()))
            if options["tensorboard"]:
                watch(TensorBoard(folder / store.TENSORBOARD, job, model.tick))

        ranks.once(watch_all)
        loop = LoopOptions(
            label=options["kind"],
            save_every=options["save_every"],
            patience=options["patience"],
            observers=[*observers, *others],
            measured=lambda: _best(folder, options, model),
        )
        report = train(job, folder, model, facts, loop, ranks)
    report = {"run": str(folder), "model": options["kind"]} | report

    def show() -> None:
        store.write_json(folder / store.REPORT, report | {"options": kept(options)})
        job.draw(folder, report, model)

    ranks.once(show)
    return report


def _best(folder: Path, options: dict[str, Any], model: Any) -> Any:
    """The model that a report measures: where the run could stop early the best, once there is one, else the last."""
    if not (options.get("patience") and checkpoint.stands(folder / store.BEST)):
        return model
    return trained(folder, "best", device=options["device"], threads=options["threads"]).load()


def _model(options: dict[str, Any]) -> ModuleType:
    return MODELS.load(options["kind"])
