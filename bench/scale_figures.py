"""What the model of scale is made of: measured on 1, 2 and 4 ranks of this machine. JSON-able."""

import statistics
from typing import Any

from bench.ranks import messages
from bench.ranks_language import SIZES, TRUNK
from bench.ranks_run import measured
from bench.scale_model import curve
from bench.scale_programs import MICRO_BATCHES, Curve, Language

RANKS = (1, 2, 4)
PARTS = (1, 2, 4, 16, 64, 256, 1 << 30)  # of a model, in turn; the last is a unit
BATCHES = (1, 4, 16, 64, 256, 1024)


def of_messages(quick: bool, repeat: int) -> dict[str, Any]:
    """Halos by ranks, see bench/ranks_messages.py."""
    return {
        str(ranks): [one for one in messages(ranks, quick, repeat) if one["work"] == "ranks.halo"]
        for ranks in RANKS[1:]
    }


def of_pvm(model: str, repeat: int) -> dict[str, Any]:
    """Samples of shares by how many compute at once, of the frame, and of ticks by ranks; what units take in those."""
    curves = {}
    for at_once in (1, 2):
        parts = [count for count in PARTS if count >= at_once]
        curves[str(at_once)] = measured("bench.ranks_pvm:curve", at_once, config=model, parts=parts, repeat=repeat)
    found = {str(ranks): measured("bench.ranks_pvm:ticks", ranks, config=model, repeat=repeat) for ranks in RANKS}
    ticks, units = ({ranks: one[name] for ranks, one in found.items()} for name in ("tick", "units"))
    return {"model": model, "curves": curves, "ticks": ticks, "units": units}


def of_overhead(repeat: int) -> dict[str, list[float]]:
    """Samples of what a tick takes beside its units and its exchanges, by ranks."""
    return {str(ranks): measured("bench.ranks_pvm:overhead", ranks, repeat=repeat) for ranks in (1, 2)}


def of_language(classes: int, batch: int, repeat: int) -> dict[str, Any]:
    """Stages by how many compute at once, and samples of whole steps by ranks."""
    batches = [one for one in BATCHES if one <= batch]
    options: dict[str, Any] = {"classes": classes, "ticks": 8 * repeat}
    stages = {
        str(at_once): measured("bench.ranks_language:stages", at_once, batches=batches, **options) for at_once in (1, 2)
    }
    options |= {"batch": batch, "micro_batches": MICRO_BATCHES, "repeat": repeat, "ticks": 8}
    ticks = {str(ranks): measured("bench.ranks_language:steps", ranks, **options) for ranks in RANKS}
    return {"classes": classes, "batch": batch, "stages": stages, "ticks": ticks}


def language_model(found: dict[str, Any], at_once: int) -> Language:
    """The model of what `of_language` found, with the compute of so many ranks at once."""
    stages = found["stages"][str(at_once)]
    names = [name for name in stages[0] if name not in ("batch", "wall")]
    return Language(
        {name: curve([(one["batch"], max(one[name], 1e-9)) for one in stages]) for name in names}, **SIZES, trunk=TRUNK
    )


def pvm_curve(found: dict[str, Any], at_once: int) -> tuple[Curve, float]:
    """Seconds by weights, of so many ranks at once, and of a frame."""
    points = [(one["weights"], statistics.median(one["samples"])) for one in found["curves"][str(at_once)]]
    frames = [seconds for weights, seconds in points if weights == 0]
    return curve([point for point in points if point[0]]), frames[0]
