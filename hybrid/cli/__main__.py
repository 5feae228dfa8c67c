"""`python -m hybrid.cli` is the command `hybrid`."""

import sys

from . import main

sys.exit(main())
