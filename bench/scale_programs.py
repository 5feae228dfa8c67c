"""What ranks do in a tick, as programs of bench/scale_simulation.py: a PVM, and a language model that learns data parallel.

Seconds come from curves of measured points; bytes are counted.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bench.ranks_cut import Cut
from bench.scale_simulation import Compute, Program, Start, Wait

NUMBER = 4  # bytes


class Curve(NamedTuple):
    """Seconds of amounts of work, measured, amounts ascending."""

    amounts: tuple[float, ...]
    seconds: tuple[float, ...]

    def at(self, amount: float) -> float:
        """Between two points by a power of the amount; beyond the last in proportion; below the first what that takes."""
        if amount <= 0:
            return 0.0
        if amount >= self.amounts[-1]:
            return self.seconds[-1] * amount / self.amounts[-1]
        return float(np.exp(np.interp(np.log(amount), np.log(self.amounts), np.log(self.seconds))))

    def part(self, amount: float, whole: float) -> float:
        """Seconds of a part of some work: it has calls of its own, and no more of the caches than the whole leaves it."""
        return max(self.at(amount), self.at(whole) * amount / whole) if amount else 0.0


def pvm(cut: Cut, compute: Curve, beside: float, crowd: float = 1.0) -> list[Program]:
    """Units that others read first, then the others beside the exchange; then all get the errors of all units.

    compute  seconds of a rank by the weights that it visits
    beside   seconds that each rank takes for other things: the whole frame, what Python does
    crowd    ranks that share a core

    ValueError for a number of ranks that is no power of two.
    """
    ranks = len(cut.sends)
    far, own = _doubling(ranks), cut.errors / ranks
    programs: list[Program] = []
    for rank, (shared, interior) in enumerate(zip(cut.shared.tolist(), cut.interior.tolist(), strict=True)):
        first, rest = (crowd * compute.part(one, shared + interior) for one in (shared, interior))
        steps: list[Compute | Start | Wait] = [Compute("beside", crowd * beside), Compute("shared", first)]
        steps += [Start("halo", cut.sends[rank]), Compute("interior", rest), Wait("halo")]
        programs.append(steps + _passed("errors", rank, [(k, own * 2**k) for k in far]))
    return programs


class Language(NamedTuple):
    """A language model that learns data parallel: replicas of the trunk, rows by id, a tree whose nodes have owners.

    dense    seconds by examples, of trunk and rows, and what is in no stage: {"gather", "forward", "backward", "update",
             "scatter", "rest"}
    tree     seconds of a step of the tree by examples, all nodes
    largest  the largest owner's share of the tree's visits, by ranks; no less than the root's
    width    numbers of a hidden vector, which all owners get, and whose gradients all owners add to
    inputs   numbers of an example's rows, which come from their owners, and whose gradients go there
    trunk    parameters of the trunk, whose gradients are summed
    """

    dense: Mapping[str, Curve]
    tree: Curve
    largest: Mapping[int, float]
    width: int
    inputs: int
    trunk: int


def language(model: Language, ranks: int, batch: int, crowd: float = 1.0, chain: bool = True) -> list[Program]:
    """A step of `batch` examples in all, on a power of two of ranks. What passes between them goes by recursive doubling.

    chain  False: as if the tree's visits could be shared evenly
    """
    far, own = _doubling(ranks), batch / ranks
    took = {name: crowd * curve.at(own) for name, curve in model.dense.items()}
    tree, top = crowd * model.tree.at(batch), max(model.largest[ranks], 1 / ranks) if chain else 1 / ranks
    rows, vectors = own * model.inputs * NUMBER, own * model.width * NUMBER
    moved = [(k, rows / 2) for k in far]
    doubling = [(k, vectors * 2**k) for k in far]
    sums = [(k, model.trunk * NUMBER / 2 ** (k + 1)) for k in far]
    sums += sums[::-1]  # each has a part of the sum; then all have all of it
    programs: list[Program] = []
    for rank in range(ranks):
        share = top if rank == 0 else (1 - top) / (ranks - 1)
        program = [Compute("gather", took["gather"]), *_passed("rows", rank, moved)]
        program += [Compute("forward", took["forward"]), *_passed("hidden", rank, doubling)]
        program += [Compute("tree", tree * share), *_passed("gradients", rank, doubling[::-1])]
        half = took["backward"] / 2  # in which the gradient of the last layers is there
        program += [Compute("backward", half), *_passed("sum", rank, sums, Compute("backward", half))]
        program += [Compute("update", took["update"]), *_passed("row gradients", rank, moved)]
        programs.append([*program, Compute("scatter", took["scatter"]), Compute("rest", took["rest"])])
    return programs


def _doubling(ranks: int) -> range:
    """The rounds of recursive doubling: a rank's partner in round k is 2^k places away."""
    if ranks & (ranks - 1):
        raise ValueError(f"ranks: found {ranks}, expected a power of two")
    return range(ranks.bit_length() - 1)


def _passed(
    name: str, rank: int, rounds: list[tuple[int, float]], beside: Compute | None = None
) -> list[Compute | Start | Wait]:
    """Rounds (k, bytes) in which a rank and the one 2^k places away exchange bytes, beside some of its work, if any."""
    steps: list[Compute | Start | Wait] = []
    for number, (k, size) in enumerate(rounds):
        steps.append(Start(f"{name} {number}", {rank ^ (1 << k): size}))
        if beside:
            steps.append(beside._replace(seconds=beside.seconds / len(rounds)))
        steps.append(Wait(f"{name} {number}"))
    return steps or ([beside] if beside else [])
