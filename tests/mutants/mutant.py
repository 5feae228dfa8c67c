"""One small fault in one file, named in a way that survives when lines move."""

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A fault that can be planted.

    path    of the file, from the root of the tree
    where   the function or class that it is in, as "Engine.run"; empty at the top
    kind    what is changed, as "ReplaceComparisonOperator_Lt_LtE"
    line    the line that begins there, without white space around it
    number  which of those that agree in all of the above
    site    which place of the file it changes: several kinds of change may suit one place
    plant   what gives the changed text of the file
    """

    path: str
    where: str
    kind: str
    line: str
    number: int
    site: tuple[int, int] = dataclasses.field(compare=False)
    plant: Callable[[str], str] = dataclasses.field(compare=False, repr=False)

    @property
    def name(self) -> str:
        """What it is called in the list of equivalent mutants."""
        return f"{self.path} | {self.where} | {self.kind} | {self.line} | {self.number}"

    @property
    def key(self) -> str:
        """Ten letters that stand for the name."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:10]

    @property
    def area(self) -> str:
        """What its score is counted under: the first folder; kernels in CUDA have a score of their own."""
        folder = self.path.split("/")[0]
        return f"{folder} .cu" if Path(self.path).suffix in (".cu", ".cuh") else folder


def numbered(found: Iterable[Mutant]) -> list[Mutant]:
    """The mutants of a file, those with equal names told apart."""
    seen: Counter[str] = Counter()
    told = []
    for mutant in found:
        told.append(dataclasses.replace(mutant, number=seen[mutant.name]))
        seen[mutant.name] += 1
    return told


def drawn(mutants: Iterable[Mutant], number: int, seed: int) -> list[Mutant]:
    """So many mutants of each area: places by lot, one change for each place.

    Each mutant's lot is a hash of its name: a change of the sources leaves the draw of all other places as it is, and a
    larger number draws the same ones and more.
    """

    def lot(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed} {mutant.name}".encode()).hexdigest()

    first: dict[tuple[str, tuple[int, int]], Mutant] = {}
    for mutant in sorted(mutants, key=lot):
        first.setdefault((mutant.path, mutant.site), mutant)
    taken: Counter[str] = Counter()
    chosen = []
    for mutant in first.values():
        taken[mutant.area] += 1
        if taken[mutant.area] <= number:
            chosen.append(mutant)
    return chosen
