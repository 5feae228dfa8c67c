"""The crossover map: which output layer is the fastest at which size, by points and by a model, and at equal quality."""

from collections.abc import Sequence
from typing import Any

from bench import crossover_claim, crossover_figures, crossover_tables, equal_quality
from bench.crossover_costs import memory
from bench.crossover_fit import Measured, Setting, measured, models
from bench.crossover_points import SHARE, WORKS, left_out, points
from bench.section import Section
from bench.steps import Step

COMMAND = "python -m bench crossover --json results.jsonl"
TITLE = "Where a logarithm beats brute force"
PLACE = 10
STEPS = [Step("crossover", ("crossover",), 100, 18, quick=("crossover",))]
QUALITIES = (
    "language.epochs",
    "language.seconds",
)  # works whose records are of equal quality, beside those of `bench large`

Record = dict[str, Any]


def section(records: Sequence[Record]) -> Section:
    """Of records of `bench crossover`, and of trainings; where these have none, those of the repository."""
    found = measured(records)
    fitted = {setting: models(setting.work, some) for setting, some in found.items()}
    if not found:
        return Section(TITLE, [], gaps=gaps(found, records))
    trained = [one for one in records if one["work"] in QUALITIES or one.get("bench") == "large"]
    own, kept = (equal_quality.curves(some) for some in (trained, equal_quality.committed()))
    curves = dict(sorted((kept | own).items()))
    answer = [crossover_claim.verdict(curves), *crossover_claim.speed(found, fitted)]
    answer += crossover_claim.quality(curves, sorted(kept.keys() - own.keys()))
    figures = crossover_figures.speed(found, fitted) + crossover_figures.quality(curves)
    tables = crossover_tables.speed(found, fitted, COMMAND) + crossover_tables.quality(curves)
    return Section(TITLE, answer, figures, tables, gaps(found, records))


def gaps(found: dict[Setting, list[Measured]], records: Sequence[Record]) -> list[str]:
    """What was not measured, with the reason."""
    if not found:
        return [f"Nothing was measured: `{COMMAND}` does it."]
    said = []
    said.append(
        "No GPU was there: dense products and trees on one (in order, mini-batches, whole batches, Hogwild, split) and Cut "
        "Cross-Entropy were not measured. Nothing here is about the claim that brute force on a GPU loses to a logarithm "
        "on a CPU."
    )
    said.append(
        "A trunk on a GPU beside a tree on the cores is measured by `python -m bench gpu --only overlap`, not here."
    )
    said += [*_unreached(found), *_absent(found)]
    said.append(
        "Trainings to equal quality are of one width (128), one batch a model, and three numbers of classes: of other widths, "
        "batches and classes there are no records, and none is worked out of the speed."
    )
    return said


def _unreached(found: dict[Setting, list[Measured]]) -> list[str]:
    """Sizes of the plan that no contender was measured at, with the bytes of the least of them."""
    where = []
    for setting, some in found.items():
        sizes = {one.size for one in some}
        for point in points(False, setting.threads) if setting.device == "cpu" else ():
            if (point.work, point.threads) == (setting.work, setting.threads) and point.size not in sizes:
                V, d, B = point.size
                least = min(memory(name, point.work, point.size) for name in WORKS[point.work])
                where.append(f"V {V:,}, d {d}, B {B:,} ({least / 1e9:.3g} GB)")
    if not where:
        return []
    told = f"Sizes that no contender was measured at, with what the smallest takes of memory (up to {SHARE:.0%} of it is used)"
    return [f"{told}: {'; '.join(where)}."]


def _absent(found: dict[Setting, list[Measured]]) -> list[str]:
    """Contenders with the sizes at which they were to be measured by the plan and were not, a line each."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for setting, some in found.items():
        if setting.device != "cpu":
            continue
        there = {(one.contender, one.size) for one in some}
        sizes = {one.size for one in some}
        names = {one.contender for many in found.values() for one in many}
        for point in points(False, setting.threads):
            if (point.work, point.threads) != (setting.work, setting.threads) or point.size not in sizes:
                continue
            for name in sorted(names):
                reason = left_out(name, point, float("inf"))
                if (name, point.size) not in there and reason:
                    V, d, B = point.size
                    where = f"V {V:,}, d {d}, B {B:,}, {point.threads} threads ({reason})"
                    lacking.setdefault((name, point.work), []).append(where)
    works = {"output": "the output layer alone", "step": "a whole step"}
    return [f"{name}, {works[work]}, was left out at: {'; '.join(at)}." for (name, work), at in lacking.items()]
