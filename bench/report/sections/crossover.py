"""The crossover: time of a step of each output layer by number of classes, and time to equal quality.

Seconds to a perplexity are from trainings of `bench quality` and `bench large` in the same records. A point of `bench quality`
is a training of its own, with its own schedule; one of `bench large` is an intermediate measurement.
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bench.harness.measure import NOISY
from bench.report.section import Cell, Figure, Record, Section, Step, Table
from bench.report.sections import quality

COMMAND = "python -m bench crossover --json results.jsonl"
TITLE = "Brute force and logarithmic cost"
PLACE = 10
STEPS = [Step("crossover", ("crossover",), 100, 12, quick=("crossover",))]
CLAIMED = "https://erikbern.com/2016/02/03/my-issue-with-gpu-accelerated-deep-learning.html"
CLAIM = (
    f"**The claim** (Bernhardsson, [2016]({CLAIMED})): brute force on a GPU pays for every parameter in every mini-batch, a "
    "tree on a CPU for a logarithm of them, so such structures win from about a billion parameters on. The claim has two "
    "halves: the time of a step, and what is learned in it."
)
PARTS = {"output": "the output layer alone", "step": "trunk and output layer"}
WIDTH, BATCH = 128, 1024  # common size at which all classes are measured
WORDS = 33_278  # classes of `bench language_board`: the words of WikiText-2 as published
CLOCKS = {"quality": "seconds on {} threads", "large": "CPU seconds"}
NEAR = (1.05, 1.25)  # targets, relative to the lowest perplexity of any contender
LOST = 1e6  # higher perplexities are of diverged trainings
GAPS = (
    "GPUs: these figures do not test the claim that brute force on a GPU loses to a logarithm on a CPU. `python -m bench gpu` "
    "measures on one.",
    "Quality at other widths than 128, and at other batches.",
)


class Size(NamedTuple):
    """Classes V, width d of a hidden vector, examples B of a batch."""

    classes: int
    width: int
    batch: int


class Setting(NamedTuple):
    """The setting of one table's points: "output" or "step", the device, threads of the CPU."""

    work: str
    device: str
    threads: int

    @property
    def place(self) -> str:
        """The device, or the number of threads."""
        return f"{self.threads} thread{'s' * (self.threads > 1)}" if self.device == "cpu" else self.device


class Measured(NamedTuple):
    """A contender's step at a size; low, high: seconds at the ends of the interval, None without one; noisy: marked."""

    contender: str
    size: Size
    seconds: float
    low: float | None
    high: float | None
    noisy: bool


def section(records: Sequence[Record]) -> Section:
    """Shows the records of `bench crossover`, and of trainings."""
    found = measured(records)
    if not found:
        return Section(TITLE, [], gaps=[f"Nothing was measured: `{COMMAND}` does it."])
    trained = curves(records)
    answer = [CLAIM, *(_reached(count, some) for count, some in trained.items())]
    most = max((one.threads for one in found if one.device == "cpu"), default=0)
    short = [_short(setting, some) for setting, some in found.items() if setting[1:] == ("cpu", most)]
    tables = [*short, _points(found), *([_quality_table(trained)] if trained else [])]
    figures, abstract = [_lines(*one) for one in found.items()], f"{_fastest(short[0])} {_first(trained)}"
    return Section(TITLE, answer, figures, tables, list(GAPS), abstract.strip())


def measured(records: Iterable[Record]) -> dict[Setting, list[Measured]]:
    """Returns all crossover points of the records, by setting; those of a work with most threads first."""
    found: dict[Setting, list[Measured]] = {}
    for one in records:
        if one["work"] in ("crossover.output", "crossover.step"):
            size = Size(*(one["params"][name] for name in Size._fields))
            low, high = one.get("interval") or (None, None)
            least, most = (size.batch / high, size.batch / low) if low and high else (None, None)
            setting = Setting(one["work"].split(".")[1], one["device"], one["threads"])
            seconds, noisy = size.batch / one["value"], one.get("spread", 0) > NOISY
            found.setdefault(setting, []).append(Measured(one["contender"], size, seconds, least, most, noisy))
    return dict(sorted(found.items(), key=lambda item: (item[0].work, item[0].device != "cpu", -item[0].threads)))


