"""`python -m tests.golden FILE`: the command of hybrid/pvm/originals/replay.py under the name it has had."""

import sys

from hybrid.pvm.originals.replay import main, replay

__all__ = ["main", "replay"]

if __name__ == "__main__":
    sys.exit(main())
