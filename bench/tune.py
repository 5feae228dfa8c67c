"""Defaults of models by a recorded search: settings drawn at random, the best again with more seeds, the first tested."""

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bench.draws import DRAWN, Space, drawn
from bench.measure import append, commit, environment
from bench.tuning import PROBLEMS, Figures, Problem, Trained
from hybrid.train.options import choose

COUNTS = True  # and times nothing: it runs beside other work
TRIES = 24  # of each readout, the defaults of the time among them
FINALISTS = 3  # of them learn with the other seeds too
SEEDS = (0, 1, 2)
NEEDED = {"language": {"text": "-"}, "factors": {"ratings": "-"}, "words": {"text": "-"}}  # to ask for the defaults


class Budget(NamedTuple):
    """What each readout of each model may take.

    tries    settings at most
    seconds  after which no other settings are begun
    """

    tries: int
    seconds: float
    finalists: int = FINALISTS
    seeds: Sequence[int] = SEEDS


class Tried(NamedTuple):
    """Settings, and a model trained with them for each seed so far."""

    settings: dict[str, Any]
    trained: list[Trained]


def run(arguments) -> int:
    """Search for every model whose data are there, or those that --only names; --tries, --seconds for each readout."""
    budget = Budget(arguments.tries or TRIES, arguments.seconds or math.inf)
    if arguments.quick:
        budget = Budget(arguments.tries or 2, budget.seconds, 1, SEEDS[:1])
    names = arguments.only or list(PROBLEMS)
    if strays := sorted(set(names) - set(PROBLEMS)):
        print(f"--only: found {strays[0]!r}, expected one of {', '.join(PROBLEMS)}")
        return 2
    for name in names:
        problem = PROBLEMS[name](arguments)
        if not problem:
            continue
        for readout, options in problem.readouts.items():
            settings = candidates(name, options, problem.space(readout), budget.tries)
            for record in search(name, problem, readout, settings, budget):
                append(arguments.json, [record | {"threads": arguments.threads}])
        append(arguments.json, problem.beside())
    return 0


def candidates(model: str, options: dict[str, Any], space: Space, tries: int) -> list[dict[str, Any]]:
    """The defaults of a model under a readout, and others drawn: of those settings that both take."""
    defaults = choose(model, **NEEDED[model], **options)
    taken = {name: draw for name, draw in space.items() if name in defaults}
    return [{name: defaults[name] for name in taken}, *(drawn(taken, number) for number in range(1, tries))]


def search(
    model: str, problem: Problem, readout: str, settings: Sequence[dict[str, Any]], budget: Budget
) -> Iterator[dict[str, Any]]:
    """A record of all settings as they are tried, of the finalists with all seeds, and of the test of the best."""
    start, tried = time.perf_counter(), list[Tried]()

    def record(work: str, one: Tried, figures: list[Figures]) -> dict[str, Any]:
        spent = {"tries": len(tried), "seconds": round(time.perf_counter() - start, 1), "drawn": DRAWN}
        return _record(f"{model}.{work}", problem.data, readout, one.settings, budget.seeds, figures) | {
            "budget": spent
        }

    for candidate in settings:
        if tried and time.perf_counter() - start > budget.seconds:
            break
        one = Tried(candidate, [problem.trial(readout, candidate, budget.seeds[0])])
        tried.append(one)
        print(f"{model}, {readout} {len(tried)}/{len(settings)}  {one.trained[0].valid}  {one.settings}", flush=True)
        yield record("search", one, [one.trained[0].valid])
    finalists = sorted(tried, key=lambda one: merit(problem, one))[: budget.finalists]
    for one in finalists:
        one.trained.extend(problem.trial(readout, one.settings, seed) for seed in budget.seeds[1:])
        yield record("tuned", one, [trained.valid for trained in one.trained])
    best = min(finalists, key=lambda one: merit(problem, one))
    last = record("test", best, [trained.test() for trained in best.trained])
    print(f"{model}, {readout}: {best.settings}  {last['quality']}", flush=True)
    yield last


def merit(problem: Problem, tried: Tried) -> float:
    """Less is better: the mean over seeds of the figure that decides; settings that diverged once come last."""
    sign = 1 if problem.judged.lowest else -1
    values = [trained.valid.get(problem.judged.name, math.inf * sign) for trained in tried.trained]
    return sign * statistics.mean(values)


def _record(
    work: str, data: str, readout: str, params: dict[str, Any], seeds: Sequence[int], found: list[Figures]
) -> dict[str, Any]:
    names = dict.fromkeys(name for figures in found for name in figures)
    return {
        "bench": "tune",
        "work": work,
        "who": readout,
        "params": params,
        "data": data,
        "seeds": list(seeds[: len(found)]),
        "quality": {name: [figures[name] for figures in found if name in figures] for name in names},
        "diverged": sum(not figures for figures in found),
        "device": "cpu",
        "commit": commit(),
        "env": environment(),
    }
