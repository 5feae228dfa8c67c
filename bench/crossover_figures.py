"""Pictures of the crossover map: lines through points, regions, perplexity against seconds; charts of altair, unstyled."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.cost_model import Model
from bench.crossover_costs import Size, amounts
from bench.crossover_fit import Measured, Setting
from bench.crossover_points import BATCH, WIDTH
from bench.crossover_regions import PEER, classes
from bench.crossover_tables import Fitted, Found, cells
from bench.equal_quality import Curve
from bench.section import Figure

OURS, THEIRS = "ours", "PyTorch's"
WORKS = {"output": "the output layer alone", "step": "trunk and output layer"}


def speed(found: Found, fitted: Fitted) -> list[Figure]:
    """Of every setting lines and regions."""
    made = []
    for setting, some in found.items():
        made += [_lines(setting, some, fitted[setting]), _map(setting, some, fitted[setting])]
    return made


def _name(kind: str, setting: Setting) -> str:
    device = "cpu" if setting.device == "cpu" else "gpu"
    return f"crossover_{kind}_{setting.work}_{device}_{setting.threads}"


def _where(setting: Setting) -> str:
    place = f"{setting.threads} threads" if setting.device == "cpu" else setting.device
    return f"{WORKS[setting.work]}, {place}"


def row(some: Sequence[Measured]) -> tuple[int, int]:
    """Width and batch of the points that go through most classes; of several, those that all plans have."""
    counts: dict[tuple[int, int], set[int]] = {}
    for one in some:
        counts.setdefault((one.size.width, one.size.batch), set()).add(one.size.classes)
    return max(counts, key=lambda key: (len(counts[key]), key == (WIDTH, BATCH)))


def _lines(setting: Setting, some: Sequence[Measured], models: Mapping[str, Model]) -> Figure:
    """Milliseconds of a step over classes: points as measured, lines as the models say."""
    import altair

    d, B = row(some)
    counts = sorted({one.size.classes for one in some})
    lines = [
        _named(name) | {"V": count, "ms": 1e3 * model.seconds(amounts(name, setting.work, Size(count, d, B)))}
        for name, model in models.items()
        for count in classes(counts[0], counts[-1])
    ]
    points = [
        _named(one.contender) | {"V": one.size.classes, "ms": 1e3 * one.seconds}
        for one in some
        if (one.size.width, one.size.batch) == (d, B)
    ]
    kinds = list(dict.fromkeys(_named(name)["layer"] for name in models))
    axes = {
        "x": altair.X("V:Q", title="classes V", scale=_logarithmic()),
        "y": altair.Y("ms:Q", title="milliseconds a step", scale=_logarithmic()),
        "color": _colour("layer", kinds),
        "tooltip": ["contender:N", altair.Tooltip("V:Q", format=","), altair.Tooltip("ms:Q", format=".4g")],
    }
    dash = altair.StrokeDash("by:N", title=None, scale=altair.Scale(domain=[OURS, THEIRS], range=[[1, 0], [6, 4]]))
    drawn = altair.Chart(_data(lines)).mark_line().encode(strokeDash=dash, **axes)
    shape = altair.Shape("layer:N", sort=kinds, legend=None)
    dots = [
        altair.Chart(_data([one for one in points if one["by"] == by]))
        .mark_point(filled=by == OURS, size=60)
        .encode(**axes, shape=shape)
        for by in (OURS, THEIRS)
    ]
    caption = f"Time of a step over classes: {_where(setting)}, d = {d}, B = {B:,}. Points are measured, lines are the models."
    fastest = min((one for one in points if one["V"] == counts[-1]), key=lambda one: one["ms"], default=None)
    told = caption + (
        f" At {counts[-1]:,} classes {fastest['contender']} is the fastest of those measured, {fastest['ms']:.3g} ms a step."
        if fastest
        else ""
    )
    return Figure(_name("lines", setting), caption, altair.layer(drawn, *dots), told, "crossover_points")


def _named(contender: str) -> dict[str, Any]:
    """A contender as its layer and who made that, which a colour and dashes tell."""
    theirs = contender.startswith(PEER)
    return {"contender": contender, "layer": contender.removeprefix(PEER), "by": THEIRS if theirs else OURS}


def _map(setting: Setting, some: Sequence[Measured], models: Mapping[str, Model]) -> Figure:
    """A row for each width and batch, a column for classes, the colour of the winner."""
    import altair

    found = cells(setting, some, models)
    values = [
        {
            "V": f"{cell.size.classes:,}",
            "row": f"d {cell.size.width}, B {cell.size.batch:,}",
            "fastest": cell.winner,
            "then": cell.second or "",
            "times": cell.times,
            "told": f"{'' if cell.clear else '≈'}{cell.times:.2g}",
        }
        for cell in found
    ]
    columns, rows = ([str(one[name]) for one in values] for name in ("V", "row"))
    names = list(dict.fromkeys(cell.winner for cell in found))
    base = altair.Chart(_data(values)).encode(
        x=altair.X("V:O", title="classes V", sort=list(dict.fromkeys(columns))),
        y=altair.Y("row:N", title=None, sort=list(dict.fromkeys(rows))),
        tooltip=["fastest:N", "then:N", altair.Tooltip("times:Q", format=".3g"), "V:O", "row:N"],
    )
    cell = base.mark_rect().encode(color=_colour("fastest", list(models)).legend(values=names))
    chart = cell + base.mark_text(style="on-mark").encode(text="told:N")
    caption = (
        f"Who takes the least time for a step, by the models: {_where(setting)}. Numbers: how many times as long the next kind "
        "of output layer takes; ≈ where that is within the models' errors."
    )
    wins = {name: sum(cell.winner == name for cell in found) for name in dict.fromkeys(cell.winner for cell in found)}
    shares = ", ".join(
        f"{name} {count / len(found):.0%}" for name, count in sorted(wins.items(), key=lambda item: -item[1])
    )
    told = f"{caption} Shares of the map: {shares}."
    return Figure(_name("regions", setting), caption, chart, told, "crossover_regions")


def quality(curves: Mapping[int, Sequence[Curve]]) -> list[Figure]:
    """Perplexity against seconds, a picture for each number of classes."""
    import altair

    made = []
    for count, some in curves.items():
        values = [
            {"seconds": seconds, "perplexity": perplexity, "contender": one.who}
            for one in some
            for seconds, perplexity in one.points
        ]
        names = [one.who for one in some]
        chart = altair.Chart(_data(values)).mark_line(point=True)
        chart = chart.encode(
            x=altair.X("seconds:Q", title=some[0].clock, scale=_logarithmic()),
            y=altair.Y("perplexity:Q", title="perplexity of validation data", scale=_logarithmic()),
            color=_colour("contender", names),
            shape=altair.Shape("contender:N", sort=names, legend=None),
            tooltip=[
                "contender:N",
                altair.Tooltip("seconds:Q", format=".3g"),
                altair.Tooltip("perplexity:Q", format=".4g"),
            ],
        )
        lowest = min(some, key=lambda one: one.best[1])
        caption = f"Perplexity against {some[0].clock}, {count:,} classes of WikiText-2."
        told = f"{caption} The lowest is {lowest.best[1]:.4g}, by {lowest.who} after {lowest.best[0]:.0f} s."
        made.append(Figure(f"equal_quality_{count}", caption, chart, told, "equal_quality"))
    return made


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
