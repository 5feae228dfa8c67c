"""python -m tests.crash: see campaign.py, whose processes have to find it by its name."""

import sys

from tests.crash.campaign import main

sys.exit(main())
