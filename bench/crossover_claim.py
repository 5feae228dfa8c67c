"""What the crossover map says of the claim that output layers of a logarithm win where classes are many, in numbers of records.

The claim is Bernhardsson's of 2016: brute force on a GPU pays for every parameter in every mini-batch, a tree on a CPU for a
logarithm of them, so from about a billion parameters on trees and the like win.
"""

from collections.abc import Mapping, Sequence

from bench import zipf
from bench.crossover_costs import Size
from bench.crossover_figures import WORKS, row
from bench.crossover_fit import Measured, Setting
from bench.crossover_regions import crossover
from bench.crossover_tables import Fitted, Found
from bench.equal_quality import Curve, targets

TREE, DENSE = "tree", ("full", "torch full", "torch chunked")
CLAIMED = "https://erikbern.com/2016/02/03/my-issue-with-gpu-accelerated-deep-learning.html"
ABOUT = 1.25  # times a logarithm's growth, up to which a growth is called one


def speed(found: Found, fitted: Fitted) -> list[str]:
    """Paragraphs on time alone, for the first setting of each work: most threads of the CPU."""
    said = []
    for work in WORKS:
        setting = next((one for one in found if one.work == work), None)
        if setting:
            said += [text for text in (_growth(setting, found[setting]), _crossed(setting, found, fitted)) if text]
    said.append(_trust(fitted))
    return said


def _growth(setting: Setting, some: Sequence[Measured]) -> str | None:
    """What more classes cost the tree, beside a logarithm, and brute force."""
    d, B = row(some)
    along = {name: _along(some, name, d, B) for name in (TREE, *DENSE)}
    if len(along[TREE]) < 2:
        return None
    first, last = along[TREE][0], along[TREE][-1]
    grown, paths = last.seconds / first.seconds, zipf.path(last.size.classes) / zipf.path(first.size.classes)
    holds = grown <= ABOUT * paths
    said = (
        f"**{'It costs about a logarithm' if holds else 'It costs more than a logarithm'}** ({WORKS[setting.work]}, d = {d}, "
        f"B = {B:,}, {setting.threads} threads): from {first.size.classes:,} to {last.size.classes:,} classes, "
        f"{last.size.classes / first.size.classes:,.0f} times as many, a step of the tree takes {grown:.3g} times as long "
        f"({1e3 * first.seconds:.3g} to {1e3 * last.seconds:.3g} ms), and its paths have {paths:.3g} times as many nodes. "
        f"At last it has {last.size.classes * d / 1e6:,.0f} M parameters."
    )
    if not holds:
        said += " What is above that comes with tables that no cache holds, and with what else follows their size."
    for name in DENSE:
        if len(along[name]) > 1:
            low, high = along[name][0], along[name][-1]
            times = high.size.classes / low.size.classes
            said += (
                f" {name.capitalize()}: {high.seconds / low.seconds:.3g} times as long for {times:,.0f} times as many."
            )
    return said


def _along(some: Sequence[Measured], name: str, d: int, B: int) -> list[Measured]:
    """A contender's points at a width and batch, by classes."""
    found = [one for one in some if one.contender == name and (one.size.width, one.size.batch) == (d, B)]
    return sorted(found, key=lambda one: one.size.classes)


def _crossed(setting: Setting, found: Found, fitted: Fitted) -> str | None:
    """From where on the tree takes less time than each other, by the models."""
    some, models = found[setting], fitted[setting]
    if TREE not in models:
        return None
    d, B = row(some)
    counts = sorted({one.size.classes for one in some})
    told: dict[str, list[str]] = {}
    for name in (name for name in models if "tree" not in name):
        at = crossover(models, setting.work, name, TREE, Size(counts[0], d, B), counts[-1])
        told.setdefault(_from(at, counts), []).append(name)
    lists = "; ".join(f"than {', '.join(names)} {where}" for where, names in told.items())
    return (
        f"**Where the tree takes less time** ({WORKS[setting.work]}, d = {d}, B = {B:,}, by the models): {lists}. "
        "All of these have the same cores."
    )


def _from(at: int | None, counts: Sequence[int]) -> str:
    if at is None:
        return f"not up to {counts[-1]:,} classes"
    if at == counts[0]:
        return f"at all of the measured {at:,} to {counts[-1]:,} classes"
    return f"from {at:,} classes on"


def _trust(fitted: Fitted) -> str:
    """The errors of the models, of all settings."""
    errors = [(model.error, name) for by in fitted.values() for name, model in by.items() if model.error is not None]
    if not errors:
        return "Lines and regions are a model's, which has too few points here to tell its error."
    (low, best), (high, worst) = min(errors), max(errors)
    return (
        "Lines and regions are a model's, fitted to the points: operations, bytes and steps in turn, with seconds of each. "
        f"Of points left out of the fit, half are missed by less than {low:.0%} ({best}) to {high:.0%} ({worst})."
    )


def verdict(curves: Mapping[int, Sequence[Curve]]) -> str:
    """The claim, and at which numbers of classes it holds at equal quality."""
    firsts = {count: _firsts(targets(some)[0], some) for count, some in curves.items()}
    holds = [count for count, first in firsts.items() if any("tree" in who for who in first)]
    fails = [f"{count:,} ({', '.join(first)})" for count, first in firsts.items() if count not in holds]
    said = (
        f"**The claim** (Bernhardsson, [2016]({CLAIMED})): brute force on a GPU pays for every parameter in every mini-batch, "
        "a tree on a CPU for a logarithm of them, so from about a billion parameters on such structures win. A step's time is "
        "one half of it, and what is learned meanwhile the other. "
    )
    if holds:
        said += f"At equal quality a tree is the first to come near the lowest perplexity at {_counts(holds)} classes. "
    if fails:
        said += f"Others are the first at {'; '.join(fails)} classes."
    return said.strip()


def _counts(counts: Sequence[int]) -> str:
    return ", ".join(f"{count:,}" for count in counts)


def quality(curves: Mapping[int, Sequence[Curve]], kept: Sequence[int]) -> list[str]:
    """A paragraph a number of classes: who is first at a perplexity near the lowest, and where the trees are.

    kept  numbers of classes whose trainings were not measured with the rest, but are of the repository
    """
    said = [_reached(count, some) for count, some in curves.items()]
    if kept:
        said.append(f"Trainings of {_counts(kept)} classes are records that the repository keeps, of two other cores.")
    return said


def _reached(count: int, some: Sequence[Curve]) -> str:
    told = "; ".join(f"{target:,.0f} is reached first by {_first(target, some)}" for target in targets(some))
    return f"**At equal quality, {count:,} classes** ({some[0].clock}): a perplexity of {told}."


def _times(target: float, some: Sequence[Curve]) -> dict[str, float]:
    """Seconds of those who reach it."""
    return {one.who: at for one in some if (at := one.seconds_to(target)) is not None}


def _firsts(target: float, some: Sequence[Curve]) -> list[str]:
    """Who reaches it first."""
    times = _times(target, some)
    return [who for who, at in times.items() if at == min(times.values())]


def _first(target: float, some: Sequence[Curve]) -> str:
    """Who reaches it first, several where their first point is there already, and when a tree does."""
    times, first = _times(target, some), _firsts(target, some)
    least = times[first[0]]
    said = f"{', '.join(first)}, within {least:.0f} s"
    trees = {who: at for who, at in times.items() if "tree" in who}
    if not trees:
        return f"{said}, and by no tree in these records"
    best = min(trees, key=lambda who: trees[who])
    return said if best in first else f"{said}, and by the first tree ({best}) within {trees[best]:.0f} s"
