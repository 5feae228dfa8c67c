"""How even a tick of a Predictive Vision Model is on a GPU: weights that the busiest place for a block has, counted."""

import argparse
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpu.pvm_plan import CLUSTER, Plan
from hybrid.pvm import presets
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.rules import wire

COUNTS = True  # and times nothing: it runs beside other work
CONFIGS = ("small", "med", "med_exp", "large", "classic", "flat210m")
H100: Any = SimpleNamespace(  # what a plan asks of a device; its tables stay here
    capability=(9, 0),
    multiprocessors=132,
    shared_block=232_448,
    shared_multiprocessor=233_472,
    from_host=lambda array: array,
)


def busiest(groups: np.ndarray, places: int) -> float:
    """Weights of the place that has most, where each group of blocks begins as soon as it finds as many places at rest.

    groups  (N, G) weights of the blocks of each group, in the order of launch
    """
    loads = np.zeros(places)
    for group in groups:
        chosen = np.argsort(loads, kind="stable")[: group.size]
        loads[chosen] = loads[chosen].max() + group
    return float(loads.max())


def balance(config: str, clusters: bool) -> tuple[int, float]:
    """How many blocks a tick of one stream has, and the weights of the busiest place over the mean of all places."""
    options = presets.load(config)[0]
    layout = tape_layout(wire(options), options)
    weights = np.add.reduceat(layout.rows.astype(int) * (layout.columns + 1), layout.layer_at[:-1])
    plan, places = Plan(H100, layout), 2 * H100.multiprocessors
    plan.clusters = clusters
    clusters &= plan.shares(0, len(plan))
    units: Any = plan.units(0, len(plan), False, clusters)  # a NumPy array here
    loads = np.where(units["blocks"] > 0, weights[units["number"]] / np.maximum(units["blocks"], 1), 0)
    return units.size, busiest(loads.reshape(-1, CLUSTER if clusters else 1), places) * places / weights.sum()


def run(arguments: argparse.Namespace) -> int:
    """Print the table; nothing is timed."""
    print(
        "| configuration | blocks, a block a unit | busiest place / mean | blocks, in clusters | busiest place / mean |"
    )
    print("|---|---|---|---|---|")
    for config in CONFIGS:
        (alone, before), (together, after) = balance(config, False), balance(config, True)
        print(f"| {config} | {alone:,} | {before:.2f} | {together:,} | {after:.2f} |")
    return 0
