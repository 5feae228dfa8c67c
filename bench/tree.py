"""Hierarchical softmax: one training step of 1 M and 10 M classes, ours beside fastText and PyTorch."""

import importlib.metadata
import itertools
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np

from bench.measure import Work, append, measure, show
from cpu import tree_softmax
from cpu.aligned import empty
from cpu.tree import Tree, huffman, path

WIDTH, BATCH, RATE = 128, 1024, 0.02
BATCHES = 64  # different ones, so that the rows of one are gone from the cache when it comes again
MODES = ("deterministic", "hogwild")


def run(arguments) -> None:
    """Zipf(1) targets on their Huffman tree; 10 M classes alone, for time and memory, and 1 M beside the peers."""
    small, large = (20_000, 50_000) if arguments.quick else (1_000_000, 10_000_000)
    task = Task(large, arguments.threads)  # first: the peak of the memory is that of the whole process so far
    records = measure([ours(task, mode) for mode in MODES], arguments.repeat)
    _show(records, arguments)
    _memory(task)
    del task

    task = Task(small, arguments.threads)
    tree, adaptive = torch_tree(task), torch_adaptive(task)
    with tempfile.TemporaryDirectory() as folder:
        lines = 100_000 if arguments.quick else 2_000_000
        rivals = [fasttext(task, mode, Path(folder) / "labels.txt", lines) for mode in MODES[:1]]
        works = [ours(task, mode) for mode in MODES]
        records = measure([*works, tree, adaptive, *rivals], arguments.repeat)
    for mode in MODES:  # peers know no modes: their records stand beside both of ours
        beside = [record | {"params": task.params(mode)} for record in records if record["who"] != "ours"]
        _show([record for record in records if record["params"]["mode"] == mode and record["who"] == "ours"] + beside, arguments)


def _show(records: list[dict], arguments) -> None:
    for mode in MODES:
        chosen = [record for record in records if record["params"]["mode"] == mode]
        if chosen:
            show(chosen)
            append(arguments.json, chosen)
