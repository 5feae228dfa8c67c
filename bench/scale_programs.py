"""What ranks do in a tick, as programs of bench/scale_simulation.py: a PVM, and a language model that learns data parallel.

Seconds come from curves of measured points; bytes are counted.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bench.ranks_cut import Cut
from bench.scale_simulation import Compute, Meet, Program, Start, Wait

NUMBER = 4  # bytes
MICRO_BATCHES = 4  # of a step of a language model, where it is on no more ranks


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

    def times(self, factor: float) -> "Curve":
        """Of work that takes so many times the seconds."""
        return Curve(self.amounts, tuple(factor * one for one in self.seconds))


def seconds(program: Program, *names: str) -> float:
    """That a program computes under these names."""
    return sum(step.seconds for step in program if isinstance(step, Compute) and step.name in names)


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
        steps: list[Compute | Start | Wait | Meet] = [Compute("beside", crowd * beside), Compute("shared", first)]
        steps += [Start("halo", cut.sends[rank]), Compute("interior", rest), Wait("halo")]
        programs.append(steps + _passed("errors", rank, [(k, own * 2**k) for k in far]))
    return programs


class Language(NamedTuple):
    """A language model that learns data parallel, as an engine of several ranks does (hybrid/engine/ranked).

    Each rank computes the trunk of its micro-batches alone, and rows and readout of all of them, as every other one does.

    stages   seconds of each by examples of a micro-batch; "update" and "rest", which is in no stage, are of a whole step
    width    numbers of a hidden vector, which goes to all ranks
    inputs   numbers of an example's rows, whose gradient goes to all ranks
    trunk    parameters of the trunk, whose gradients are summed
    """

    stages: Mapping[str, Curve]
    width: int
    inputs: int
    trunk: int


def language(model: Language, ranks: int, batch: int, crowd: float = 1.0, repeated: bool = True) -> list[Program]:
    """A step of `batch` examples in all, on a power of two of ranks: as many micro-batches, MICRO_BATCHES at least.

    repeated  False: as if ranks could share the rows and the readout evenly
    """
    far = len(_doubling(ranks))
    micro = max(MICRO_BATCHES, ranks)
    examples, own = batch / micro, micro / ranks
    everywhere = micro if repeated else own
    took = {name: crowd * curve.at(examples) for name, curve in model.stages.items()}
    program: list[Compute | Start | Wait | Meet] = [Compute("gather", everywhere * took["gather"])]
    program += [Compute("forward", own * took["forward"]), *_to_all("hidden", far, micro, examples * model.width)]
    program += [Compute("readout", everywhere * took["readout"]), Compute("backward", own * took["backward"])]
    program += [*_to_all("row gradients", far, micro, examples * model.inputs)]
    program += [Compute("scatter", everywhere * took["scatter"])]
    others = ranks - 1
    share = Meet("sum", others, 1, others / ranks * model.trunk * NUMBER)  # each sums its share of the numbers,
    program += [share, share._replace(name="sum to all")] if others else []  # and sends it to all others
    rest = crowd * model.stages["rest"].at(batch)
    return [[*program, Compute("update", crowd * model.stages["update"].at(batch)), Compute("rest", rest)]] * ranks


def _to_all(name: str, rounds: int, micro: int, numbers: float) -> list[Meet]:
    """Each micro-batch's numbers go from one rank to all others, by rounds in which twice as many have them."""
    messages = micro * rounds
    return [Meet(name, messages, messages, messages * numbers * NUMBER)] if rounds else []


def _doubling(ranks: int) -> range:
    """The rounds of recursive doubling: a rank's partner in round k is 2^k places away."""
    if ranks & (ranks - 1):
        raise ValueError(f"ranks: found {ranks}, expected a power of two")
    return range(ranks.bit_length() - 1)


def _passed(name: str, rank: int, rounds: list[tuple[int, float]]) -> list[Compute | Start | Wait | Meet]:
    """Rounds (k, bytes) in which a rank and the one 2^k places away exchange bytes."""
    steps: list[Compute | Start | Wait | Meet] = []
    for number, (k, size) in enumerate(rounds):
        steps += [Start(f"{name} {number}", {rank ^ (1 << k): size}), Wait(f"{name} {number}")]
    return steps
