"""The device that GPU tests run on: a real one where there is one, the simulated driver of tests/cudasim elsewhere."""

import ctypes
import os

import pytest

from gpu.runtime import blas, kernels
from tests import cudasim
from tests.cudasim import cublas


def real_device() -> bool:
    """Whether an NVIDIA driver with a device is there, and nobody has asked for the simulated one."""
    if os.environ.get("CUDASIM"):
        return False
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


class Gpu:
    """A device and a queue, for tests: put arrays, run launchers, get arrays."""

    def __init__(self):
        from gpu.device import Device

        self.simulated = SIMULATED
        self.device = Device(0)
        self.queue = self.device.inline("test", 1)
        self.put, self.get, self.empty = self.device.from_host, self.device.to_host, self.device.empty

    def run(self, work, *arguments):
        """The result of the work, done on the queue."""
        return self.queue.run(work, *arguments).wait()

    def order(self, number):
        """Begin another order of events, where the driver is simulated."""
        if self.simulated:
            cudasim.seed(number)

    def orders(self, count):
        """The numbers from 0 on; with each of them another order of events begins."""
        for number in range(count):
            self.order(number)
            yield number

    def check_same_bytes(self, work, count=2):
        """The arrays that some work returns have the same bytes in every order of events; None is as good as an array."""
        assert len({tuple(one if one is None else one.tobytes() for one in work()) for _ in self.orders(count)}) == 1


SIMULATED = not real_device()


@pytest.fixture(scope="session")
def _device():
    if SIMULATED:
        cublas.use()
        # 32 MB of poison for every queue of every engine take most of a test
        blas.Handle._room = lambda handle: 1 << 16
    made = Gpu()
    yield made
    made.device.close()


@pytest.fixture
def gpu(_device):
    """The device; under simulation every problem that the driver saw during the test fails it."""
    _device.queue = _device.device.inline("test", 1)  # a queue that failed takes no more work
    yield _device
    if SIMULATED:
        problems = cudasim.problems()
        cudasim.clear()
        assert problems == []


@pytest.fixture
def simulated(gpu):
    """Skips a test on a real device, which does not count its calls, fail on demand or run work in any order."""
    if not gpu.simulated:
        pytest.skip("needs the simulated driver, which counts calls, fails on demand and runs work in any order")


@pytest.fixture
def launched(monkeypatch):
    """The blocks of each kernel that is launched meanwhile, and the threads of each of them, by its name."""
    found: dict[str, tuple[object, object]] = {}
    launch = kernels.launch

    def noted(file, name, kinds, grid, block, *arguments, **how):
        found[name] = grid, block
        launch(file, name, kinds, grid, block, *arguments, **how)

    monkeypatch.setattr(kernels, "launch", noted)
    return found


@pytest.fixture
def cuda(gpu):
    """Its name."""
    return "cuda:0"


@pytest.fixture
def train(tmp_path):
    """The command that trains a small language model; its run is tmp_path / "run"."""
    text = tmp_path / "text.txt"
    text.write_text("\n".join(f"the {i % 7} of {i % 5} and {i % 3} is {i % 11}" for i in range(200)))
    sizes = "--readout tree --hidden 16 --width 8 --readout-width 8 --batch 128 --epochs 1".split()
    return ("train", "language", "--text", str(text), "--out", str(tmp_path / "run"), *sizes)
