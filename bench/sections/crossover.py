"""The crossover map: which output layer is the fastest at which size, and which at equal quality."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bench import equal_quality
from bench.crossover_points import BATCH, WIDTH, Size
from bench.equal_quality import FILES, Curve, targets
from bench.section import Cell, Figure, Section, Table
from bench.steps import Step

COMMAND = "python -m bench crossover --json results.jsonl"
TITLE = "Where a logarithm beats brute force"
PLACE = 10
STEPS = [Step("crossover", ("crossover",), 100, 18, quick=("crossover",))]
QUALITIES = (
    "language.epochs",
    "language.seconds",
)  # works whose records are of equal quality, beside those of `bench large`

CLAIMED = "https://erikbern.com/2016/02/03/my-issue-with-gpu-accelerated-deep-learning.html"
OURS, THEIRS = "ours", "PyTorch's"
TOLD = {"output": "the output layer alone", "step": "trunk and output layer"}
PEER = "torch "  # what names of a peer's output layers begin with
REPORT = "python -m bench report " + " ".join(f"bench/results/{name}" for name in FILES)

Record = dict[str, Any]


class Setting(NamedTuple):
    """What points must share to be of one model: "output" or "step", the device, threads of the CPU."""

    work: str
    device: str
    threads: int


class Measured(NamedTuple):
    """A contender's step at a size; low, high: seconds at the ends of the interval, None where there is none."""

    contender: str
    size: Size
    seconds: float
    low: float | None
    high: float | None


def measured(records: Iterable[Record]) -> dict[Setting, list[Measured]]:
    """All points of the records that are of the crossover, by setting; those with most threads of a work first."""
    found: dict[Setting, list[Measured]] = {}
    for one in records:
        if one["work"] in ("crossover.output", "crossover.step"):
            setting = Setting(one["work"].split(".")[1], one["device"], one["threads"])
            found.setdefault(setting, []).append(_measured(one))
    return dict(sorted(found.items(), key=lambda item: (item[0].work, item[0].device != "cpu", -item[0].threads)))


def _measured(record: Record) -> Measured:
    """Of examples a second, seconds of a batch."""
    size = Size(*(record["params"][name] for name in Size._fields))
    low, high = record.get("interval") or (None, None)
    ends = (size.batch / high, size.batch / low) if low and high else (None, None)
    return Measured(record["contender"], size, size.batch / record["value"], *ends)


Found = Mapping[Setting, Sequence[Measured]]


def section(records: Sequence[Record]) -> Section:
    """Of records of `bench crossover`, and of trainings; where these have none, those of the repository."""
    found = measured(records)
    if not found:
        return Section(TITLE, [], gaps=gaps(found, records))
    trained = [one for one in records if one["work"] in QUALITIES or one.get("bench") == "large"]
    own, kept = (equal_quality.curves(some) for some in (trained, equal_quality.committed()))
    curves = dict(sorted((kept | own).items()))
    answer = [_verdict(curves), *_quality_told(curves, sorted(kept.keys() - own.keys()))]
    figures = [*(_lines(setting, some) for setting, some in found.items())]
    tables = [_short(setting, some, COMMAND) for setting, some in found.items() if _in_short(setting, found)]
    tables += [_points(found, COMMAND), *_quality_tables(curves)]
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
    said.append(
        "Trainings to equal quality are of one width (128), one batch a model, and three numbers of classes: of other widths, "
        "batches and classes there are no records, and none is worked out of the speed."
    )
    return said


def _verdict(curves: Mapping[int, Sequence[Curve]]) -> str:
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


def _quality_told(curves: Mapping[int, Sequence[Curve]], kept: Sequence[int]) -> list[str]:
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


def _where(setting: Setting) -> str:
    place = f"{setting.threads} threads" if setting.device == "cpu" else setting.device
    return f"{TOLD[setting.work]}, {place}"


def _row(some: Sequence[Measured]) -> tuple[int, int]:
    """Width and batch of the points that go through most classes; of several, those that all plans have."""
    counts: dict[tuple[int, int], set[int]] = {}
    for one in some:
        counts.setdefault((one.size.width, one.size.batch), set()).add(one.size.classes)
    return max(counts, key=lambda key: (len(counts[key]), key == (WIDTH, BATCH)))


