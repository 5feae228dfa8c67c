"""The command line in a process of its own, under the simulated driver."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def hybrid(*arguments, **environment):
    """Run the command under the simulated driver; its exit code, output and the lines of its errors.

    Without the progress bar, and without the note that kernels are compiled: whether it comes depends on who ran before.
    """
    command = [sys.executable, "-m", "tests.cudasim", sys.executable, "-m", "hybrid.cli", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=120)
    errors = [line for line in done.stderr.replace("\r", "\n").splitlines() if line]
    told = [line for line in errors if "ticks" not in line and "compiling kernels" not in line]
    return done.returncode, done.stdout, told
