"""Operations on runs: start, resume, evaluate on other data, export vectors.

run.json         the options of the run
checkpoint/      see hybrid/storage/checkpoint.py; best/ the same, at the best validation figure
report.json      figures, the curve, seconds of every stage
curve.jsonl      the curve, one line per point, written during training; tensorboard/ with --tensorboard
curve.png        the curve, also .pdf and .csv
timeline.json    the stages of the last steps, for ui.perfetto.dev

Other files belong to the model: a vocabulary, a configuration, item names.

All ranks run these operations, but only rank 0 writes to the folder (`Group.once`); the others then read complete files.
"""

import contextlib
import functools
import platform
from collections.abc import Generator, Sequence
from pathlib import Path
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

SIDES = ("inputs", "outputs", "users")  # for `export`
ENDINGS = {".bin": "binary", ".npy": "npy", ".npz": "npz"}  # formats of vectors by suffix
LENGTHS = ("epochs", "steps", "trees")


class Trained(NamedTuple):
    """A trained run; source: the selected checkpoint, the last or the best."""

    folder: Path
    options: dict[str, Any]
    source: Path

    def load(self) -> Any:
        """Loads the model."""
        if not checkpoint.stands(self.source):
            raise ValueError(f"{self.folder}: found no checkpoint; hybrid train --resume {self.folder} makes one")
        return MODELS.load(self.options["kind"]).load(self.source, self.options)[0]


def start(options: dict[str, Any], *observers: Observer, ranks: SingleRank = SINGLE) -> dict[str, Any]:
    """Starts and finishes the run of chosen options (see `options.choose`); returns its report.

    observers  also take each curve point
    ranks      the ranks that train together, see `train`
    """
    folder, overwrite = Path(options.get("out") or f"runs/{options['kind']}"), bool(options.get("overwrite"))
    if options.get("previous"):
        raise ValueError("--previous: is used with --resume DIR; leave it out to begin a run")

    def refuse() -> None:
        store.refuse_taken(folder, overwrite)
        store.refuse_strangers(folder, overwrite)

    # before the data are read, which may be slow; from then on the folder belongs to this run
    ranks.once(refuse)
    with contextlib.ExitStack() as under_way:
        chosen = dict(options)
        job = _prepared(chosen)
        _refuse_blind(job, chosen)
        ranks.once(lambda: under_way.enter_context(job.open()))
        model = job.make()  # before any write: it rejects unsupported options
        chosen |= job.chosen(model) | {"data": job.data}

        def write() -> None:
            under_way.enter_context(store.begun(folder, overwrite))
            job.keep(folder)
            store.keep_options(folder, kept(chosen))

        ranks.once(write)
        _refuse_unshared(folder, ranks)
        return _learn(folder, ranks, chosen, job, model, observers)


def resume(folder: str, explicit: dict[str, Any], *observers: Observer, ranks: SingleRank = SINGLE) -> dict[str, Any]:
    """Resumes a stopped run, with its own options or to a greater length; returns its report. See `start`.

    explicit  the user's options: epochs (or steps, as its model counts) to reach, `previous` to resume from the save before
              the last, and options that affect no result
    """
    path = Path(folder)
    with contextlib.ExitStack() as under_way:
        options = _whole(path, ranks.once(lambda: under_way.enter_context(store.resumed(path))))
        _refuse_unshared(path, ranks)
        options |= (changes := _changed(folder, options, explicit)) | {"resume": folder}
        with _asking_for_data(path, options, "to continue"):
            job = _prepared(options)
        if options.get("data") != job.data:
            raise ValueError(
                f"{folder}: the data differ from those it was started with{_data_files(options)}; restore them, or start a new "
                "run"
            )
        _refuse_blind(job, options)
        ranks.once(lambda: under_way.enter_context(job.open()))
        if not checkpoint.stands(path / CHECKPOINT):
            ranks.once(lambda: store.refuse_lost(path))
            console.say(f"{folder} stopped before its first save and starts again")
            return _learn(path, ranks, options, job, job.make(), observers)
        source = path / CHECKPOINT
        source = source / checkpoint.PREVIOUS if changes.get("previous") else source
        model, facts = MODELS.load(options["kind"]).load(source, options)
        check(facts, job, source)
        check_feed(job, facts["feed"], model.tick, path)
        further = {name: options[name] for name in (job.length, "patience")}
        ranks.once(lambda: store.extend(path, further))
        return _learn(path, ranks, options, job, model, observers, facts)


def trained(folder: str | Path, which: str | None = None, **free: Any) -> Trained:
    """Returns a run for evaluation or export.

    which  checkpoint "last" or "best"; None: the best if the run has early stopping, otherwise the last
    free   options that affect no result, such as device
    """
    path = Path(folder)
    options = _whole(path, store.options_of(path))
    # avoids copies between devices
    options |= {name: "cpu" for name in ("rows_device", "readout_device") if name in options} | free
    which = which or ("best" if options.get("patience") and checkpoint.stands(path / store.BEST) else "last")
    source = path / (store.BEST if which == "best" else CHECKPOINT)
    if which == "best" and not checkpoint.stands(source):
        raise ValueError(f"--checkpoint best: {folder} has none; it had no validation figure to choose it by")
    return Trained(path, options, source)


