"""Collections of 10 M to 1 G parameters, compared with PyTorch and JAX.

Units are 150-49-150, as in Piekniewski's video model, whose GPU figure is shown for comparison. Rivals take turns, so all of a
case are in memory together. Rivals that do not fit in memory, and cases beyond the time limit, are left out with a message.
"""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from bench.harness.measure import Work, append, measure, peer, show
from bench.step.units import SIZES, Problem, bandwidth, equal, jax_available, jax_rival, ours, torch_rival
from hybrid.machine import memory

TORCH = {"bmm": ((35, 8), 0), "autograd": ((200, 20), 0), "compile": ((80, 8), 30)}  # passes and begin, see Rival
SLOW_AT = 14_161  # units: the only size of the slow rivals, autograd and compile, whose compilation exceeds its steps


class Rival(NamedTuple):
    """A rival of a case.

    held    bytes of memory per parameter without momentum, which adds 4
    passes  bytes that memory could have moved per parameter of a step: without examples, and per example. A rough estimate from
            earlier records, used only to predict the run time
    begin   seconds before its first step
    """

    name: str
    make: Callable[[Problem, int], Work]
    held: int
    passes: tuple[float, float] = (35, 8)
    begin: float = 0


def rivals(units: int) -> list[Rival]:
    """Returns ours and the installed peers, by ascending memory."""
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
        """Returns the bytes of a rival: weights, velocities, gradients, and signals and their gradients."""
        n, h, o = SIZES
        return (rival.held + 4 * bool(self.momentum)) * self.parameters + 4 * self.batch * self.units * (
            n + 2 * h + 4 * o
        )

    def seconds(self, rivals: list[Rival], runs: int, bandwidth: float) -> float:
        """Estimates the run time by bytes: each rival's steps, and 20 bytes a parameter to draw its weights."""
        passed = (
            runs * (1 + bool(self.momentum)) * (one.passes[0] + one.passes[1] * self.batch) + 20 for one in rivals
        )
        return sum(passed) * self.parameters / bandwidth + sum(one.begin for one in rivals)


class Planned(NamedTuple):
    """A case with the rivals that fit in memory, and those left out, with the reason."""

    case: Case
    rivals: list[Rival]
    left_out: list[str]


def plan(
    cases: list[Case], room: int, runs: int, bandwidth: float, seconds: float
) -> tuple[list[Planned], list[str], float]:
    """Returns the cases to measure, in order; the cases left out, with the reasons; the predicted seconds."""
    planned, left_out, total = [], [], 0.0
    for case in cases:
        taken, kept, without = 4 * case.parameters, [], []  # a copy of the weights, during conversion for a rival
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
    """Returns the bytes of available memory; half of the machine's if the system does not report it."""
    try:
        with open("/proc/meminfo") as lines:
            return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return memory() // 2


def _gib(count: float) -> str:
    return f"{count / 2**30:.1f} GiB"


STEP = "collections.step"
UNITS = (671, 6712, 14_161, 67_119)  # 10 M, 100 M, 210,984,739 (Piekniewski's), 1 G parameters
BATCHES, MOMENTA = (1, 8, 16), (0.0, 0.9)
MINUTES = 10  # maximum predicted for the full size; cases beyond it are left out
WARM = 2  # runs of a rival before its turns, the first of which is checked


def run(arguments) -> None:
    """Measures every collection."""
    import numba

    numba.set_num_threads(arguments.threads)
    passing = bandwidth(64 if arguments.quick else 512, arguments.threads)
    runs = WARM + 1 + 2 * arguments.repeat  # turns are often repeated
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
        left_out = []  # reported once
        _tell(arguments.json, records)
        for text in without:
            print(f"  left out: {text}")
        del problem, works


def _sizes(quick: bool) -> list[tuple[int, int, float]]:
    """Returns units, batch, momentum; the cases that the time limit drops first come last."""
    if quick:
        return [(144, 1, 0.0), (144, 8, 0.9)]
    return [(units, batch, momentum) for batch in BATCHES for units in UNITS for momentum in MOMENTA]


def _measured(problem: Problem, works: list[Work], passing: Work, repeat: int) -> list[dict[str, Any]]:
    """Returns the records of the works, each with its share of the bandwidth of the same turns."""
    passing.samples = []
    _, *records = measure([passing, *works], repeat)
    reached = passing.amount / statistics.median(passing.samples)
    for work, record in zip(works, records, strict=True):
        record["bandwidth_share"] = problem.share(work, passing)
        record["bytes_least"] = problem.moved / problem.parameters
        record["bytes_spent"] = reached / record["value"]  # potential memory traffic a parameter
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
