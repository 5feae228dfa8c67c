"""Unit collections: parameters per second of thousands of small MLPs by size and batch."""

from collections.abc import Sequence

from bench.report.section import Cell, Figure, Record, Section, Step, Table, ends

PLACE = 30
STEPS = [Step("units", ("units",), 85, 9, quick=("units",), memory=8)]
STEP = "units.step"
COMMAND = "python -m bench units"
PUBLISHED, PUBLISHED_PARAMETERS, PUBLISHED_FRAMES = "Piekniewski's PVM on a Titan X Pascal", 210_984_739, 21
SOURCE = "https://blog.piekniewski.info/2017/02/15/pvm-on-the-gpu-dev-update/"

OPENING = (
    "Each unit is an MLP of 150-49-150 with its own weights. A step is forward, error, backward and update of all units. With "
    "one example a step, the bound is memory: at least 8 bytes a parameter, or 16 with momentum. The share of bandwidth is "
    "that minimum over what `array += 1` moves in the same turns; units that stay in a cache may exceed it. "
    f"Published: {PUBLISHED_FRAMES} frames/s of a PVM with {PUBLISHED_PARAMETERS:,} parameters on a Titan X Pascal, "
    f"{PUBLISHED_FRAMES * PUBLISHED_PARAMETERS / 1e9:.1f} G parameters/s (Piekniewski, [2017]({SOURCE}))."
)


def section(records: Sequence[Record]) -> Section:
    """Shows rates over sizes and batches, with Piekniewski's."""
    steps = [one for one in records if one["work"] == STEP and one["device"] == "cpu"]
    if not steps:
        return Section("Units", [OPENING], gaps=["No collection of units has been measured."])
    plain = [one for one in steps if not one["params"]["momentum"]] or list(steps)
    sizes = {one["parameters"] for one in plain}
    size = PUBLISHED_PARAMETERS if PUBLISHED_PARAMETERS in sizes else max(sizes)
    return Section(
        "Units", [OPENING], [_by_size(plain), _by_batch(size, plain)], [_table(steps)], abstract=_abstract(size, plain)
    )


def _abstract(size: int, plain: Sequence[Record]) -> str:
    """Compares ours with the fastest rival at one example a step."""
    case = [one for one in plain if one["parameters"] == size and one["params"]["batch"] == 1]
    rates = {one["who"]: one["value"] for one in case}
    if "ours" not in rates:
        return ""
    text = f"Online, units of {size:,} parameters in all learn at {rates.pop('ours') / 1e9:.3g} G parameters/s"
    if rates:
        rival = max(rates, key=rates.__getitem__)
        text += f", and at {rates[rival] / 1e9:.3g} G in {rival}"
    return f"{text}."


def _table(steps: Sequence[Record]) -> Table:
    """Tabulates a row per size, batch and momentum, and a column per contender."""
    names = list(dict.fromkeys(one["who"] for one in steps))
    cases: dict[tuple[int, int, float], dict[str, Record]] = {}
    for one in steps:
        key = one["parameters"], one["params"]["batch"], one["params"]["momentum"]
        cases.setdefault(key, {})[one["who"]] = one
    rows: list[list[Cell]] = []
    for key, case in cases.items():
        rates = [case[who]["value"] / 1e9 if who in case else None for who in names]
        rows.append([*key, *rates, case["ours"]["bandwidth_share"] if "ours" in case else None])
    header = ["parameters", "batch", "momentum", *names, "share of bandwidth, ours"]
    return Table("units", "Training steps of units, G parameters/s", header, rows, COMMAND)


def _by_size(plain: Sequence[Record]) -> Figure:
    """Shows one example, without momentum, with the published figure."""
    chosen = [one for one in plain if one["params"]["batch"] == 1]
    points = [{"who": one["who"], "x": one["parameters"], "y": one["value"], **ends(one)} for one in chosen]
    points.append({"who": PUBLISHED, "x": PUBLISHED_PARAMETERS, "y": PUBLISHED_FRAMES * PUBLISHED_PARAMETERS})
    caption = "Online steps of one example without momentum, by number of parameters"
    return Figure("units-size", caption, "units", points, "parameters", "parameters/s")


def _by_batch(size: int, plain: Sequence[Record]) -> Figure:
    """Shows the published size, or the largest measured."""
    chosen = [one for one in plain if one["parameters"] == size]
    points = [{"who": one["who"], "x": one["params"]["batch"], "y": one["value"], **ends(one)} for one in chosen]
    caption, axes = f"Steps of units of {size:,} parameters by batch, without momentum", ("batch", "parameters/s")
    return Figure("units-batch", caption, "units", points, *axes, log="", kind="bars")