def evaluate(folder: str, explicit: dict[str, Any]) -> dict[str, Any]:
    """Evaluates a trained run on other data; returns figures, JSON-able. The model defines the data."""
    run = trained(folder, explicit.get("checkpoint"), device=explicit["device"], threads=explicit["threads"])
    model = MODELS.load(run.options["kind"])
    asked = explicit | {name: value for name, value in defaults(model.Evaluation).items() if explicit.get(name) is None}
    with _asking_for_data(Path(folder), run.options, "to measure on it, or name other data"):
        figures: dict[str, Any] = model.evaluate(run, asked)
    return figures


def export(folder: str, file: str, format: str | None = None, which: str | None = None, side: str = SIDES[0]) -> str:
    """Writes a run's vectors; returns a message.

    format  one of vectors.FORMATS; None: by the file's suffix, otherwise "text"
    side    which vectors, one of SIDES
    """
    from ..formats import vectors

    run = trained(folder, which, device="cpu")  # only user vectors need computation
    if (of := getattr(_with_vectors(run), "vectors" if side == SIDES[0] else side, None)) is None:
        raise ValueError(f"--side {side}: not of a run of {run.options['kind']}; leave it out")
    names, rows = of(run)
    format = format or ENDINGS.get(Path(file).suffix.lower(), "text")
    vectors.save(file, names, rows, format=format)
    return f"{len(names):,} vectors of {rows.shape[1]} numbers ({side}), {format} -> {file}"


def open_run(
    folder: str | Path, *, checkpoint: str | None = None, device: str | None = None, threads: int | None = None
) -> Any:
    """Returns the user interface of a trained run, by its model.

    A `Recommender` (factors), a `LanguageModel` (language), or an object with `.vectors` and `.similar` (words) or with
    `.predict` (labels). Otherwise the model itself (pvm: a PVM).

    checkpoint  "last" or "best"; None: the best if the run has early stopping, otherwise the last
    device      "cpu", "cuda:N" or "auto", see `Engine`; None: a GPU if one is usable
    threads     total CPU threads; None: all available cores

    Raises ValueError for a folder without a trained run, and for a damaged checkpoint.
    """
    run = trained(folder, checkpoint, device=device, threads=threads)
    use = getattr(MODELS.load(run.options["kind"]), "Use", None)
    return use(run) if use else run.load()


def vectors_of(folder: str | Path, *, checkpoint: str | None = None, device: str = "cpu") -> "Vectors":
    """Returns the vectors that `hybrid export` writes; ValueError for a run whose model has none."""
    from ..use.vectors import Vectors

    run = trained(folder, checkpoint, device=device)
    return Vectors(*_with_vectors(run).vectors(run), what="name")


def _with_vectors(run: Trained) -> Any:
    """Returns the model of a run; ValueError if it has no vectors."""
    model = MODELS.load(run.options["kind"])
    if not hasattr(model, "vectors"):
        raise ValueError(f"{run.folder}: a run of {run.options['kind']} has no vectors of words or items")
    return model


def able(folder: str | Path, method: str, does: str) -> None:
    """Raises ValueError, with the models that can, if the run's has no `Use` with this method; does: as in "recommend"."""
    kind = trained(folder).options["kind"]
    if not _offers(kind, method):
        others = " or ".join(name for name in MODELS.names() if _offers(name, method))
        raise ValueError(f"{folder}: a run of {kind} cannot {does}; expected a run of {others}")


def text(report: dict[str, Any]) -> str:
    """Returns a report or evaluation as text: by its model's own function, or one figure per line.

    It shows strings and numbers, and the stages of a step on one line; other entries are omitted.
    """
    model = MODELS.load(report["model"]) if report.get("model") in MODELS.names() else None
    if model and hasattr(model, "text"):
        return model.text(report)
    shown = {name.replace("_", " "): value for name, value in report.items() if isinstance(value, str | int | float)}
    shown |= {"stages": trace.line(report["stages"])} if report.get("stages") else {}
    width = max(map(len, shown), default=0)
    return "\n".join(f"{name:<{width}}  {_plain(value)}" for name, value in shown.items())


def _offers(kind: str, method: str) -> bool:
    return hasattr(getattr(MODELS.load(kind), "Use", None), method)


