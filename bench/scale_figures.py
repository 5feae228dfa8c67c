"""What the model of scale is made of: measured on 1, 2 and 4 ranks of this machine. JSON-able."""

import statistics
from typing import Any

import numpy as np

from bench import balance
from bench.ranks import messages
from bench.ranks_language import SIZES, TRUNK
from bench.ranks_replay import told
from bench.ranks_run import measured
from bench.scale_model import curve
from bench.scale_programs import Curve, Language, language
from cpu.tree import huffman, of_pointers

RANKS = (1, 2, 4)
PARTS = (1, 2, 4, 16, 64, 256, 1 << 30)  # of a model, in turn; the last is a unit
BATCHES = (1, 4, 16, 64, 256, 1024)
MOST_OWNERS = 256  # of a tree


def of_messages(quick: bool, repeat: int) -> dict[str, Any]:
    """Halos by ranks, see bench/ranks_messages.py."""
    return {
        str(ranks): [one for one in messages(ranks, quick, repeat) if one["work"] == "ranks.halo"]
        for ranks in RANKS[1:]
    }


def of_pvm(model: str, repeat: int) -> dict[str, Any]:
    """Samples of shares by how many compute at once, of the frame, and of ticks by ranks."""
    curves = {}
    for at_once in (1, 2):
        parts = [count for count in PARTS if count >= at_once]
        curves[str(at_once)] = measured("bench.ranks_pvm:curve", at_once, config=model, parts=parts, repeat=repeat)
    ticks = {
        str(ranks): measured("bench.ranks_pvm:ticks", ranks, config=model, repeat=repeat)["tick"] for ranks in RANKS
    }
    return {"model": model, "curves": curves, "ticks": ticks}


def of_overhead(repeat: int) -> dict[str, list[float]]:
    """Samples of what a tick takes beside its units and its exchanges, by ranks."""
    return {str(ranks): measured("bench.ranks_pvm:overhead", ranks, repeat=repeat) for ranks in (1, 2)}


def of_language(classes: int, batch: int, repeat: int) -> dict[str, Any]:
    """Stages by how many compute at once, the largest owner's share by ranks, and a step's messages beside as much compute."""
    batches = [one for one in BATCHES if one <= batch]
    stages = {
        str(at_once): measured(
            "bench.ranks_language:stages", at_once, batches=batches, classes=classes, ticks=8 * repeat
        )
        for at_once in (1, 2)
    }
    ticks = {"1": [stages["1"][-1]["wall"]]}
    found = {"classes": classes, "batch": batch, "stages": stages, "largest": largest(classes), "ticks": ticks}
    model = language_model(found, 2)
    for ranks in RANKS[1:]:
        programs = told(language(model, ranks, batch))
        ticks[str(ranks)] = measured("bench.ranks_replay:seconds", ranks, programs=programs, repeat=repeat)
    return found


def largest(classes: int) -> dict[str, float]:
    """The largest owner's share of a tree's visits by ranks, up to 1,024, counted; of more owners than a tree can have, the
    root's.
    """
    counts = np.maximum(1e9 / np.arange(1, classes + 1), 1).astype(np.int64)
    tree, ways, found = huffman(counts), [], {"1": 1.0}
    for target in balance.drawn(counts):
        ways.append(balance.paths(tree, target))
    visits = sum(int((way >= 0).sum()) for way in ways)
    for ranks in (2**power for power in range(1, 11)):
        if ranks <= MOST_OWNERS:
            owner = of_pointers(tree.leaf_up, tree.node_up, counts, ranks).owner
            found[str(ranks)] = sum(balance.by_owner(way, owner) for way in ways) / visits
        else:
            found[str(ranks)] = sum(map(len, ways)) / visits
    return found


def language_model(found: dict[str, Any], at_once: int) -> Language:
    """The model of what `of_language` found, with the compute of so many ranks at once."""
    stages = found["stages"][str(at_once)]
    by_batch = {
        name: curve([(one["batch"], max(one[name], 1e-9)) for one in stages]) for name in stages[0] if name != "batch"
    }
    dense = {name: by_batch[name] for name in ("gather", "forward", "backward", "update", "scatter", "rest")}
    shares = {int(ranks): share for ranks, share in found["largest"].items()}
    return Language(dense, by_batch["readout"], shares, **SIZES, trunk=TRUNK)


def pvm_curve(found: dict[str, Any], at_once: int) -> tuple[Curve, float]:
    """Seconds by weights, of so many ranks at once, and of a frame."""
    points = [(one["weights"], statistics.median(one["samples"])) for one in found["curves"][str(at_once)]]
    frames = [seconds for weights, seconds in points if weights == 0]
    return curve([point for point in points if point[0]]), frames[0]
