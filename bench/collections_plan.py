"""Which collections are measured, beside whom: as far as memory and minutes go, predicted by bytes."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bench import units_jax, units_torch
from bench.measure import Work
from bench.peers import peer
from bench.units_problem import SIZES, Problem, ours
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
            found.append(Rival(f"torch {kind}", partial(units_torch.rival, kind=kind), held, passes, begin))
    if units_jax.available():
        found.append(Rival("jax vmap", units_jax.rival, 8, begin=2))
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
