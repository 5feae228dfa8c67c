"""What parts in shards do not do, in words."""

from collections.abc import Mapping
from typing import Any, NoReturn


def check_settings(part: str, settings: Mapping[str, Any]) -> None:
    """ValueError for rows or nodes on a GPU."""
    backend = settings.get("backend")
    if backend and not backend.device.host_memory:
        raise ValueError(
            f'{part}: found "{backend.name}" with shards, expected "cpu": ranks lend each other arrays of the host'
        )


def refuse_copy(part: str) -> NoReturn:
    """A part in shards belongs to all ranks of its group."""
    raise TypeError(f"{part}: found one in shards, expected one of one rank: save and load make another one")


def check_tree(kind: str, mode: str, split: int) -> None:
    """ValueError for a readout whose nodes are not to be shared out."""
    if kind != "tree" or split:
        found = f"a tree split at {split}" if split else f"a {kind} readout"
        raise ValueError(f"readout: found {found} with shards, expected a tree; leave the shards out")
    if mode != "deterministic":
        raise ValueError(f'mode: found "{mode}" with shards, expected "deterministic"; leave the shards out')
