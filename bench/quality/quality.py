"""Contenders at a problem, tuned by one search: figures at equal epochs and equal seconds (docs/results/benchmarks.md)."""

import functools
import importlib
import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.harness.measure import append, made_by
from bench.quality.contender import Contender, Figures, Problem, Run, Train, drawn
from hybrid.train.job import Watched

Record = dict[str, Any]
PROBLEMS = {  # modules with a function make_NAME(arguments), which returns a Problem, or None if its data are missing
    "documentation": "language",
    "labels": "labels",
    "yeast": "labels",
}
ONLY = tuple(PROBLEMS)
OURS = ("", "bench", "cpu", "gpu", "hybrid")  # a missing module of these packages is an error
SAME = ("work", "who", "params", "run", "data", "threads")  # fields that identify a training


class Book:
    """The records of a file of JSON lines, to which new ones are appended; without a file they stay in memory."""

    def __init__(self, path: str | None, threads: int):
        self.path, self.threads = path, threads
        self.made_by = made_by(threads)
        lines = Path(path).read_text().splitlines() if path and Path(path).exists() else []
        self.records: list[Record] = [one for one in map(json.loads, lines) if one.get("bench") == "quality"]

    def having(self, **wanted: Any) -> list[Record]:
        """Returns the records with these values and this number of threads."""
        return [one for one in self.records if one.items() >= (wanted | {"threads": self.threads}).items()]

    def once(
        self,
        work: str,
        who: str,
        data: str,
        params: Mapping[str, Any],
        run: Mapping[str, Any],
        train: Callable[[], Run],
        *,
        judged: Watched,
        test: bool,
    ) -> Record:
        """Returns the record of a training; trains if there is none.

        params  its settings
        run     its seed and length
        judged  the deciding figure on validation data
        test    True: measures test data too
        """
        record: Record = {"bench": "quality", "work": work, "who": who, "params": dict(params), "run": dict(run)}
        record |= {"data": data, "threads": self.threads, "judged": judged.name, "lowest": judged.lowest}
        found = next((one for one in self.records if _same(one, record)), None)
        if found is None:
            found = record | _measured(train(), test) | self.made_by
            self.records.append(found)
            append(self.path, [found])
            if test:  # a search prints its own results
                print(_line(found), flush=True)
        return found


def _same(one: Record, other: Record) -> bool:
    """True if two records are of the same training; compared as JSON text."""
    return all(json.dumps(one[name], sort_keys=True) == json.dumps(other[name], sort_keys=True) for name in SAME)


def _measured(run: Run, test: bool) -> Record:
    valid = run.valid()
    tested: Figures = run.test() if test else {}
    return {
        "valid": valid,
        "test": tested,
        "diverged": not valid,
        "epochs": run.epochs,
        "seconds": run.seconds,
        "examples": run.examples,
        "parameters": run.parameters,
        "memory": run.memory,
    }


def _line(record: Record) -> str:
    figures = ", ".join(
        f"{part} {name} {value:.4g}" for part in ("valid", "test") for name, value in record[part].items()
    )
    length = f"{record['epochs']:.3g} epochs, {record['seconds']:.1f} s"
    return f"{record['work']}, {record['who']}, {record['run']}: {length}: {figures or 'diverged'}"


TRIES, SEARCH_SEEDS = 12, 3
FINALISTS = 3  # settings that a search repeats with more seeds
SHARE = 0.1  # default budget of a search training, as a part of the longest training
PROBE, PROBED = 0.02, 2.0  # epochs and minimum seconds of a training that measures the speed


class Plan(NamedTuple):
    """The sizes of a comparison.

    epochs, seconds  lengths to compare at
    seeds            of each length
    tries            number of settings per contender
    budget           maximum seconds of a search training
    """

    epochs: Sequence[float]
    seconds: Sequence[float]
    seeds: Sequence[int]
    tries: int
    budget: float


def run(arguments) -> int:
    """Compares contenders, or those of --readouts, at every problem with data, or those of --only; returns the exit code."""
    book = Book(arguments.json, arguments.threads)
    for name in arguments.only or PROBLEMS:
        problem = load(name, arguments)
        if problem is None:
            continue
        if code := compare_all(name, problem, arguments, book):
            return code
    return 0


def compare_all(name: str, problem: Problem, arguments: Any, book: Book) -> int:
    """Compares the contenders of a problem, or those of --readouts; returns the exit code."""
    asked = arguments.readouts or list(problem.contenders)
    if strays := sorted(set(asked) - set(problem.contenders)):
        print(f"--readouts: found {strays[0]!r}, expected some of {', '.join(problem.contenders)}")
        return 2
    plan = planned(arguments, problem)
    for who in asked:
        compare(name, problem, who, plan, book)
    return 0


