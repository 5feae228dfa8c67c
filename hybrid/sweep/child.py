"""`python -m hybrid.sweep.child WORDS` is `hybrid WORDS`, for a sweep: it stops as by SIGTERM when its standard input ends.

So it does when the sweep wants it to, and whenever the sweep has ended, however that was.
"""

import os
import signal
import sys
import threading

from ..cli import main


def _stop_with_the_sweep() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_stop_with_the_sweep, daemon=True).start()
    sys.exit(main())
