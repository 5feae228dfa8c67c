"""Work that several ranks measure together: started by `measured`, done by `python -m bench.ranks_run` on each of them."""

import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hybrid.mpi.world import command, world


def measured(what: str, ranks: int, **options: Any) -> Any:
    """What rank 0 returns of `what(**options)`, "module:function", which all of so many ranks call. JSON-able, both of them.

    Each rank computes on one thread. Raises RuntimeError where a rank fails; it has said why.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        code = subprocess.run(command(ranks, "bench.ranks_run", what, json.dumps(options), str(out))).returncode
        if code:
            raise RuntimeError(f"{what}: {ranks} ranks ended with code {code}")
        return json.loads(out.read_text())


def main(what: str, options: str, out: str) -> None:
    """Do it as one rank."""
    import numba

    numba.set_num_threads(1)
    module, _, name = what.partition(":")
    found = getattr(importlib.import_module(module), name)(**json.loads(options))
    if world().rank == 0:
        Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
