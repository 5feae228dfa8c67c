"""The module form of the command `hybrid`: `python -m hybrid.cli`."""

import sys

from . import main

sys.exit(main())