def _lines(setting: Setting, some: Sequence[Measured]) -> Figure:
    """Milliseconds of a step over classes."""
    import altair

    d, B = _row(some)
    counts = sorted({one.size.classes for one in some})
    points = [
        _named(one.contender) | {"V": one.size.classes, "ms": 1e3 * one.seconds}
        for one in some
        if (one.size.width, one.size.batch) == (d, B)
    ]
    kinds = list(dict.fromkeys(_named(one.contender)["layer"] for one in some))
    axes = {
        "x": altair.X("V:Q", title="classes V", scale=_logarithmic()),
        "y": altair.Y("ms:Q", title="milliseconds a step", scale=_logarithmic()),
        "color": _colour("layer", kinds),
        "tooltip": ["contender:N", altair.Tooltip("V:Q", format=","), altair.Tooltip("ms:Q", format=".4g")],
    }
    dash = altair.StrokeDash("by:N", title=None, scale=altair.Scale(domain=[OURS, THEIRS], range=[[1, 0], [6, 4]]))
    drawn = altair.Chart(_data(points)).mark_line().encode(strokeDash=dash, **axes)
    shape = altair.Shape("layer:N", sort=kinds, legend=None)
    dots = [
        altair.Chart(_data([one for one in points if one["by"] == by]))
        .mark_point(filled=by == OURS, size=60)
        .encode(**axes, shape=shape)
        for by in (OURS, THEIRS)
    ]
    caption = f"Time of a step over classes: {_where(setting)}, d = {d}, B = {B:,}."
    fastest = min((one for one in points if one["V"] == counts[-1]), key=lambda one: one["ms"], default=None)
    told = caption + (
        f" At {counts[-1]:,} classes {fastest['contender']} is the fastest of those measured, {fastest['ms']:.3g} ms a step."
        if fastest
        else ""
    )
    device = "cpu" if setting.device == "cpu" else "gpu"
    name = f"crossover_lines_{setting.work}_{device}_{setting.threads}"
    return Figure(name, caption, altair.layer(drawn, *dots), told, "crossover_points")


def _named(contender: str) -> dict[str, Any]:
    """A contender as its layer and who made that, which a colour and dashes tell."""
    theirs = contender.startswith(PEER)
    return {"contender": contender, "layer": contender.removeprefix(PEER), "by": THEIRS if theirs else OURS}


def _logarithmic() -> Any:
    import altair

    return altair.Scale(type="log", nice=False, padding=12)


def _colour(field: str, names: Sequence[str]) -> Any:
    """The colour of each name, the same in all pictures of these names, whichever of them a picture has."""
    import altair

    return altair.Color(f"{field}:N", title=None).scale(domain=list(names))


def _data(values: Sequence[Mapping[str, Any]]) -> Any:
    import altair

    return altair.Data(values=list(values))


def _place(setting: Setting) -> str:
    return f"{setting.threads} threads" if setting.device == "cpu" else setting.device


def _in_short(setting: Setting, found: Found) -> bool:
    """The CPU with most threads."""
    return setting.device == "cpu" and setting.threads == max(one.threads for one in found if one.device == "cpu")


def _short(setting: Setting, some: Sequence[Measured], command: str) -> Table:
    """A row a number of classes, a column a contender, at the width and the batch that all classes were measured at."""
    at = {(one.size.classes, one.contender): 1e3 * one.seconds for one in some if one.size[1:] == (WIDTH, BATCH)}
    names = list(dict.fromkeys(name for _, name in at))
    rows: list[list[Cell]] = [[V, *(at.get((V, name)) for name in names)] for V in sorted({V for V, _ in at})]
    caption = (
        f"Milliseconds of a training step of {TOLD[setting.work]}, by classes: d = {WIDTH}, B = {BATCH:,}, "
        f"{_place(setting)}. A dash: it is taken to last over a second, or needs too much memory."
    )
    return Table(f"crossover_short_{setting.work}", caption, ["classes", *names], rows, command)


def _points(found: Found, command: str) -> Table:
    rows: list[list[Cell]] = []
    for setting, some in found.items():
        for one in some:
            ends: list[Cell] = [None if end is None else 1e3 * end for end in (one.low, one.high)]
            times: list[Cell] = [1e3 * one.seconds, *ends]
            rows.append([setting.work, one.contender, _place(setting), *one.size, one.size.batch / one.seconds, *times])
    header = ["work", "contender", "on", "V", "d", "B", "examples/s", "ms a step", "from", "to"]
    caption = "Every measured point: the median with its 95 % interval."
    return Table("crossover_points", caption, header, rows, command)


def _quality_tables(curves: Mapping[int, Sequence[Curve]]) -> list[Table]:
    """Who reaches a perplexity, and when."""
    rows: list[list[Cell]] = []
    for count, some in curves.items():
        for target in targets(some):
            for one in some:
                at, lowest = one.seconds_to(target), one.best
                rows.append(
                    [count, target, one.who, "not reached" if at is None else at, lowest[1], lowest[0], one.clock]
                )
    header = ["V", "perplexity asked", "contender", "seconds", "its lowest perplexity", "after seconds", "clock"]
    caption = (
        "Seconds of training to a perplexity of validation data that is 5 % and 25 % above the lowest that anybody reached. "
        "Between two points of a contender a line is drawn, on logarithmic axes; at its first one it was there at the latest."
    )
    return [Table("equal_quality", caption, header, rows, REPORT)]
