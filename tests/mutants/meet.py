"""A plugin of pytest for a run beside a mutant: names the tests in a file as they begin, and ends what takes too long."""

import os
import signal
import time

BEGUN, FAILED = time.monotonic(), []


def pytest_runtest_logstart(nodeid):
    """The alarm, which nothing here handles, ends the process within a kernel too."""
    with open(os.environ["MUTANT_LOG"], "a") as file:
        print(nodeid, file=file)
    signal.setitimer(signal.ITIMER_REAL, float(os.environ["MUTANT_LIMIT"]))


def pytest_runtest_logreport(report):
    """Of one of its three phases."""
    FAILED.extend([report.nodeid] * report.failed)


def pytest_runtest_logfinish(nodeid):
    """When the time is over, no further test begins."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    if not FAILED and time.monotonic() - BEGUN > float(os.environ["MUTANT_BUDGET"]):
        os._exit(0)
