"""Collections of 10 M to 1 G parameters, beside PyTorch and JAX.

Units are 150-49-150, as those of Piekniewski's video model, whose figure on a GPU is told beside ours. Rivals take turns, so
all of a case lie in memory together: whom memory does not hold is left out by name, and so is a case for which there is no
time.
"""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from bench.harness.measure import Work, append, measure, peer, show
from bench.step.units import SIZES, Problem, bandwidth, equal, jax_available, jax_rival, ours, torch_rival
from hybrid.machine import memory

TORCH = {"bmm": ((35, 8), 0), "autograd": ((200, 20), 0), "compile": ((80, 8), 30)}  # passes and begin, see Rival
SLOW_AT = 14_161  # units: the one size of the slow ones: autograd, and compiling, which takes longer than all its steps


class Rival(NamedTuple):
    """Whom a case measures.

    held    bytes a parameter that lie in memory without momentum, of which 4 more with it
    passes  what memory could have moved while a parameter takes its step, in bytes: without an example, and for each of them.
            Roughly, from earlier records; it predicts how long all takes and nothing else
    begin   seconds before its first step
    """

    name: str
    make: Callable[[Problem, int], Work]
    held: int
    passes: tuple[float, float] = (35, 8)
    begin: float = 0


def rivals(units: int) -> list[Rival]:
    """Ours, and the peers that are installed, those that need least memory first."""
    found = [Rival("ours", ours, 4, (9, 1.5))]
    if peer("torch"):
        kinds = {"bmm": 4} | ({"autograd": 8, "compile": 4} if units == SLOW_AT else {})
        for kind, held in sorted(kinds.items(), key=lambda one: one[1]):
            passes, begin = TORCH[kind]
            found.append(Rival(f"torch {kind}", partial(torch_rival, kind=kind), held, passes, begin))
    if jax_available():
        found.append(Rival("jax vmap", jax_rival, 8, begin=2))
    return found


class Case(NamedTuple):
    """A collection, a batch, with or without momentum."""

    units: int
    batch: int
    momentum: float

    @property
    def parameters(self) -> int:
        n, h, o = SIZES
        return self.units * (h * (n + 1) + o * (h + 1))

    @property
    def name(self) -> str:
        return f"{self.parameters:,} parameters, batch {self.batch}, momentum {self.momentum:g}"

    def bytes(self, rival: Rival) -> int:
        """What a rival holds: weights, velocities, gradients, and signals and their gradients."""
        n, h, o = SIZES
        return (rival.held + 4 * bool(self.momentum)) * self.parameters + 4 * self.batch * self.units * (
            n + 2 * h + 4 * o
        )

    def seconds(self, rivals: list[Rival], runs: int, bandwidth: float) -> float:
        """Roughly what it takes, by bytes: each rival's steps, and 20 bytes a parameter to draw its weights."""
        passed = (
            runs * (1 + bool(self.momentum)) * (one.passes[0] + one.passes[1] * self.batch) + 20 for one in rivals
        )
        return sum(passed) * self.parameters / bandwidth + sum(one.begin for one in rivals)


class Planned(NamedTuple):
    """A case with those whom memory holds, and who is left out, with the reason."""

    case: Case
    rivals: list[Rival]
    left_out: list[str]


def plan(
    cases: list[Case], room: int, runs: int, bandwidth: float, seconds: float
) -> tuple[list[Planned], list[str], float]:
    """What is measured, in order; which cases are not, with the reasons; the seconds predicted."""
    planned, left_out, total = [], [], 0.0
    for case in cases:
        taken, kept, without = 4 * case.parameters, [], []  # a copy of the weights, while they are laid out for a rival
        for one in rivals(case.units):
            needed = case.bytes(one)
            if taken + needed > room:
                without.append(f"{one.name} at {case.name}: {_gib(taken + needed)} needed, {_gib(room)} free")
                continue
            taken += needed
            kept.append(one)
        spent = case.seconds(kept, runs, bandwidth)
        if not kept or kept[0].name != "ours":
            left_out.append(f"{case.name}: memory does not hold it ({_gib(room)} free)")
        elif total + spent > seconds:
            left_out.append(
                f"{case.name}: about {spent / 60:.1f} minutes, beyond the {seconds / 60:.0f} of this benchmark"
            )
        else:
            total += spent
            planned.append(Planned(case, kept, without))
    return planned, left_out, total


def free_memory() -> int:
    """Bytes of memory that a program may take; where the system does not say, half of the machine's."""
    try:
        with open("/proc/meminfo") as lines:
            return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return (memory() or 1 << 33) // 2


def _gib(count: float) -> str:
    return f"{count / 2**30:.1f} GiB"


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
        problem = Problem(equal(case.units), case.batch, case.momentum, STEP)
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
        record["bandwidth_share"] = problem.share(work, passing)
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
