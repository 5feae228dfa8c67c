"""The command `hybrid sweep`: option search with Optuna. Each trial is a run of `hybrid train` in its own folder."""

import argparse
import functools
import itertools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ... import console
from ...settings import flag
from ...storage import files
from ..arguments import Parser

JOURNAL, TABLE, NAME = "sweep.journal", "trials.md", "sweep"
# Of one trial. Not OSError: after a disk error, or without the data, the next would fail too.
FAILURES = (ValueError, IndexError, FloatingPointError, MemoryError)


class Sweep(NamedTuple):
    """The options of all trials, and what the varied ones vary over; first: curve points before a trial may be pruned."""

    model: str
    trials: int
    first: int
    fixed: dict[str, Any]
    vary: dict[str, Any]

    def outermost(self) -> dict[str, list[Any]]:
        """Returns extreme values of the varied options: if these are valid, all are."""
        return {name: one if isinstance(one, list) else [one["from"], one["to"]] for name, one in self.vary.items()}

    def options(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the parsed options of a trial; ValueError for names and values that `hybrid train` rejects."""
        from ...train.options import Parts

        fields = Parts(self.model).every()
        reader = _Reader(add_help=False)
        reader.add_options(fields.values(), {})
        words = []
        for name, value in {**self.fixed, **drawn}.items():
            if name not in fields:
                raise ValueError(f"{name}: not an option of hybrid train {self.model}")
            for one in value if isinstance(value, list) else [value]:
                words += [] if one is False else [flag(name) if one is True else f"{flag(name)}={one}"]
        return vars(reader.parse_args(words))


class _Reader(Parser):
    """A parser that raises instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def add(sweep: Parser) -> None:
    """Adds the options to the command's parser."""
    sweep.add_argument("file", metavar="FILE.toml", help="the search: see docs/runs.md")
    sweep.add_argument("--out", metavar="DIR", help="folder of the trials and their table (default: runs/FILE)")


def run(given: argparse.Namespace) -> int:
    """Starts the sweep, or goes on with the remaining trials."""
    try:
        import optuna
    except ImportError:
        raise ValueError("sweep: needs Optuna; pip install 'hybrid-engine[sweep]'") from None
    from ...train.stop import Stopped

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path = Path(given.file)
    folder = Path(given.out or f"runs/{path.stem}")
    with files.named(path):
        sweep = _read(path)
        study = _study(sweep, folder)

    def after(study: Any, trial: Any) -> None:
        """Writes the table; stops after the last trial."""
        files.write(folder / TABLE, [_table(study, sweep).encode()])
        if len(_counted(study)) >= sweep.trials:
            study.stop()

    try:
        if len(_counted(study)) < sweep.trials:
            study.optimize(functools.partial(_objective, sweep=sweep, folder=folder), catch=FAILURES, callbacks=[after])
    except Stopped as stopped:
        console.say("stopped; the same command continues")
        return 128 + stopped.signal
    print(_table(study, sweep), end="")
    if all(trial.value is None for trial in study.trials):
        raise ValueError(f"{folder}: no trial has finished; see {TABLE} for the reasons")
    return 0


def _read(path: Path) -> Sweep:
    from ...settings import MODELS

    raw = files.read(path)
    tables = [raw.pop(name, {}) for name in ("sweep", "fixed", "vary")]
    if raw or not all(isinstance(table, dict) for table in tables):
        raise ValueError("expected only the tables [sweep], [fixed] and [vary]")
    head, fixed, vary = ({name.replace("-", "_"): value for name, value in table.items()} for table in tables)
    model, trials, first = head.pop("model", None), head.pop("trials", None), head.pop("first", 1)
    if head or model not in MODELS.names() or any(type(one) is not int or one < 1 for one in (trials, first)):
        found = ", ".join([f"trials = {trials}", f"model = {model}", f"first = {first}", *head])
        models = ", ".join(MODELS.names())
        raise ValueError(
            f"[sweep]: found {found}; expected trials = N, optionally first = N, both above 0, model = one of {models}"
        )
    if not vary or vary.keys() & fixed.keys():
        raise ValueError("[vary]: expected at least one option, none of them in [fixed]")
    sweep = Sweep(model, trials, first, fixed, {name: _checked(name, value) for name, value in vary.items()})
    for name, values in sweep.outermost().items():
        for value in values:
            sweep.options({name: value})
    return sweep


def _checked(name: str, value: Any) -> Any:
    """Returns what an option varies over: a list of values, or numbers in {from = A, to = B, log = true}."""
    if isinstance(value, list) and value and all(isinstance(one, str | bool | int | float) for one in value):
        return value
    if isinstance(value, dict) and {"from", "to"} <= value.keys() <= {"from", "to", "log"}:
        low, high, log = value["from"], value["to"], value.get("log", False)
        most, kinds = sys.float_info.max, {type(low), type(high)}
        if kinds <= {int, float} and type(log) is bool and (0 if log else -most) < low < high < most:
            return value
    raise ValueError(
        f"[vary] {name}: found {value}, expected a list, or {{from = A, to = B}} with A < B, above 0 for log = true"
    )


def _study(sweep: Sweep, folder: Path) -> Any:
    """Returns the study in a folder, created if missing; ValueError for a folder with other content."""
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalStorage

    from ...settings import MODELS
    from ...train.options import choose

    path = folder / JOURNAL
    asked = [sweep.model, sweep.first, sweep.fixed, sweep.vary]
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=sweep.first, reduction_factor=3)
    if path.exists():
        files.expect_file(path)
    else:
        if folder.is_dir() and any(folder.iterdir()):
            raise ValueError(f"--out: {folder} holds no sweep, but other files; name another --out")
        first = {name: values[0] for name, values in sweep.outermost().items()}
        watched = MODELS.load(sweep.model).prepare(choose(sweep.model, **sweep.options(first))).watched
        if watched is None:
            raise ValueError("these runs have no validation figure; add validation data")
        files.make(folder)
        storage = JournalStorage(JournalFileBackend(str(path)))
        direction: Any = "minimize" if watched.lowest else "maximize"
        study = optuna.create_study(study_name=NAME, storage=storage, direction=direction, load_if_exists=True)
        study.set_user_attr("figure", watched.name)
        study.set_user_attr("asked", asked)
    try:
        study = optuna.load_study(study_name=NAME, storage=JournalStorage(JournalFileBackend(str(path))), pruner=pruner)
        same = study.user_attrs["asked"] == asked and isinstance(study.user_attrs["figure"], str)
    except Exception as error:  # Optuna raises various errors for an altered file
        raise ValueError(f"{path}: not the journal of a sweep ({type(error).__name__}); it was altered") from error
    if not same:
        raise ValueError(
            f"differs from the file that the sweep in {folder} was started with; restore it, or name another --out"
        )
    return study


