"""Recordings of the two original implementations, where they are at hand."""

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(os.environ.get("HYBRID_GOLDEN") or Path(__file__).parents[4] / "shared" / "golden")
SMALL = ("t_lr", "t_mom", "t_readout_lr", "t_readout_trained", "t_learned", "w_shapes")  # of what is kept per frame


def recorded(name):
    """(options of the recording, its arrays); skips the test where there is no such file."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"no {name} in {FOLDER}; HYBRID_GOLDEN names the folder")
    with np.load(path, allow_pickle=False) as arrays:
        found = {key: arrays[key] for key in arrays.files if key[:2] not in ("t_", "w_", "dw") or key in SMALL}
    return json.loads(str(found["config_json"])), found


def ragged(arrays, name):
    """A list of lists from `name`_src, `name`_off."""
    off = arrays[f"{name}_off"]
    return [arrays[f"{name}_src"][start:end].tolist() for start, end in pairwise(off)]
