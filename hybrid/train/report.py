"""A report as lines for a person."""

from typing import Any

from ..engine import trace


def lines(report: dict[str, Any]) -> str:
    """A line a figure: its name, and words or a number; stages of a tick on one line; all else is left out."""
    shown = {name.replace("_", " "): value for name, value in report.items() if isinstance(value, str | int | float)}
    shown |= {"stages": trace.line(report["stages"])} if "stages" in report else {}
    width = max(map(len, shown), default=0)
    return "\n".join(f"{name:<{width}}  {_plain(value)}" for name, value in shown.items())


def _plain(value: str | int | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else f"{value:,.0f}"
