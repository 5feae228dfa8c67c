"""One table for both ends: the output rows of a readout are the input rows of the embedding."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .engine import Engine

NAME = "readout.weights"  # among the parameters of an engine: of a tied one those of the embedding


def tie(embedding: Any, readout: Any) -> None:
    """Let the readout have the embedding's first rows as its own; both then move the same numbers, each by its own rule.

    Raises ValueError for parts that cannot share a table.
    """
    _check(embedding, readout)
    from cpu import aligned

    rows = aligned.empty(embedding.table.shape, np.float32)
    rows[:] = embedding.table
    embedding.take(rows)
    readout.take(rows[: readout.classes])


def check_settings(engine: "Engine") -> None:
    """ValueError where rows would be read while another micro-batch or batch moves them."""
    for name, least in (("micro_batches", 1), ("delay", 0)):
        if getattr(engine, name) != least:
            raise ValueError(
                f"{name}: found {getattr(engine, name)}, expected {least} with tied=True: rows and readout move one table"
            )


def _check(embedding: Any, readout: Any) -> None:
    if not hasattr(readout, "take"):
        raise ValueError(
            f"tied: found a {readout.kind} readout, expected full or sampled, which has a row for every class"
        )
    if not getattr(embedding, "rows", 0):
        raise ValueError("tied: found Inputs, expected an Embedding, whose rows the readout shares")
    if embedding.rows < readout.classes or embedding.width != readout.width:
        raise ValueError(
            f"tied: found {embedding.rows} input rows of width {embedding.width}, expected at least {readout.classes} of width "
            f"{readout.width}, as the readout has"
        )
    for part in (embedding, readout):
        if not part.backend.device.host_memory:
            raise ValueError(f'tied: found rows on "{part.backend.name}", expected them on the CPU')
