"""The module form of the command `hybrid`: `python -m hybrid`."""

import sys

from .cli import main

sys.exit(main())
