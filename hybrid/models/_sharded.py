"""What `--shard` does: ranks share the rows and the nodes of a model; and what it does not go with."""

from collections.abc import Mapping
from typing import Any

from .. import sparse
from ..ranks.group import Group
from ..settings import flag
from ..sharded.tree import ShardedTree

# What these options may say beside it, where they say anything; the first is the default.
MAY = {
    "readout": ("tree",),
    "tree": ("huffman", "balanced"),
    "mode": ("deterministic",),
    "split": (0,),
    "regrow": (None,),
    **dict.fromkeys(("rows_device", "readout_device"), ("cpu",)),
}


def check(options: Mapping[str, Any]) -> None:
    """ValueError for options that `--shard` does not go with."""
    for name, may in MAY.items() if options.get("shard") else ():
        found = options.get(name)
        if found is not None and found not in may:
            wanted = "none" if may == (None,) else " or ".join(map(str, may))
            raise ValueError(f"{flag(name)}: found {found} with --shard, expected {wanted}; leave one of both out")


def shares(options: Mapping[str, Any], ranks: Group) -> bool:
    """Whether these ranks share rows and nodes; one alone has all of them. ValueError where other options are against it."""
    check(options)
    return bool(options.get("shard")) and ranks.size > 1


def tree(ranks: Group, counts: Any, width: int, options: Mapping[str, Any], *, batch: int) -> ShardedTree:
    """The untrained readout; see hybrid/readout/__init__.py."""
    moves = sparse.readout_named(options)
    shape = {name: options[name] for name in ("tree", "owners", "rate", "seed")}
    return ShardedTree(ranks, counts, width, batch=batch, **shape, **moves)