def _counted(study: Any) -> list[Any]:
    """Returns the trials that came to an end, without those that a signal or a disk error ended."""
    ended = (one for one in study.get_trials(deepcopy=False) if one.state.is_finished())
    return [one for one in ended if one.state.name != "FAIL" or "failed" in one.user_attrs]


def _objective(trial: Any, sweep: Sweep, folder: Path) -> float:
    """Trains a trial to its end; returns the figure of its last point, or of the best with early stopping."""
    import optuna

    from ...train import runs
    from ...train.options import choose

    trial.study.sampler = optuna.samplers.TPESampler(seed=trial.number)  # processes draw different options
    own, figure, made = folder / _name(trial.number), trial.study.user_attrs["figure"], itertools.count(1)
    options = sweep.options({name: _suggested(trial, name, value) for name, value in sweep.vary.items()})
    console.say(f"{own}: {', '.join(f'{name} {_plain(value)}' for name, value in trial.params.items())}")

    def prune(point: Mapping[str, Any]) -> None:
        at = next(made)
        if point.get(figure) is not None:
            trial.report(point[figure], at)
            if trial.should_prune():
                raise optuna.TrialPruned

    try:
        report = runs.start(choose(sweep.model, **options, out=str(own)), prune)
        values = [point[figure] for point in report["curve"] if point.get(figure) is not None]
        if not values:
            raise FloatingPointError(f"{figure} is not a number")
    except FAILURES as error:
        console.note(f"{own} failed: {error}")
        trial.set_user_attr("failed", str(error))
        raise
    best = min if trial.study.direction.name == "MINIMIZE" else max
    return float(best(values) if options.get("patience") else values[-1])


def _suggested(trial: Any, name: str, value: Any) -> Any:
    """Returns a value that Optuna draws; a whole number if both ends are."""
    if isinstance(value, list):
        return trial.suggest_categorical(name, value)
    low, high = value["from"], value["to"]
    suggest = trial.suggest_int if {type(low), type(high)} == {int} else trial.suggest_float
    return suggest(name, low, high, log=value.get("log", False))


def _table(study: Any, sweep: Sweep) -> str:
    """Returns a table of finished trials, best first, followed by pruned and failed ones."""
    figure, sign = study.user_attrs["figure"], 1 if study.direction.name == "MINIMIZE" else -1
    rows = [["trial", *sweep.vary, figure, "points", "end"]]
    for trial in sorted(_counted(study), key=lambda one: (one.value is None, sign * (one.value or 0.0))):
        figures = ["" if value is None else _plain(value) for value in [*trial.params.values(), trial.value]]
        end = trial.user_attrs.get("failed", trial.state.name.lower())
        rows.append([_name(trial.number), *figures, str(len(trial.intermediate_values)), end])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    lines = (" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"| {line} |\n" for line in lines)


def _name(number: int) -> str:
    return f"trial-{number + 1:03}"


def _plain(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
