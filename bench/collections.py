"""Collections of 10 M to 1 G parameters, beside PyTorch and JAX.

Units are 150-49-150, as those of Piekniewski's video model, whose figure on a GPU is told beside ours. Rivals take turns, so
all of a case lie in memory together: whom memory does not hold is left out by name, and so is a case for which there is no
time.
"""

import statistics
from typing import Any

from bench.ceilings import bandwidth
from bench.collections_plan import Case, free_memory, plan
from bench.measure import Work, append, measure, show
from bench.units_problem import Problem

STEP = "collections.step"
UNITS = (671, 6712, 14_161, 67_119)  # 10 M, 100 M, 210,984,739 (Piekniewski's), 1 G parameters
BATCHES, MOMENTA = (1, 8, 16), (0.0, 0.9)
MINUTES = 10  # of the full size, as predicted; cases beyond it are left out
WARM = 2  # runs of a rival before its turns, the first of which is checked


def run(arguments) -> None:
    """Every collection."""
    import numba

    numba.set_num_threads(arguments.threads)
    passing = bandwidth(64 if arguments.quick else 512, arguments.threads)
    runs = WARM + 1 + 2 * arguments.repeat  # turns are often taken again
    cases = [Case(*one) for one in _sizes(arguments.quick)]
    planned, left_out, seconds = plan(cases, free_memory(), runs, passing.amount / passing.run(), 60 * MINUTES)
    print(f"about {seconds / 60:.1f} minutes for {len(planned)} collections, predicted by bytes", flush=True)
    for text in left_out:
        print(f"left out: {text}")
    for case, kept, without in planned:
        problem = Problem(*case, name=STEP)
        works = [one.make(problem, arguments.threads) for one in kept]
        records = _measured(problem, works, passing, arguments.repeat)
        records[0]["left_out"] = [*without, *left_out]
        left_out = []  # told once
        _tell(arguments.json, records)
        for text in without:
            print(f"  left out: {text}")
        del problem, works


def _sizes(quick: bool) -> list[tuple[int, int, float]]:
    """Units, batch, momentum: what is left out for time comes last."""
    if quick:
        return [(144, 1, 0.0), (144, 8, 0.9)]
    return [(units, batch, momentum) for batch in BATCHES for units in UNITS for momentum in MOMENTA]


def _measured(problem: Problem, works: list[Work], passing: Work, repeat: int) -> list[dict[str, Any]]:
    """The records of the works, each with its share of the bandwidth of the same turns."""
    passing.samples = []
    _, *records = measure([passing, *works], repeat)
    reached = passing.amount / statistics.median(passing.samples)
    for work, record in zip(works, records, strict=True):
        turns = zip(work.samples, passing.samples, strict=True)
        record["bandwidth_share"] = statistics.median(
            problem.moved / own * other / passing.amount for own, other in turns
        )
        record["bytes_least"] = problem.moved / problem.parameters
        record["bytes_spent"] = reached / record["value"]  # that memory could have moved meanwhile, a parameter
        record["bandwidth"], record["parameters"] = reached, problem.parameters
    return records


def _tell(path: str | None, records: list[dict[str, Any]]) -> None:
    show(records)
    for record in records:
        print(
            f"    {record['who']}: {record['bytes_spent']:.0f} bytes of bandwidth a parameter, of which it needs "
            f"{record['bytes_least']:.0f}"
        )
    append(path, records)
