"""A model of a few units, as a file and as a run, for the tests of what a user sees."""

import json
from pathlib import Path

TINY = {"name": "tiny", "grids": [4, 2, 1], "block": 2, "hidden": [4]}
TINY |= {"schedule": [[0, None, 0.05, 0.1]], "readout": {"hidden": [6]}}


def written(folder: Path, **changes) -> str:
    """The path of the configuration as a file."""
    path = folder / "tiny.json"
    path.write_text(json.dumps(TINY | changes))
    return str(path)


def command(folder: Path, out: Path, *more: str, **changes) -> list[str]:
    """The command that trains it."""
    common = ["--config", written(folder, **changes), "--out", str(out), "--threads", "2", "--device", "cpu"]
    return ["train", "pvm", *common, *more]


def tensors(run: Path) -> str:
    """The name of the latest checkpoint's tensors, which is their sha256."""
    return json.loads((run / "checkpoint" / "checkpoint.json").read_text())["file"]
