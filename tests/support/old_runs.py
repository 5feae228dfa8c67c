"""Small runs that are trained already: those of tests/fixtures, with their data where they are here."""

import shutil
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"
DATA = FIXTURES / "data"


def copied(name: str, folder: Path) -> Path:
    """A copy of a run in a folder, with the paths that its files have here."""
    run = folder / name
    shutil.copytree(FIXTURES / "trained" / name, run)
    for path in run.glob("*.json"):
        path.write_text(path.read_text().replace("DATA", DATA.as_posix()).replace("RUN", run.as_posix()))
    return run
