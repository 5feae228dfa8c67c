"""What every test stands on: settings made before Numba and matplotlib are imported, and the thread counts to sweep."""

import importlib.util
import os
import signal
import tempfile
from pathlib import Path

from gpu.runtime.private import private
from tests import tiers


def kept(folder: Path, variable: str) -> str:
    """The folder, or one of this user's below the temporary ones where others could write to it.

    So it is for the root of a container who works in folders of another user: such are refused, and each test compiled anew.
    """
    try:
        return str(private(folder, variable))
    except OSError:
        return str(private(Path(tempfile.gettempdir(), f"hybrid-tests-{os.geteuid()}", variable.lower()), variable))


os.environ["NUMBA_NUM_THREADS"] = "4"  # so that 1, 2 and 4 threads can be compared on any machine
os.environ["MPLBACKEND"] = "Agg"
# What is compiled, and the programs that tests agree to, stay in the checkout; where one is set, in the user's folder.
for variable, name in (("NUMBA_CACHE_DIR", "kernels"), ("XDG_CACHE_HOME", "cache")):
    os.environ[variable] = kept(Path(os.environ.get(variable) or Path(__file__).parents[1] / "build" / name), variable)

import hypothesis
import numba
import pytest

assert numba.config.NUMBA_NUM_THREADS == 4  # read now, before a test's command line asks for other threads

pytest.register_assert_rewrite("tests.support")

# A job of a script ignores Ctrl-C, one under nohup SIGHUP, and so would all that the tests start.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

hypothesis.settings.register_profile("tests", deadline=None)  # the first example may compile a kernel
hypothesis.settings.register_profile("ci", parent=hypothesis.settings.get_profile("tests"), derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "tests")


def pytest_ignore_collect(collection_path, config):
    """Of the folders that `make test` leaves out it needs no packages: they are not imported."""
    left_out = "not later" in config.option.markexpr and collection_path.name in tiers.APART
    return True if left_out and collection_path.parent == Path(__file__).parent else None


def pytest_collection_modifyitems(items):
    """What `make test` leaves to `make test-all` is marked, and what no machine without PyCUDA can run is skipped."""
    no_driver = importlib.util.find_spec("pycuda") is None
    for item in items:
        if tiers.is_later(item.nodeid):
            item.add_marker("later")
        if no_driver and item.nodeid.startswith(("tests/gpu/", "tests/cudasim/")):
            item.add_marker(pytest.mark.skip(reason="PyCUDA is not installed: it is built where a C++ compiler is"))


@pytest.fixture(autouse=True)
def talkative(monkeypatch):
    """No test is quiet because a command of the test before was."""
    for name in ("quiet", "mute"):
        monkeypatch.setattr(f"hybrid.console.{name}", False)


@pytest.fixture(autouse=True, scope="session")
def temporary(tmp_path_factory):
    """What a killed process leaves behind lies in pytest's folder, which pytest erases some runs later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("t")))
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(autouse=True, scope="module")
def cpu_unless_asked(request):
    """Outside tests/gpu no GPU is found, so a test means the CPU wherever it runs, beside a simulated device too.

    Nor by the fixtures of a file, which begin before those of its tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        if "gpu" not in request.path.parts:
            patch.setattr("hybrid.backend.why_no_gpu", lambda: "these tests are the CPU's")
        yield


@pytest.fixture
def check_threads():
    """Some work makes arrays of the same bytes at 1, 2 and 4 threads; None is as good as an array."""
    import numba

    def at(number, work):
        numba.set_num_threads(number)
        return tuple(one if one is None else one.tobytes() for one in work())

    def check(work):
        assert len({at(number, work) for number in (1, 2, 4)}) == 1

    before = numba.get_num_threads()
    yield check
    numba.set_num_threads(before)


@pytest.fixture(params=[1, 2, 4])
def threads(request):
    """Run the test on 1, 2 and 4 Numba threads."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(request.param)
    yield request.param
    numba.set_num_threads(before)
