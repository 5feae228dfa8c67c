"""The picture of a sweep: for every option that varies, the figure of each trial against its value."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..train import plots
from .records import Record
from .space import Choice, Range, Space

ACROSS = 3  # panels beside each other


def draw(path: Path, records: Sequence[Record], space: Space, figure: str, length: str) -> None:
    """Write it as PNG and PDF.

    records  best first; failed ones have no figure and no point
    length   what lengths are counted in
    """
    rows = -(-len(space) // ACROSS)
    with plots.drawn(path, 0.7 + 2.4 * min(len(space), ACROSS), 0.4 + 2.4 * rows) as picture:
        fill(picture, records, space, figure, length)


def fill(picture: Any, records: Sequence[Record], space: Space, figure: str, length: str) -> None:
    """Draw the panels on a matplotlib figure: of halving a colour a length, and a ring around the best."""
    axes = list(picture.subplots(-(-len(space) // ACROSS), min(len(space), ACROSS), sharey=True, squeeze=False).flat)
    for axis in axes[len(space) :]:
        axis.remove()
    lengths = sorted({record.length or 0 for record in records})
    for axis, (name, offered) in zip(axes, space.items(), strict=False):
        along = _places(offered)
        for number, reached in enumerate(lengths):
            drawn = [record for record in records if record.value is not None and (record.length or 0) == reached]
            x, y = [along(record.options[name]) for record in drawn], [record.value for record in drawn]
            axis.scatter(x, y, s=14, color=f"C{number}", label=f"{reached:,} {length}")
        ring = {"s": 70, "facecolors": "none", "edgecolors": "C3", "label": "best"}
        axis.scatter([along(records[0].options[name])], [records[0].value], **ring)
        axis.set_xlabel(name)
        _scale(axis, offered)
    for axis in axes[::ACROSS]:
        axis.set_ylabel(figure)
    if len(lengths) > 1:
        labels = axes[0].get_legend_handles_labels()
        picture.legend(*labels, loc="outside upper center", ncols=len(lengths) + 1, fontsize=8)


def _numeric(offered: Choice | Range) -> bool:
    return isinstance(offered, Range) or all(type(value) in (int, float) for value in offered.values)


def _places(offered: Choice | Range) -> Any:
    """Where a value stands along an axis: of names, and of true and false, their place in the file."""
    return float if _numeric(offered) else offered.outermost.index


def _scale(axis: Any, offered: Choice | Range) -> None:
    """The ticks of an axis: names, or plain numbers, evenly in the logarithm where they were drawn so."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    if not _numeric(offered):
        axis.set_xlim(-0.5, len(offered.outermost) - 0.5)
        axis.set_xticks(range(len(offered.outermost)), [str(value) for value in offered.outermost])
    elif isinstance(offered, Range) and offered.log:
        axis.set_xscale("log")
        axis.set_xlim(offered.low / 1.2, offered.high * 1.2)
        few = offered.high / offered.low < 100
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