def _lines(setting: Setting, some: Sequence[Measured]) -> Figure:
    """Plots milliseconds of a step over classes, at the width and batch with most classes; ties: WIDTH and BATCH."""
    counts: dict[tuple[int, int], set[int]] = {}
    for one in some:
        counts.setdefault((one.size.width, one.size.batch), set()).add(one.size.classes)
    d, B = max(counts, key=lambda key: (len(counts[key]), key == (WIDTH, BATCH)))
    row = [one for one in some if (one.size.width, one.size.batch) == (d, B)]
    points = [{"who": one.contender, "x": one.size.classes, "y": 1e3 * one.seconds} for one in row]
    caption = f"Time of a step by number of classes: {PARTS[setting.work]}, {setting.place}, d = {d}, B = {B:,}"
    name = f"crossover_lines_{setting.work}_{'cpu' if setting.device == 'cpu' else 'gpu'}_{setting.threads}"
    return Figure(name, caption, "crossover_points", points, "classes V", "milliseconds a step")


def _short(setting: Setting, some: Sequence[Measured]) -> Table:
    """Tabulates a row per number of classes and a column per contender, at the common width and batch."""
    at = {(one.size.classes, one.contender): 1e3 * one.seconds for one in some if one.size[1:] == (WIDTH, BATCH)}
    names = list(dict.fromkeys(name for _, name in at))
    rows: list[list[Cell]] = [[V, *(at.get((V, name)) for name in names)] for V in sorted({V for V, _ in at})]
    caption = (
        f"Milliseconds of a training step by number of classes: {PARTS[setting.work]}, d = {WIDTH}, B = {BATCH:,}, "
        f"{setting.place}. A dash: not run, because it was expected to take over a second or too much memory"
    )
    noisy: dict[str, list[str]] = {}
    for one in some:
        if one.noisy and one.size[1:] == (WIDTH, BATCH):
            noisy.setdefault(one.contender, []).append(f"{one.size.classes:,}")
    if noisy:
        listed = "; ".join(f"{who} at {' and '.join(counts)}" for who, counts in noisy.items())
        caption += f". Noisy (samples range over more than {NOISY:.0%} of the median): {listed}"
    return Table(f"crossover_short_{setting.work}", caption, ["classes", *names], rows, COMMAND)


def _points(found: Mapping[Setting, Sequence[Measured]]) -> Table:
    rows: list[list[Cell]] = []
    for setting, some in found.items():
        for one in some:
            times = [None if end is None else 1e3 * end for end in (one.seconds, one.low, one.high)]
            rows.append([setting.work, one.contender, setting.place, *one.size, one.size.batch / one.seconds, *times])
    header = ["work", "contender", "on", "V", "d", "B", "examples/s", "ms a step", "from", "to"]
    return Table("crossover_points", "All points, medians with their 95 % intervals", header, rows, COMMAND)


# At equal quality


class Curve(NamedTuple):
    """A contender at a number of classes: ascending (seconds, perplexity of validation data); clock: the kind of seconds."""

    who: str
    classes: int
    clock: str
    points: tuple[tuple[float, float], ...]

    @property
    def best(self) -> tuple[float, float]:
        """The point of the lowest perplexity."""
        return min(self.points, key=lambda point: point[1])

    def seconds_to(self, perplexity: float) -> float | None:
        """Returns the time to a perplexity, at most that of a first point that has reached it; None if it is never reached."""
        for (before, high), (after, low) in itertools.pairwise([(self.points[0][0], math.inf), *self.points]):
            if low <= perplexity:
                share = 1.0 if math.isinf(high) else math.log(high / perplexity) / math.log(high / low)
                return before * (after / before) ** share
        return None


