"""Engines of ranks that fail: every rank keeps what each failure said, in FOLDER/RANK.json."""

import json
import math
import sys
from pathlib import Path

from hybrid.engine import Engine
from hybrid.mpi.engine import ranked
from hybrid.mpi.group import Group
from hybrid.trunk.mlp import MLP
from tests.support.rank_engine import Uneven, made, route
from tests.support.small_engine import engine


def diverging(ranks, overlap):
    """The trunk's weights leave the numbers in the first tick."""
    trained = engine("full", rate=0.1, threads=2, overlap=overlap, device="cpu", micro_batches=4, **route(ranks))
    trained.trunk.optimiser.rate = math.inf
    return lambda: list(trained.run(Uneven()))


def unlike(ranks):
    """Rank 1 draws other weights."""
    base = engine()
    trunk = MLP([12, 10, 6], seed=ranks.rank)
    return lambda: Engine(
        base.embedding, trunk, base.readout, micro_batches=4, threads=1, device="cpu", route=ranked(ranks)
    )


def unsaved(ranks, file):
    """A file stands where the folder would be."""
    return lambda: made("tree", ranks)[0].save(file)


def said(work):
    """What an error says, with its notes."""
    try:
        work()
    except (ValueError, OSError, FloatingPointError) as error:
        return [type(error).__name__, str(error), getattr(error, "__notes__", [])]
    return []


def main() -> None:
    folder, ranks = Path(sys.argv[1]), Group()
    found = {
        "diverging": said(diverging(ranks, False)),
        "diverging, overlapped": said(diverging(ranks, True)),
        "unlike": said(unlike(ranks)),
        "unsaved": said(unsaved(ranks, folder / "file")),
    }
    (folder / f"{ranks.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
