"""A table that exceeds the memory of each rank trains in shards: what each of them holds, and had at most; no time is measured.

Every rank is limited by RLIMIT_AS, as by `ulimit -v`, from its beginning on. The model is a language model without a trunk: the
input table in shards, of --gb gigabytes, and a tree in shards over CLASSES classes.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from bench.measure import append
from hybrid.ranks.launch import launch

COUNTS = True  # and times nothing: it runs beside other work
GIGA = 10**9
BESIDE = 1.5  # gigabytes that a rank may have beside its share of the table; half of that is Python with Numba and MPI
FEW, MANY = 0.2, 1.0  # gigabytes of the table, unless they are told


def run(arguments: argparse.Namespace) -> None:
    """Print a table of the ranks; with --json a line with all of it. ValueError where the ranks did not train."""
    gigabytes, ranks = arguments.gb or (FEW if arguments.quick else MANY), arguments.ranks or 4
    limit = arguments.limit or gigabytes / ranks + BESIDE
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        code = launch(["bench.shards_rank", str(path), str(gigabytes), str(limit)], ranks)
        if code:
            raise ValueError(
                f"shards: {ranks} ranks ended with the exit code {code}, expected 0; --limit gives them more room"
            )
        found: dict[str, Any] = json.loads(path.read_text())
    print(table(found), flush=True)
    append(arguments.json, [{"bench": "shards", **found}])


def table(found: dict[str, Any]) -> str:
    """As Markdown: what was trained, and the ranks."""
    sizes = f"{found['rows']:,} rows of {found['width']} numbers, {found['table'] / GIGA:.2f} GB"
    lines = [
        f"A table of {sizes}, and a tree over {found['classes']:,} classes; each rank may have {found['limit'] / GIGA:.2f} GB.",
        f"{found['ticks']} ticks of the same {found['batch']:,} examples: mean loss {found['losses'][0]:.4f}, at last "
        f"{found['losses'][-1]:.4f}.",
        "",
        "| rank | rows of the table, GB | nodes of the tree, GB | address space at most, GB | memory at most, GB |",
        "|---|---|---|---|---|",
    ]
    for rank, numbers in enumerate(found["ranks"]):
        lines.append(f"| {rank} | " + " | ".join(f"{number / GIGA:.3f}" for number in numbers) + " |")
    return "\n".join(lines)
