"""Stages of a language model's step, on the ranks of this run at once; all of them call it, and rank 0 knows the figures."""

import itertools
from typing import Any

from bench.language import CONTEXT, HIDDEN, OUTPUTS, RATE, WIDTH, ZipfFeed
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.engine.trunk.mlp import Trunk
from hybrid.ranks.group import Group
from hybrid.readout import TreeReadout

STAGES = ("gather", "forward", "readout", "backward", "update", "scatter")
SIZES = {"width": OUTPUTS, "inputs": CONTEXT * WIDTH}
TRUNK = HIDDEN * (CONTEXT * WIDTH + 1) + OUTPUTS * (HIDDEN + 1)


def stages(batches: list[int], classes: int, ticks: int) -> list[dict[str, Any]]:
    """Mean seconds of each stage of a step on batches of some sizes, of the whole step ("wall"), and of what is
    in no stage ("rest"); nothing is exchanged.
    """
    group, found = Group(), []
    for batch in batches:
        feed = ZipfFeed(classes, batch)
        engine = Engine(
            Embedding(feed.rows, WIDTH, per_example=CONTEXT, rate=RATE, spread=0.1),
            Trunk(CONTEXT * WIDTH, HIDDEN, OUTPUTS, rate=RATE),
            TreeReadout(feed.counts, OUTPUTS, batch=batch, rate=RATE),
            micro_batches=1,
            decay=False,
            overlap=False,
            threads=1,
        )
        running = engine.run(feed)
        for _ in itertools.islice(running, 3):
            pass
        engine.trace.clear()
        group.barrier()
        for _ in itertools.islice(running, ticks):
            pass
        facts = engine.trace.summary()
        del running, engine
        count = max(facts["ticks"], 1)
        took = {name: facts["stages"][name] / count for name in STAGES}
        wall = facts["wall"] / count
        found.append({"batch": batch, "wall": wall, **took, "rest": max(wall - sum(took.values()), 1e-7)})
    return found