Curves = Mapping[int, Sequence[Curve]]


def curves(records: Sequence[Record]) -> dict[int, list[Curve]]:
    """Returns curves by ascending number of classes; contenders in record order, without diverged trainings."""
    found: dict[int, list[Curve]] = {}
    for row in quality.rows("language", records):
        if row.who.startswith("LSTM"):  # another trunk, of other widths
            continue
        whole = [one for one in row.lengths if len(one.values("valid", "perplexity")) == len(one.records)]
        points = sorted((one.seconds, statistics.mean(one.values("valid", "perplexity"))) for one in whole)
        if points:
            clock = CLOCKS["quality"].format(row.lengths[0].records[0]["threads"])
            found.setdefault(WORDS, []).append(Curve(row.who, WORDS, clock, tuple(points)))
    for one in records:
        if one.get("bench") == "large" and (points := sorted(look for look in quality.reached(one) if look[1] < LOST)):
            classes = one["params"]["classes"]
            found.setdefault(classes, []).append(Curve(one["who"], classes, CLOCKS["large"], tuple(points)))
    return dict(sorted(found.items()))


def targets(some: Sequence[Curve]) -> list[float]:
    """Returns the target perplexities of contenders at the same classes, the hardest first."""
    return [times * min(one.best[1] for one in some) for times in NEAR]


def _firsts(target: float, some: Sequence[Curve]) -> dict[str, float]:
    """Returns the first contenders to reach a target, with the time; several if their first points have reached it."""
    times = {one.who: at for one in some if (at := one.seconds_to(target)) is not None}
    return {who: at for who, at in times.items() if at == min(times.values())}


def _fastest(short: Table) -> str:
    """Names the fastest contender at each number of classes."""
    by: dict[str, list[str]] = {}
    for classes, *times in short.rows:
        measured = {who: ms for who, ms in zip(short.header[1:], times, strict=True) if isinstance(ms, float)}
        by.setdefault(min(measured, key=measured.__getitem__), []).append(f"{classes:,}")
    if len(by) == 1:
        return f"Of output layers alone, {next(iter(by))} has the fastest step at every number of classes."
    found = "; ".join(f"{who} at {', '.join(counts)} classes" for who, counts in by.items())
    return f"The fastest step of an output layer alone: {found}."


def _first(trained: Curves) -> str:
    """Names the first contender to come within 5 % of the lowest perplexity, at each number of classes."""
    firsts = {count: " and ".join(_firsts(targets(some)[0], some)) for count, some in trained.items()}
    found = "; ".join(f"{who} at {count:,} classes" for count, who in firsts.items())
    return f"In short trainings, the first to come within 5 % of the lowest perplexity is {found}." if found else ""


def _reached(count: int, some: Sequence[Curve]) -> str:
    parts = []
    for target in targets(some):
        first = _firsts(target, some)
        parts.append(f"{target:,.0f} first by {', '.join(first)}, after about {next(iter(first.values())):.0f} s")
    return f"**Equal quality, {count:,} classes** ({some[0].clock}): a perplexity of {'; of '.join(parts)}."


def _quality_table(trained: Curves) -> Table:
    """Tabulates the time of each contender to each perplexity."""
    rows: list[list[Cell]] = []
    for count, some in trained.items():
        for target, one in itertools.product(targets(some), some):
            at, (seconds, lowest) = one.seconds_to(target), one.best
            rows.append([count, target, one.who, "not reached" if at is None else at, lowest, seconds, one.clock])
    header = ["V", "target perplexity", "contender", "seconds", "its lowest perplexity", "after seconds", "clock"]
    caption = (
        "Seconds of training to a validation perplexity 5 % and 25 % above the lowest of all contenders, by interpolation "
        "between the points of a contender on logarithmic axes; its first point is an upper bound"
    )
    return Table("equal_quality", caption, header, rows, "python -m bench report results.jsonl")
