"""What was promised of our works on a GPU: shares of the measured copy, of what memory bounds; and how a record fares."""

from typing import Any, NamedTuple

from bench.gpu_machine import SINGLY


class Bar(NamedTuple):
    """What was promised of ours at a work.

    of     "value", "bandwidth_share", "overlap", or "ratio": ours over the best rival whose name ends with `rival`
    """

    of: str
    least: float
    rival: str = ""


COPY = Bar("bandwidth_share", 0.88)
BARS: dict[tuple[str, tuple], tuple[Bar, ...]] = {
    ("units.step", (("batch", 1), ("momentum", 0.0))): (COPY, Bar("ratio", 8, " bmm + SGD")),
    ("units.step", (("batch", 1), ("momentum", 0.9))): (COPY,),
    ("units.ragged", (("batch", 1),)): (Bar("bandwidth_share", 0.6),),
    ("softmax.step", (("tf32", False),)): (Bar("ratio", 1.3),),
    ("softmax.step", (("tf32", True),)): (Bar("ratio", 1.3),),
    ("tree.step", (("batch", 1024), ("together", 1024))): (Bar("value", 50e6),),
    ("rows.gather", (("ids", 65_536),)): (Bar("bandwidth_share", 0.9),),
    ("pvm.frame", (("config", "flat210m"), ("momentum", 0.0))): (COPY,),
    ("pvm.frame", (("config", "small"), ("streams", 1), ("readouts", False))): (Bar("value", 5000),),
    ("overlap.tick", (("delay", 1),)): (Bar("overlap", 0.9),),
}


def bars_of(ours: dict) -> tuple[Bar, ...]:
    """The bars of a record: those whose work and sizes are its own."""
    for (work, params), bars in BARS.items():
        if work == ours["work"] and set(params) <= set(ours["params"].items()):
            return bars
    return ()


def judge(bar: Bar, ours: dict, records: list[dict]) -> dict[str, Any]:
    """Whether the bar is met; `found` and `met` are None where there was nothing to compare with, a rival or a ceiling."""
    if bar.of == "ratio":
        rivals = [record["value"] for record in records if _competes(record) and record["who"].endswith(bar.rival)]
        found = ours["value"] / max(rivals) if rivals else None
    else:
        found = ours.get(bar.of)
    return bar._asdict() | {"found": found, "met": None if found is None else found >= bar.least}


def _competes(record: dict) -> bool:
    return record["who"] not in ("ours", SINGLY)


def verdict(bar: dict[str, Any]) -> str:
    """A judged bar in words."""
    if bar["met"] is None:
        return f"bar of {bar['least']:g} ({bar['of']}): nothing to compare with"
    met = "met" if bar["met"] else "MISSED"
    if bar["of"] == "ratio":
        rival = bar["rival"].strip() or "the best rival"
        return f"bar {bar['least']:g} x {rival}: {met} at {bar['found']:.2f} x"
    if bar["of"] == "overlap":
        return f"bar overlap {bar['least']:g}: {met} at {bar['found']:.2f}"
    if bar["of"] == "bandwidth_share":
        return f"bar {bar['least']:.0%} of the copy: {met} at {bar['found']:.1%}"
    return f"bar {bar['least']:,g}: {met} at {bar['found']:,.4g}"
