"""Real data, which does not travel with the repository: in $HYBRID_DATA, or else beside the checkout."""

import os
from pathlib import Path

import pytest


def real(name: str) -> Path:
    """The path of a data file such as "ml-100k/u.data"; skips the test where it is missing."""
    folder = Path(os.environ.get("HYBRID_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / name).exists():
        pytest.skip(f"{name} is not in {folder}; set HYBRID_DATA to the folder that has it")
    return folder / name
