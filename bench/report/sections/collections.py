"""Unit collections: parameters per second of thousands of small MLPs by size and batch."""

from collections.abc import Sequence

from bench.report.section import Cell, Figure, Record, Section, Step, Table, ends

PLACE = 30
STEPS = [Step("units", ("units",), 85, 13, quick=("units",), memory=8)]
STEP = "units.step"
COMMAND = "python -m bench units"
PUBLISHED, PUBLISHED_PARAMETERS, PUBLISHED_FRAMES = "Piekniewski's PVM on a Titan X Pascal", 210_984_739, 21
SOURCE = "https://blog.piekniewski.info/2017/02/15/pvm-on-the-gpu-dev-update/"
HEADER = [
    *("parameters", "batch", "momentum", "who", "threads", "parameters/s", "lowest of 95 %", "highest of 95 %"),
    *("bytes needed", "bytes spent", "share of bandwidth", "source"),
]

OPENING = (
    "Each unit is an MLP of 150-49-150 with weights of its own; a step is forward, error, backward and update of all. "
    "Online a step is bound by memory: it cannot move fewer than 8 bytes a parameter, or 16 with momentum. Bytes spent are "
    "what this machine's memory, measured in the same turns, could have moved while a parameter took its step; "
    "a collection that stays in a cache may need fewer. "
    f"Piekniewski ([2017]({SOURCE})) says {PUBLISHED_FRAMES} frames a second of {PUBLISHED_PARAMETERS:,} parameters on a "
    f"Titan X Pascal: {PUBLISHED_FRAMES * PUBLISHED_PARAMETERS / 1e9:.1f} G parameters/s."
)


def section(records: Sequence[Record]) -> Section:
    """Shows rates over sizes and batches, with Piekniewski's."""
    steps = [one for one in records if one["work"] == STEP and "bytes_spent" in one]  # a device's have none
    answer, figures, tables, gaps = [OPENING], [], [], []
    if steps:
        alt = _summary(steps)
        answer.append(alt)
        caption = "A parameter is used and moved once a step; bytes are those of one parameter and step"
        tables.append(Table("collections", caption, HEADER, [*map(_row, steps), _published_row()], COMMAND))
        figures += [_by_size(steps, alt), _by_batch(steps, alt)]
    else:
        gaps.append("No collection of units has been measured.")
    return Section("Collections of small networks", answer, figures, tables, gaps)


def _summary(steps: Sequence[Record]) -> str:
    lines = []
    for params in {repr(one["params"]): one["params"] for one in steps}.values():
        case = [one for one in steps if one["params"] == params]
        ours = next(one for one in case if one["who"] == "ours")
        rival = max((one for one in case if one["who"] != "ours"), key=lambda one: one["value"], default=None)
        share = ours["bandwidth_share"]
        line = (
            f"* {ours['parameters']:,} parameters, batch {params['batch']}, momentum {params['momentum']:g}: ours "
            f"{ours['value'] / 1e9:.3g} G parameters/s, {share:.0%} of the bandwidth"
        )
        if rival:
            line += f"; {ours['value'] / rival['value']:.2f} times {rival['who']}"
        lines.append(line)
    return "\n".join(lines)


def _row(one: Record) -> list[Cell]:
    params = one["params"]
    low, high = one.get("interval") or (None, None)
    return [
        *(one["parameters"], params["batch"], params["momentum"], one["who"], one["threads"], one["value"], low, high),
        *(one["bytes_least"], one["bytes_spent"], one["bandwidth_share"], "measured here"),
    ]


def _published_row() -> list[Cell]:
    """Returns the published row: he timed a frame of a video model, with batch 1."""
    rate = float(PUBLISHED_FRAMES * PUBLISHED_PARAMETERS)
    return [PUBLISHED_PARAMETERS, 1, None, PUBLISHED, None, rate, None, None, None, None, None, "published"]


def _by_size(steps: Sequence[Record], alt: str) -> Figure:
    """Shows one example, without momentum, with the published figure."""
    chosen = [one for one in steps if one["params"]["batch"] == 1 and not one["params"]["momentum"]]
    points = [{"who": one["who"], "x": one["parameters"], "y": one["value"], **ends(one)} for one in chosen]
    points.append({"who": PUBLISHED, "x": PUBLISHED_PARAMETERS, "y": PUBLISHED_FRAMES * PUBLISHED_PARAMETERS})
    caption = "Online steps of one example without momentum, by size"
    return Figure("collections-size", caption, alt, "collections", points, "parameters", "parameters/s")


def _by_batch(steps: Sequence[Record], alt: str) -> Figure:
    """Shows the published size, or the largest measured."""
    plain = [one for one in steps if not one["params"]["momentum"]] or list(steps)
    sizes = {one["parameters"] for one in plain}
    size = PUBLISHED_PARAMETERS if PUBLISHED_PARAMETERS in sizes else max(sizes)
    chosen = [one for one in plain if one["parameters"] == size]
    points = [{"who": one["who"], "x": one["params"]["batch"], "y": one["value"], **ends(one)} for one in chosen]
    caption, axes = f"Steps of {size:,} parameters by batch, without momentum", ("batch", "parameters/s")
    return Figure("collections-batch", caption, alt, "collections", points, *axes, log="", kind="bars")
