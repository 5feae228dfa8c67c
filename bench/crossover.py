"""The crossover map: a training step of every output layer, alone and with a trunk, over classes, widths, batches and threads.

Only records come of it; `bench/sections/crossover.py` says who wins where. A step is one batch:
B examples with targets by Zipf's law, the gradient that goes back to their hidden vectors, and the update.
"""

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bench import crossover_points
from bench.crossover_points import WORKS, Point
from bench.measure import LEAST, append, measure
from bench.peers import peer
from hybrid.machine import memory

UNKNOWN = 8e9  # bytes that a machine is taken to have which does not say


class Contest(NamedTuple):
    """Rivals who take turns; seconds: how long that takes, about; records: does it."""

    title: str
    seconds: float
    records: Callable[[], list[dict]]


def run(arguments) -> int:
    """Every contest, small ones first; --only: these works and contenders."""
    known = [*WORKS, *dict.fromkeys(one for many in WORKS.values() for one in many)]
    if strays := sorted(set(arguments.only or ()) - set(known)):
        print(f"--only: found {strays[0]!r}, expected some of {', '.join(known)}")
        return 2
    failed = hold([*contests(arguments)], arguments.json)
    if failed:
        print(f"{len(failed)} contests were not timed, since a result was wrong: {'; '.join(failed)}")
    return int(bool(failed))


def hold(todo: Sequence[Contest], path: str | None) -> list[str]:
    """One contest after another; records are kept as soon as they are there. Returns those of a wrong result."""
    failed = []
    left, begun = sum(one.seconds for one in todo), time.perf_counter()
    print(f"crossover: {len(todo)} contests, about {left / 60:.0f} min", flush=True)
    for number, contest in enumerate(todo, 1):
        try:
            found = contest.records()
        except AssertionError as error:
            print(f"\nnot timed: {contest.title}: {error}", flush=True)
            failed.append(contest.title)
            found = []
        append(path, found)
        left -= contest.seconds
        spent = time.perf_counter() - begun
        print(
            f"\n{number} of {len(todo)}: {contest.title}; {spent:.0f} s, about {left:.0f} s left",
            *lines(found),
            sep="\n",
        )
    print(f"\nafter {time.perf_counter() - begun:.0f} s", flush=True)
    return failed


def contests(arguments) -> Iterator[Contest]:
    """All that are to be held; says who is left out."""
    available = float(memory() or UNKNOWN)
    repeat = arguments.repeat if arguments.quick else min(arguments.repeat, LEAST)
    for point in crossover_points.points(arguments.quick, arguments.threads):
        wanted = chosen(point, arguments.only or ())
        for one in list(wanted):
            if reason := crossover_points.left_out(one, point, available):
                wanted.remove(one)
                print(f"left out: {one} at {title(point)}: {reason}")
        for rivals in crossover_points.contests(point, wanted, available) if wanted else ():
            yield Contest(
                title(point),
                crossover_points.duration(point, rivals),
                functools.partial(held, point, rivals, repeat, arguments.quick),
            )


def chosen(point: Point, only: Sequence[str]) -> list[str]:
    """The contenders that are wanted at a point: all, or those that are named, of the works that are named."""
    works, contenders = set(only) & set(WORKS), set(only) - set(WORKS)
    if works and point.work not in works:
        return []
    there = [one for one in WORKS[point.work] if not one.startswith("torch") or peer("torch")]
    return [one for one in there if not contenders or one in contenders]


def held(point: Point, rivals: list[str], repeat: int, quick: bool) -> list[dict]:
    """The records of a contest."""
    from bench.crossover_rivals import works

    return measure(works(point, rivals, quick), repeat)


def title(point: Point) -> str:
    """A point in words."""
    V, d, B = point.size
    layer = {"output": "the output layer alone", "step": "trunk and output layer"}[point.work]
    return f"{layer}, V {V:,}, d {d}, B {B:,}, {point.threads} threads"


def lines(records: list[dict]) -> Iterator[str]:
    """A contest, the fastest first."""
    for one in sorted(records, key=lambda record: -record["value"]):
        step = 1e3 * one["params"]["batch"] / one["value"]
        spread = f"+-{one['spread'] / 2:.0%}"
        yield f"  {one['contender']:<22} {one['value']:>12.4g} examples/s  {step:>10.4g} ms a step  {spread}"