def load(name: str, arguments: Any) -> Problem | None:
    """Returns a problem; None, with a printed reason, if its data or a contender's library are missing.

    Problems read threads, quick, and their own options from the arguments.
    """
    try:
        module = importlib.import_module(f"bench.quality.{PROBLEMS[name]}")
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] in OURS:
            raise
        print(f"{name} is not measured: {missing}; pip install 'hybrid-engine[bench]'", flush=True)
        return None
    return getattr(module, f"make_{name}")(arguments)


def planned(arguments, problem: Problem) -> Plan:
    """Returns the sizes in the arguments, else those of the problem; --quick: one short training of each kind."""
    if arguments.quick:
        return Plan((PROBE,), problem.seconds[:1] and (1,), problem.seeds[:1], arguments.tries or 2, math.inf)
    epochs, seconds = arguments.epochs or problem.epochs, arguments.seconds or problem.seconds
    return Plan(
        epochs, seconds, problem.seeds[: arguments.seeds], arguments.tries or TRIES, arguments.budget or math.inf
    )


def compare(name: str, problem: Problem, who: str, plan: Plan, book: Book) -> None:
    """Searches the settings of a contender, then trains it at every length with every seed."""
    contender = problem.contenders[who]

    def trained(length: dict[str, float], seed: int, epochs: float) -> Record:
        return book.once(
            f"{name}.{next(iter(length))}",
            who,
            problem.data,
            settings,
            length | {"seed": seed},
            lambda: contender.train(settings, seed, epochs),
            judged=problem.judged,
            test=True,
        )

    if contender.once:
        settings = dict(contender.first)
        trained({"epochs": 1}, plan.seeds[0], 1)
        return
    settings = dict(searched(name, problem, who, plan, book))
    for epochs in plan.epochs:
        for seed in plan.seeds:
            trained({"epochs": epochs}, seed, epochs)
    before = math.nan
    for seconds in sorted(plan.seconds):
        pace = _pace(contender.train, settings, book.having(who=who, data=problem.data, params=settings))
        merit = _merit(problem, [trained({"seconds": seconds}, seed, seconds * pace) for seed in plan.seeds])
        if merit > before:
            print(f"{name}, {who}: worse after {seconds} s than before; no longer training is tried", flush=True)
            break
        before = merit


def searched(name: str, problem: Problem, who: str, plan: Plan, book: Book) -> dict[str, Any]:
    """Returns the best settings on validation data: all run with the first seed, finalists with more. It reads no test data."""
    contender = problem.contenders[who]
    if not contender.space:
        return dict(contender.first)
    data, train, work = problem.small or problem.data, contender.small or contender.train, f"{name}.search"
    epochs = _length(contender, train, plan, book.having(work=work, who=who, data=data))

    def tried(settings: dict[str, Any], seed: int) -> Record:
        length = {"epochs": epochs, "seed": seed}
        learn = functools.partial(train, settings, seed, epochs)
        return book.once(work, who, data, settings, length, learn, judged=problem.judged, test=False)

    first, *others = plan.seeds[:SEARCH_SEEDS]
    found = []
    for settings in [dict(contender.first), *(drawn(contender.space, number) for number in range(1, plan.tries))]:
        found.append((settings, [tried(settings, first)]))
        print(f"{name}, {who} {len(found)}/{plan.tries}  {found[-1][1][0]['valid']}  {settings}", flush=True)
    found = sorted(found, key=lambda one: _merit(problem, one[1]))[:FINALISTS]
    for settings, records in found:
        records.extend(tried(settings, seed) for seed in others)
    return min(found, key=lambda one: _merit(problem, one[1]))[0]


def _length(contender: Contender, train: Train, plan: Plan, records: list[Record]) -> float:
    """Returns the epochs of a search training that fit into its budget of seconds, measured once."""
    if records:
        return records[0]["run"]["epochs"]
    most = max(plan.epochs, default=math.inf)
    budget = min(plan.budget, math.inf if plan.epochs else SHARE * max(plan.seconds))
    if budget == math.inf:
        return most
    return min(most, float(f"{budget * _pace(train, contender.first, []):.3g}"))


def _pace(train: Train, settings: Any, records: list[Record]) -> float:
    """Returns epochs per second of the longest recorded training, where start-up counts least, else of a short one."""
    if records:
        longest = max(records, key=lambda one: one["epochs"])
        return longest["epochs"] / longest["seconds"]
    probe: Run = train(settings, 0, PROBE)
    if probe.seconds < PROBED:
        probe = train(settings, 0, PROBE * PROBED / probe.seconds)
    return probe.epochs / probe.seconds


def _merit(problem: Problem, records: list[Record]) -> float:
    """Returns the mean of the deciding figure over seeds, signed so that less is better; infinite if one diverged."""
    sign, name = (1 if problem.judged.lowest else -1), problem.judged.name
    return statistics.mean(sign * one["valid"].get(name, sign * math.inf) for one in records)
