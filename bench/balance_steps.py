"""How evenly steps other than a tree's can be shared by 2 to 64 threads: the largest share that one has, counted, not timed.

What a loop deals are its parts: ids, units, blocks of examples, shards. A thread that is free takes the next one, as TBB's
threads do; OpenMP's have theirs dealt before, which is no more even. One over a share bounds the speedup.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bench.gpu_units import PARAMETERS, ragged_layout
from cpu import shards, shared_negatives
from cpu.array import Array
from cpu.pvm import _cuts
from cpu.rows import owner
from cpu.threads import PARTS
from hybrid.pvm import presets
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.rules import wire
from hybrid.readout.full import MOST_PARTS

CLASSES, BATCH, BATCHES, NEGATIVES = 100_000, 1024, 16, 1024
PVM = "small"


class Steps(NamedTuple):
    """The largest thread's share of each step, of what it does in rows, or parameters, of matrices.

    gather      rows of a batch of ids
    scatter     the same rows moved, each by one thread; Zipf's law
    met         what the id that is met most has of them: the least there is
    units       a collection of ragged MLPs, a step with one example
    pvm         a tick of a Predictive Vision Model, one stream
    full        a pass of a full softmax over its classes, which have as many parts as by default
    parted      the same with the most parts
    sampled     examples of sampled softmax
    negatives   its negatives' gradients
    sampled_parted, negatives_parted  the same with the most parts
    """

    threads: int
    gather: float
    scatter: float
    met: float
    units: float
    pvm: float
    full: float
    parted: float
    sampled: float
    negatives: float
    sampled_parted: float
    negatives_parted: float


def steps(thread_counts: tuple[int, ...]) -> Iterator[Steps]:
    """What is counted, for each number of threads."""
    ids, ragged, tape = drawn(), ragged_layout(PARAMETERS), _tape()
    sampled = [shared_negatives.blocks(BATCH, NEGATIVES, parts) for parts in (None, MOST_PARTS)]
    for threads in thread_counts:
        yield Steps(
            threads,
            _even(BATCH, threads),
            most(np.array([[owner.py_func(row, threads) for row in batch] for batch in ids])),
            most(ids),
            largest(_summed(np.diff(ragged.w_at), max(1, len(ragged.inputs) // (PARTS * threads))), threads),
            largest(_tick(tape, threads), threads),
            largest(_shards(shards.SHARDS), threads),
            largest(_shards(MOST_PARTS), threads),
            *(
                largest(blocks(*pair), threads)
                for sizes in sampled
                for pair in zip((BATCH, NEGATIVES), sizes, strict=True)
            ),
        )


def largest(parts: Array, threads: int) -> float:
    """The share of the thread that has the most, where each part goes to the thread that is free first."""
    loads = np.zeros(threads)
    for part in parts:
        loads[loads.argmin()] += part
    return float(loads.max() / loads.sum())


def blocks(count: int, size: int) -> Array:
    """Sizes of blocks: all of one size but the last."""
    return np.diff(np.append(np.arange(0, count, size), count))


def drawn() -> Array:
    """Batches of ids (BATCHES, BATCH), each as often as Zipf's law says."""
    ends = np.cumsum(1 / np.arange(1, CLASSES + 1))
    return np.searchsorted(ends, ends[-1] * np.random.default_rng(0).random((BATCHES, BATCH)), "right")


def most(labels: Array) -> float:
    """The share of the label that a batch has most often, the mean of all batches."""
    return float(np.mean([np.bincount(batch).max() for batch in labels]) / labels.shape[1])


def table(found: list[Steps]) -> str:
    """As Markdown."""
    named = (
        "rows read",
        "rows moved",
        "units",
        f"PVM `{PVM}`",
        "full softmax",
        f"{MOST_PARTS} parts",
        "sampled: examples",
        "its negatives",
        f"{MOST_PARTS} parts: examples",
        "negatives",
    )
    lines = [
        f"Other steps: {BATCHES} batches of {BATCH:,} ids of {CLASSES:,} by Zipf's law, of which the one that is met most has",
        f"{found[0].met:.1%}; {PARAMETERS:,} parameters of ragged units; {CLASSES:,} classes; {BATCH:,} examples with",
        f"{NEGATIVES:,} negatives.",
        "",
        f"| threads | even | {' | '.join(named)} |",
        "|" + "---|" * (2 + len(named)),
    ]
    for one in found:
        shares = one.gather, one.scatter, *one[4:]
        lines.append(f"| {one.threads} | {1 / one.threads:.1%} | {' | '.join(map('{:.1%}'.format, shares))} |")
    return "\n".join(lines)


def _even(count: int, threads: int) -> float:
    return -(-count // threads) / count


def _summed(sizes: Array, count: int) -> Array:
    """Parts of so many units each."""
    return np.add.reduceat(sizes, np.arange(0, len(sizes), count))


def _shards(count: int) -> Array:
    """Classes of the parts of a full softmax."""
    return np.diff([shards.part(shard, count, CLASSES)[0] for shard in range(count)] + [CLASSES])


def _tape() -> tuple[object, int]:
    """The layout of a Predictive Vision Model's units, and how many parameters they have."""
    config = presets.load(PVM)[0]
    layout = tape_layout(wire(config), config)
    return layout, int((layout.rows.astype(np.int64) * (layout.columns + 1)).sum())


def _tick(tape: tuple[object, int], threads: int) -> Array:
    """Parameters of the parts of a tick."""
    layout, size = tape
    starts = np.append(layout.w_at[layout.layer_at[:-1]], size)  # type: ignore[attr-defined]
    return np.diff(starts[_cuts(layout, size, 0, len(starts) - 1, PARTS * threads)])
