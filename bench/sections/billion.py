"""More than a billion parameters: a tree learns on the cores, and what a dense softmax of the same size takes."""

from collections.abc import Sequence
from typing import Any

from bench.section import Figure, Section, Table
from bench.steps import Step

COMMAND = "python -m bench billion --json results.jsonl"
TITLE = "More than a billion parameters"
PLACE = 15
STEPS = [Step("billion", ("billion",), 65, 4, quick=("billion",), memory=17)]

Record = dict[str, Any]


def section(records: Sequence[Record]) -> Section:
    """Of records of `bench billion`."""
    steps = [one for one in records if one["work"] == "billion.step"]
    tree = next((one for one in steps if one["contender"] == "tree"), None)
    if tree is None:
        return Section(TITLE, [], gaps=[f"Nothing was measured: `{COMMAND}` does it."])
    lacking = [one for one in records if one["work"] == "billion.impossible"]
    dense = [one for one in steps if one is not tree]
    answer = [_learned(tree), *(_beside(tree, one) for one in dense), *map(_impossible, lacking)]
    gaps = [] if dense or lacking else ["No dense softmax of the same size was tried."]
    return Section(TITLE, answer, [_curve(tree)], [_speeds(steps), _losses(tree)], gaps)


def _learned(tree: Record) -> str:
    """What the tree did."""
    (_, _, first), (examples, seconds, last) = tree["curve"][0], tree["curve"][-1]
    V, d = tree["params"]["classes"], tree["params"]["width"]
    return (
        f"A tree over {V:,} classes, d = {d}, has **{tree['parameters'] / 1e9:.3g} G parameters**. Trained on Zipf's targets "
        f"with {tree['threads']} threads, the loss of held-out examples fell from {first:.3f} to {last:.3f} nats "
        f"(asked: by {tree['fall']:g}) after {examples:,} examples, in {seconds:.1f} s of learning, {tree['value']:,.0f} "
        f"examples/s. The process held {_gigabytes(tree['memory'])} at most, of which the parameters are "
        f"{4 * tree['parameters'] / 1e9:.2f} GB."
    )


def _beside(tree: Record, dense: Record) -> str:
    """A dense softmax that ran."""
    examples = tree["curve"][-1][0]
    hours = examples / dense["value"] / 3600
    return (
        f"{_name(dense)} of the same size ({dense['parameters'] / 1e9:.3g} G parameters) ran too: {dense['value']:.3g} "
        f"examples/s, 1/{tree['value'] / dense['value']:,.0f} of the tree's, with {_gigabytes(dense['memory'])}. As many "
        f"examples as the tree learned from would take it {hours:.3g} hours: worked out of its steps, not measured; its loss "
        "may fall faster an example."
    )


def _impossible(record: Record) -> str:
    needed, free = (record["quality"][name][0] for name in ("bytes needed", "bytes free"))
    return (
        f"{record['who'].capitalize()} of the same size was impossible: by the sizes of its arrays it takes {needed / 1e9:.1f} "
        f"GB, and {free / 1e9:.1f} GB were free."
    )


def _name(record: Record) -> str:
    return "Our full softmax" if record["contender"] == "full" else record["who"]


def _gigabytes(size: int | None) -> str:
    return "an unknown size" if size is None else f"{size / 1e9:.2f} GB"


def _speeds(steps: Sequence[Record]) -> Table:
    header = ["who", "parameters", "V", "d", "B", "threads", "examples/s", "from", "to", "peak memory, GB"]
    rows = []
    for one in steps:
        sizes = [one["parameters"], one["params"]["classes"], one["params"]["width"], one["batch"], one["threads"]]
        ends = one.get("interval") or [None, None]
        name = "our tree" if one["contender"] == "tree" else _name(one)
        rows.append([name, *sizes, one["value"], *ends, one["memory"] and one["memory"] / 1e9])
    caption = (
        "Steps of output layers of the same size: medians with their 95 % intervals; the peak is of the whole process."
    )
    return Table("billion", caption, header, rows, COMMAND)


def _losses(tree: Record) -> Table:
    caption = "The tree's loss on held-out examples as it learns; seconds are those of learning alone."
    return Table(
        "billion_loss", caption, ["examples", "seconds", "nats"], [list(point) for point in tree["curve"]], COMMAND
    )


def _curve(tree: Record) -> Figure:
    import altair

    values = [dict(zip(("examples", "seconds", "nats"), point, strict=True)) for point in tree["curve"]]
    chart = altair.Chart(altair.Data(values=values)).mark_line(point=True)
    chart = chart.encode(
        x=altair.X("seconds:Q", title="seconds of learning"),
        y=altair.Y("nats:Q", title="loss of held-out examples, nats").scale(zero=False),
        tooltip=[altair.Tooltip("examples:Q", format=","), altair.Tooltip("nats:Q", format=".4g")],
    )
    (_, _, first), (_, seconds, last) = tree["curve"][0], tree["curve"][-1]
    caption = f"Loss of a tree of {tree['parameters'] / 1e9:.3g} G parameters as it learns."
    return Figure(
        "billion_loss",
        caption,
        chart,
        f"{caption} From {first:.3f} to {last:.3f} nats in {seconds:.1f} s.",
        "billion_loss",
    )
