"""Parts in shards that go on from a checkpoint of one process, or of any number of ranks: made as it tells, then filled."""

from pathlib import Path
from typing import Any

import numpy as np

from .. import trees
from ..ranks.group import Group
from ..readout.base.owners import OWNERS
from ..readout.base.shape import GIVEN
from ..storage import checkpoint
from .embedding import ShardedEmbedding
from .refused import check_tree
from .tree import ShardedTree

# What a checkpoint keeps of the trees of each shape, and what a TreeReadout has that tells of nothing else.
SHAPES = {"balanced": (), "huffman": ("counts",), GIVEN: ("counts", "leaf_up", "node_up")}
USUAL: dict[str, Any] = {"mode": "deterministic", "tree": "huffman", "owners": OWNERS}


def embedding(group: Group, facts: dict[str, Any], backend: Any = None) -> ShardedEmbedding:
    """The input rows that Embedding.describe() told of, as they were at first."""
    return ShardedEmbedding(group, **facts, backend=backend)


def tree(group: Group, facts: dict[str, Any], path: str | Path, backend: Any = None) -> ShardedTree:
    """The readout that describe() told of, its nodes 0. Its tree, which says who has which node, is read from the checkpoint.

    Raises ValueError for another readout than a tree in the mode "deterministic", and what the checkpoint raises.
    """
    facts = USUAL | facts
    check_tree(facts.pop("kind"), facts.pop("mode"), facts.pop("split", 0))
    classes, shape = facts.pop("classes"), facts.pop("tree")
    kept = _read(path, SHAPES[shape])
    if shape == GIVEN:
        shape = trees.checked(kept["leaf_up"], kept["node_up"], kept["counts"])
    return ShardedTree(group, kept.get("counts", classes), tree=shape, **facts, backend=backend)


def _read(path: str | Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Arrays of the readout of an engine."""
    found = checkpoint.read(path, [f"readout.{name}" for name in names])
    return {name.removeprefix("readout."): array for name, array in found.items()}
