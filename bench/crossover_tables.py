"""The numbers of the crossover map: points, constants of the models with their errors, regions, crossovers, equal quality."""

from collections.abc import Mapping, Sequence

from bench.cost_model import Model
from bench.crossover_costs import Size, amounts
from bench.crossover_fit import Measured, Setting
from bench.crossover_points import BATCH, WIDTH
from bench.crossover_regions import Cell, classes, crossover, regions
from bench.equal_quality import FILES, Curve, targets
from bench.section import Cell as Value
from bench.section import Table

Found = Mapping[Setting, Sequence[Measured]]
Fitted = Mapping[Setting, Mapping[str, Model]]
REPORT = "python -m bench report " + " ".join(f"bench/results/{name}" for name in FILES)


def speed(found: Found, fitted: Fitted, command: str) -> list[Table]:
    """All that is of steps a second."""
    return [
        *(_short(setting, some, command) for setting, some in found.items() if _in_short(setting, found)),
        _points(found, fitted, command),
        _constants(fitted, command),
        _regions(found, fitted, command),
        _crossovers(found, fitted, command),
    ]


def _place(setting: Setting) -> str:
    return f"{setting.threads} threads" if setting.device == "cpu" else setting.device


def _in_short(setting: Setting, found: Found) -> bool:
    """The CPU with most threads."""
    return setting.device == "cpu" and setting.threads == max(one.threads for one in found if one.device == "cpu")


def _short(setting: Setting, some: Sequence[Measured], command: str) -> Table:
    """A row a number of classes, a column a contender, at the width and the batch that all classes were measured at."""
    at = {(one.size.classes, one.contender): 1e3 * one.seconds for one in some if one.size[1:] == (WIDTH, BATCH)}
    names = list(dict.fromkeys(name for _, name in at))
    rows: list[list[Value]] = [[V, *(at.get((V, name)) for name in names)] for V in sorted({V for V, _ in at})]
    work = {"output": "the output layer alone", "step": "trunk and output layer"}[setting.work]
    caption = (
        f"Milliseconds of a training step of {work}, by classes: d = {WIDTH}, B = {BATCH:,}, {_place(setting)}. A dash: it is "
        "taken to last over a second, or needs too much memory."
    )
    return Table(f"crossover_short_{setting.work}", caption, ["classes", *names], rows, command)


def _points(found: Found, fitted: Fitted, command: str) -> Table:
    rows: list[list[Value]] = []
    for setting, some in found.items():
        for one in some:
            guess = fitted[setting][one.contender].seconds(amounts(one.contender, setting.work, one.size))
            ends: list[Value] = [None if end is None else 1e3 * end for end in (one.low, one.high)]
            times: list[Value] = [1e3 * one.seconds, *ends, 1e3 * guess, guess / one.seconds - 1]
            rows.append([setting.work, one.contender, _place(setting), *one.size, one.size.batch / one.seconds, *times])
    header = [
        "work",
        "contender",
        "on",
        "V",
        "d",
        "B",
        "examples/s",
        "ms a step",
        "from",
        "to",
        "model, ms",
        "model's error",
    ]
    caption = "Every measured point: the median with its 95 % interval, and what the model that is fitted to all of them says."
    return Table("crossover_points", caption, header, rows, command)


def _constants(fitted: Fitted, command: str) -> Table:
    rows: list[list[Value]] = []
    for setting, by in fitted.items():
        for name, model in by.items():
            told = ", ".join(f"{1e9 * value:.3g} a {_one(thing)}" for thing, value in model.constants.items() if value)
            rows.append([setting.work, name, _place(setting), told, len(model.errors) or 1, model.error, model.worst])
    header = ["work", "contender", "on", "nanoseconds", "points", "median error", "largest error"]
    caption = (
        "What the models found: nanoseconds of one of each thing that a step takes. Errors are of points left out, one at a "
        "time, as a share of what was measured there."
    )
    return Table("crossover_model", caption, header, rows, command)


def _one(thing: str) -> str:
    return thing.removesuffix("es") if thing == "batches" else thing.removesuffix("s")


def cells(setting: Setting, some: Sequence[Measured], models: Mapping[str, Model]) -> list[Cell]:
    """The regions of a setting: classes from the least to the most that were measured, at the measured widths and batches."""
    counts, widths, batches = (sorted({one.size[place] for one in some}) for place in range(3))
    sizes = [Size(count, d, B) for d in widths for B in batches for count in classes(counts[0], counts[-1])]
    return regions(models, setting.work, sizes)


def _regions(found: Found, fitted: Fitted, command: str) -> Table:
    """Neighbouring classes of one winner are one row."""
    rows: list[list[Value]] = []
    for setting, some in found.items():
        last: list[Value] = []
        for cell in cells(setting, some, fitted[setting]):
            V, d, B = cell.size
            key: list[Value] = [setting.work, _place(setting), d, B]
            if rows and last == [*key, cell.winner]:
                rows[-1][5] = V
                rows[-1][8] = min(_number(rows[-1][8]), cell.times)
            else:
                rows.append([*key, V, V, cell.winner, cell.second, cell.times])
            last = [*key, cell.winner]
    header = ["work", "on", "d", "B", "V from", "V to", "fastest", "then", "times as long, at least"]
    caption = (
        "Who takes the least time for a step, by the models, and the next of another kind. They are different models of the "
        "data: see equal quality."
    )
    return Table("crossover_regions", caption, header, rows, command)


def _number(value: Value) -> float:
    return float(value) if value is not None else float("inf")


def _crossovers(found: Found, fitted: Fitted, command: str) -> Table:
    rows: list[list[Value]] = []
    for setting, some in found.items():
        models = fitted[setting]
        counts, widths, batches = (sorted({one.size[place] for one in some}) for place in range(3))
        for tree in (name for name in models if name.startswith("tree")):
            for other in (name for name in models if "tree" not in name):
                for d in widths:
                    for B in batches:
                        at = crossover(models, setting.work, other, tree, Size(counts[0], d, B), counts[-1])
                        rows.append([setting.work, _place(setting), tree, other, d, B, _said(at, counts)])
    header = ["work", "on", "tree", "other", "d", "B", "faster from V on"]
    caption = (
        "From how many classes on a step of a tree takes less time than one of another output layer, by the models."
    )
    return Table("crossover_from", caption, header, rows, command)


def _said(at: int | None, counts: Sequence[int]) -> Value:
    if at is None:
        return f"not up to {counts[-1]:,}"
    return f"{counts[0]:,}, the least measured" if at == counts[0] else at


def quality(curves: Mapping[int, Sequence[Curve]]) -> list[Table]:
    """Who reaches a perplexity, and when."""
    rows: list[list[Value]] = []
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
