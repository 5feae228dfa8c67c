"""What the MPI of this environment is. `python -m hybrid.ranks.library` prints it as JSON."""

import json
import subprocess
import sys

from .world import launched

LEVELS = ("single", "funneled", "serialized", "multiple")


def ask(limit: float = 20.0) -> dict[str, str]:
    """`describe`, in a process of its own where this one is no rank: an MPI that is broken ends whoever initialises it.

    limit  seconds after which a process that does not answer is ended

    Raises OSError, with the last line of what it said, where it does not describe itself.
    """
    if launched():
        return describe()
    command = [sys.executable, "-m", "hybrid.ranks.library"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit, check=True)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"it does not answer within {limit:g} s") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines()
        raise OSError(said[-1] if said else f"it ends with code {error.returncode}") from error
    found: dict[str, str] = json.loads(done.stdout)
    return found


def describe() -> dict[str, str]:
    """What MPI says of itself; initialises it.

    name      of the library, with its version
    standard  the version of the standard that it keeps, such as "5.0"
    threads   which threads may call it: "single", "funneled", "serialized" or "multiple"
    """
    from mpi4py import MPI

    levels = (MPI.THREAD_SINGLE, MPI.THREAD_FUNNELED, MPI.THREAD_SERIALIZED, MPI.THREAD_MULTIPLE)
    name = MPI.Get_library_version().strip("\0 ").split("\n")[0].split(",")[0]
    return {
        "name": " ".join(name.replace("Version:", "").split()),
        "standard": ".".join(map(str, MPI.Get_version())),
        "threads": LEVELS[levels.index(MPI.Query_thread())],
    }


if __name__ == "__main__":
    print(json.dumps(describe()))
