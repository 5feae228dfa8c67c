"""Whether HDF5's library reads a file to its end, tried in a process of its own: on damaged files it may loop or crash.

Run as a script, it reads all of the file; nothing of ours is imported then, since that would take longer than most files.
"""

import subprocess
import sys
from pathlib import Path

SECONDS, RATE = 5.0, 10e6  # that it may take, and bytes a second beyond: slower than any disk


def refuse(path: str | Path) -> None:
    """ValueError for a file on which the library does not come to an end, or ends the process."""
    limit = SECONDS + Path(path).stat().st_size / RATE
    try:
        code = subprocess.run(
            [sys.executable, "-I", __file__, str(path)], timeout=limit, capture_output=True
        ).returncode
    except subprocess.TimeoutExpired:
        raise ValueError(f"{path}: damaged: HDF5's library was not through with it after {limit:.0f} s") from None
    if code < 0:
        raise ValueError(f"{path}: damaged: HDF5's library crashes on it (signal {-code})")


def _read(path: str) -> None:
    """Every attribute and dataset that there is in the file itself; what fails is for the real reader to tell."""
    import h5py

    with h5py.File(path, "r") as file:
        for name in file.attrs:
            file.attrs.get(name)
        for name in file:
            part = file[name] if isinstance(file.get(name, getlink=True), h5py.HardLink) else None
            if isinstance(part, h5py.Dataset) and not (part.is_virtual or part.external):
                for chunk in part.iter_chunks() if part.chunks else ():
                    part[chunk]


if __name__ == "__main__":
    _read(sys.argv[1])