def _plain(value: str | int | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else f"{value:,.0f}"


def announce(options: dict[str, Any]) -> None:
    """Prints the device that "auto" selects and the reason, on stderr; enables the note on kernel compilation."""
    console.note_compiling()
    if options.get("device") == "auto":
        alone = getattr(MODELS.load(options["kind"]), "CPU_ONLY", None)
        console.note(f"device auto: {f'cpu, because {alone}' if alone else backend.auto()}")


def _prepared(options: dict[str, Any]) -> Job:
    """Returns the job of a run, after reading its data."""
    if options["tensorboard"]:
        tensorboard()
    announce(options)
    return MODELS.load(options["kind"]).prepare(options)


def _refuse_blind(job: Job, options: dict[str, Any]) -> None:
    """Raises ValueError if --patience has no figure to watch."""
    if options.get("patience") and job.watched is None:
        raise ValueError(
            f"--patience: found {options['patience']} without a validation figure; expected data to validate on, see --help"
        )


def _refuse_unshared(folder: Path, ranks: SingleRank) -> None:
    """Raises ValueError on all ranks if one of them, on another host, sees other files in the run's folder than rank 0."""
    seen = functools.partial(store.seen, folder)
    with ranks.together():
        if ranks.once(seen) != (own := seen()):
            what = "other files" if own else "no run"
            raise ValueError(
                f"{folder}: found {what} on {platform.node()}, expected the run; all hosts must share its folder"
            )


def _changed(folder: str, options: dict[str, Any], explicit: dict[str, Any]) -> dict[str, Any]:
    """Returns the user's changes for a resumed run; ValueError for options that cannot change."""
    kind = options["kind"]
    explicit = {name: value for name, value in given(explicit).items() if name != "resume"}
    if explicit.pop("kind", kind) != kind:
        raise ValueError(f"--resume: {folder} holds a run of {kind}; leave the model's name out")
    length = next(name for name in LENGTHS if name in options)
    if other := next((name for name in LENGTHS if name in explicit and name != length), None):
        raise ValueError(
            f"--{other}: {folder} holds a run of {kind}, which counts {length}; --{length} N continues to N"
        )
    may = {*free(kind), length, "previous"}
    wrong = [name for name, value in explicit.items() if name not in may and value != options.get(name)]
    if wrong:
        flags = ", ".join(map(flag, wrong))
        raise ValueError(f"{flags}: --resume uses the options that {folder} was started with; leave them out")
    return explicit


def _whole(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Returns the validated options of a run, with defaults for those not stored."""
    parts = Parts(options["kind"])
    with files.named(folder / store.RUN):
        for name, value in options.items():
            # File names exclude NUL.
            if any(isinstance(one, str) and "\0" in one for one in (value if isinstance(value, list) else [value])):
                raise ValueError(f"{name}: found a string with a NUL, which no option can be; the file was altered")
        parts.validate(options)
        for name, field in parts.own.items():
            if field.metadata["needed"] and not options.get(name):
                raise ValueError(f"{name}: found none, which a run of {parts.kind} needs; the file was altered")
        return parts.defaults(options) | options


def _data_files(options: dict[str, Any]) -> str:
    """Returns the data files that the options of a run name, in parentheses; an empty text if there are none."""
    fields = Parts(options["kind"]).own.items()
    named = (options.get(name) for name, field in fields if field.metadata["group"] == "data")
    found = ", ".join(one for one in named if isinstance(one, str) and Path(one).exists())
    return f" ({found})" if found else ""


@contextlib.contextmanager
def _asking_for_data(folder: Path, options: dict[str, Any], then: str) -> Generator[None, None, None]:
    """A context for reading a run's data: FileNotFoundError for missing data includes a remedy."""
    try:
        yield
    except FileNotFoundError as failure:
        if failure.filename is None or str(failure.filename) not in options.values():
            raise
        text = f"{failure.strerror}; the run of {folder} was started with it; restore it {then}"
        raise FileNotFoundError(failure.errno, text, failure.filename) from failure


def _learn(
    folder: Path,
    ranks: SingleRank,
    options: dict[str, Any],
    job: Job,
    model: Any,
    others: Sequence[Observer],
    facts: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Trains to the end, unless already there; writes report and pictures, unless already written for that end."""
    if facts and model.tick == len(job.feed):
        further = f"--{job.length} N, above {job.reached},"
        if not facts["progress"]["curve"]:
            raise ValueError(f"{folder}: is at {job.unit} {model.tick}, the end of its run; {further} continues it")
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
        settings = {name: options[name] for name in ("save_every", "patience")}
        best = functools.partial(_best, folder, options, model)
        loop = LoopOptions(options["kind"], observers=[*observers, *others], measured=best, **settings)
        report = train(job, folder, model, facts, loop, ranks)
    report = {"run": str(folder), "model": options["kind"]} | report

    def show() -> None:
        store.write_json(folder / store.REPORT, report | {"options": kept(options)})
        job.draw(folder, report, model)

    ranks.once(show)
    return report


def _best(folder: Path, options: dict[str, Any], model: Any) -> Any:
    """Returns the model for the report: the best if there is one with early stopping, otherwise the last."""
    if not (options.get("patience") and checkpoint.stands(folder / store.BEST)):
        return model
    return trained(folder, "best", device=options["device"], threads=options["threads"]).load()
