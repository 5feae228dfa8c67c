"""A process that has imported what is not ours, and forks for every run of tests: python server.py, in the root of a tree.

It reads a run a line from stdin, as JSON, and answers each by a line on stdout. It imports nothing of the tree itself.

A run: paths    test files, relative to the tree
       rank     {test: rank}: tests run in rising order of rank, those without one last
       but      tests that are left out
       only     the tests that are run; null: all
       spend    seconds of processor time after which no further test begins; null: as many as it takes
       room     {test: seconds} of processor time that a test may take, `otherwise` any other; one that takes more, or WAITS
                times as long by the clock, hangs: on a busy machine no test is to blame for being late
       environ  variables of the environment
Its answer: outcome "passed", "failed", "hung", "died"; by, the test that failed, null where the file could not be read;
tests, {test: [passed, seconds]}; seconds, of processor time; told, the end of what was printed
"""

import contextlib
import glob
import importlib
import json
import math
import os
import resource
import select
import signal
import sys
import time
import traceback

MEMORY = 8 << 30  # bytes of data a process
FILE = 1 << 30  # bytes of a file
TOLD = 4000
WAITS = 6
CAMPAIGN = os.getppid()
FOREIGN = (
    *("numpy", "scipy.sparse", "scipy.special", "scipy.stats", "numba", "numba.typed", "numba.core.caching", "pytest"),
    *("_pytest.assertion.rewrite", "hypothesis", "hypothesis.strategies", "hypothesis.extra.numpy", "PIL.Image"),
)


class Told:
    """A plugin of pytest: puts tests in order, leaves some out, and tells of each as it begins and ends."""

    def __init__(self, run, pipe):
        self.run, self.pipe, self.spent, self.good = run, pipe, 0.0, True
        self.until = math.inf if run["spend"] is None else sum(os.times()[:4]) + run["spend"]

    def tell(self, **said):
        """One line to the server."""
        os.write(self.pipe, (json.dumps(said) + "\n").encode())

    def pytest_collection_modifyitems(self, items):
        """The most telling tests first."""
        rank = self.run["rank"]
        only, but = self.run["only"], set(self.run["but"])
        items[:] = [item for item in items if item.nodeid not in but and (only is None or item.nodeid in only)]
        items.sort(key=lambda item: rank.get(item.nodeid, len(rank)))

    def pytest_runtest_logstart(self, nodeid):
        """A test begins."""
        self.spent, self.good = 0.0, True
        self.tell(begun=nodeid)

    def pytest_runtest_logreport(self, report):
        """One of its three phases ends."""
        self.spent += report.duration
        self.good &= report.outcome != "failed"

    def pytest_runtest_logfinish(self, nodeid):
        """It ends."""
        self.tell(ended=nodeid, passed=self.good, seconds=round(self.spent, 3))
        if self.good and sum(os.times()[:4]) > self.until:
            os._exit(0)  # those after it are not run


def serve():
    """Answer runs until stdin ends."""
    for name in FOREIGN:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        run = json.loads(line)
        print(json.dumps(answer(run)), flush=True)


def answer(run):
    """Run the tests in a fork; kill it where a test takes too long."""
    from_child, to_parent = os.pipe()
    log = os.memfd_create("log")
    child = os.fork()
    if not child:
        os.close(from_child)
        be_the_child(run, to_parent, log)
    os.close(to_parent)
    tests, hung, by = watch(from_child, run, child)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # with what it has started and left
    _, status, used = os.wait4(child, 0)
    status = os.waitstatus_to_exitcode(status)
    outcome = "hung" if hung else "died" if status < 0 else "passed" if status in (0, 5) else "failed"
    told = os.pread(log, TOLD, max(0, os.fstat(log).st_size - TOLD)).decode(errors="replace")
    os.close(log)
    return {
        "outcome": outcome,
        "by": None if outcome == "passed" else by,
        "tests": tests,
        "told": told,
        "seconds": used.ru_utime + used.ru_stime,
    }


class Clock:
    """What a session may take from now on."""

    def __init__(self, session, room):
        self.session, self.room = session, room
        self.worked, self.since = worked(session), time.monotonic()

    def over(self):
        """Whether it has taken more."""
        waited = time.monotonic() - self.since
        return waited > WAITS * self.room or (waited > self.room / 4 and worked(self.session) - self.worked > self.room)


def worked(session):
    """Seconds of processor time that the processes of a session, and those of theirs that have ended, have taken."""
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path) as file:  # it may have ended
            numbers = file.read().rpartition(")")[2].split()
            if int(numbers[3]) == session:
                ticks += sum(map(int, numbers[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def watch(pipe, run, child):
    """The tests that have ended, whether what came after them hung, and the last that had begun."""
    tests, by, rest = {}, None, b""
    clock = Clock(child, run["otherwise"])
    with os.fdopen(pipe, "rb", buffering=0) as source:
        while not clock.over():
            if os.getppid() != CAMPAIGN:  # it was killed
                os.kill(child, signal.SIGKILL)
                sys.exit("the campaign has ended")
            if not select.select([source], [], [], 0.5)[0]:
                if ended(child):  # and something that it has left holds the pipe open
                    return tests, False, by
                continue
            said = source.read(1 << 16)
            if not said:
                while not ended(child) and not clock.over():
                    time.sleep(0.01)
                return tests, not ended(child), by
            *lines, rest = (rest + said).split(b"\n")
            for event in map(json.loads, lines):
                if "begun" in event:
                    by = event["begun"]
                    clock = Clock(child, run["room"].get(by, run["otherwise"]))
                else:
                    tests[event["ended"]] = [event["passed"], event["seconds"]]
                    clock = Clock(child, run["otherwise"])
    return tests, True, by


def ended(child):
    """Whether the child has ended; it is still to be waited for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def be_the_child(run, pipe, log):
    """Run pytest and end."""
    status = 3
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ.update(run["environ"])
        numba, pytest = importlib.import_module("numba"), importlib.import_module("pytest")
        numba.config.reload_config()
        early = "ignore::pytest.PytestAssertRewriteWarning"  # hypothesis has been imported before pytest begins
        options = ["-W", early, "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short"]
        status = pytest.main(
            [*options, f"--basetemp={run['environ']['TMPDIR']}/pytest", *run["paths"]], [Told(run, pipe)]
        )
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(int(status))


if __name__ == "__main__":
    serve()
