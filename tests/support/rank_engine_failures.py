"""Engines of ranks that fail: every rank keeps what each failure said, in FOLDER/RANK.json."""

import json
import math
import sys
from pathlib import Path

from hybrid.engine import Engine
from hybrid.engine.trunk.mlp import Trunk
from hybrid.ranks.group import Group
from tests.support.rank_engine import Uneven, in_shards, made
from tests.support.small_engine import engine


def diverging(ranks, overlap):
    """The trunk's weights leave the numbers in the first tick."""
    trained = engine("full", rate=0.1, threads=2, overlap=overlap, device="cpu", micro_batches=4, ranks=ranks)
    trained.trunk.rate = math.inf
    return lambda: list(trained.run(Uneven()))


def diverging_shards(ranks):
    """Rows and tree are in shards, and the hidden vectors of a micro-batch, which are no numbers, on one rank alone."""
    trained = in_shards(ranks=ranks, threads=1, device="cpu", micro_batches=4)
    for array in trained.trunk.parameters().values():
        array.fill(math.nan)
    return lambda: list(trained.run(Uneven()))


def shards_of_others(ranks):
    """An engine of this process alone, with a tree of all ranks."""
    base = in_shards(ranks=ranks, rows=None, threads=1, device="cpu", micro_batches=4)
    return lambda: Engine(base.embedding, base.trunk, base.readout, micro_batches=4, threads=1, device="cpu")


def unlike(ranks):
    """Rank 1 draws other weights."""
    base = engine()
    trunk = Trunk(12, 10, 6, seed=ranks.rank)
    return lambda: Engine(base.embedding, trunk, base.readout, micro_batches=4, threads=1, device="cpu", ranks=ranks)


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
        "diverging in shards": said(diverging_shards(ranks)),
        "shards of others": said(shards_of_others(ranks)),
        "unlike": said(unlike(ranks)),
        "unsaved": said(unsaved(ranks, folder / "file")),
    }
    (folder / f"{ranks.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
