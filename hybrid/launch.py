"""`python -m hybrid.launch` is the command `hybrid launch`, for a batch system: `srun python -m hybrid.launch train ...`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main(["launch", *sys.argv[1:]]))
