"""The machine of `python -m bench gpu`: one CUDA device, PyTorch on the same device, and the time of a step on either.

Device events and the host's clock time the same batch of steps. Uncounted steps precede it, so that clocks have ramped up. One
piece of queued work launches all of our steps of a batch, so it has no hand-over between threads.
"""

import contextlib
import ctypes
import functools
import gc
import math
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.harness.measure import FIRST, Work, measure

NVML = "libnvidia-ml.so.1"
KINDS = {"sm": 1, "memory": 2}  # NVML's numbers of the clocks
EVERY = 0.1  # seconds: the first reading comes after clocks have ramped up
READS = "nvmlDeviceGetClockInfo", "nvmlDeviceGetPowerUsage"


class Clocks:
    """Reads the clocks of the device at a bus address, as "0000:3b:00.0"; reads nothing for None, or without NVML.

    driver  the version of the driver; None if NVML does not report it
    """

    def __init__(self, bus: str | None):
        self.driver: str | None = None
        self._device = ctypes.c_void_p()
        self._library = None if bus is None else self._open(bus)

    def now(self) -> dict[str, int]:
        """Returns clocks in MHz, power in mW; only those that NVML reports for this device."""
        found: dict[str, int] = {}
        if self._library:
            clock, power = (getattr(self._library, name) for name in READS)
            number = ctypes.c_uint()
            for name, kind in KINDS.items():
                if clock(self._device, kind, ctypes.byref(number)) == 0:
                    found[name] = number.value
            if power(self._device, ctypes.byref(number)) == 0:
                found["power"] = number.value
        return found

    @contextlib.contextmanager
    def read(self, readings: list[dict[str, int]]) -> Iterator[None]:
        """A context that adds a reading every tenth of a second."""
        if not self._library:
            yield
            return
        over = threading.Event()

        def follow():
            while not over.wait(EVERY):
                readings.append(self.now())

        thread = threading.Thread(target=follow, name="clocks", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _open(self, bus: str) -> ctypes.CDLL | None:
        """Returns initialised NVML, with the device opened; None if that fails."""
        try:
            library = ctypes.CDLL(NVML)
        except OSError:
            return None
        if library.nvmlInit_v2() != 0:
            return None
        version = ctypes.create_string_buffer(80)
        if library.nvmlSystemGetDriverVersion(version, ctypes.c_uint(len(version))) == 0:
            self.driver = version.value.decode()
        found = library.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(self._device))
        return library if found == 0 else None


def clock_spread(readings: list[dict[str, int]]) -> dict[str, list[float]]:
    """Returns minimum, median and maximum of each figure."""
    names = sorted({name for reading in readings for name in reading})
    values = {name: [reading[name] for reading in readings if name in reading] for name in names}
    return {name: [min(found), statistics.median(found), max(found)] for name, found in values.items()}


LONG = 0.15 if FIRST else 0.3  # seconds of a batch, far above the resolution of events and the cost of a first launch
SPIN = 0.03 if FIRST else 0.05  # seconds of preceding steps, while clocks ramp up
MOST = 30_000  # maximum steps of a batch
CHUNK = 1 << 24  # random numbers drawn on the host; larger arrays repeat them


class Steps:
    """The seconds of a step: `run` of a Work with its own clock.

    The first call takes one step, whose result can be checked; the second a few, to determine how many fill LONG.
    """

    def __init__(self, batch: Callable[[int, int], tuple[float, float]], long: float, clocks: Clocks):
        """Takes batch(spin, count), which does that many steps and returns the latter's device and host seconds."""
        self._batch, self._long, self._clocks = batch, long, clocks
        self.count, self.walls = 0, []  # type: ignore[var-annotated]
        self.readings: list[dict[str, int]] = []

    def __call__(self) -> float:
        count = max(self.count, 1)
        spin = math.ceil(count * SPIN / LONG) if self._long and len(self.walls) > 1 else 0
        with self._clocks.read(self.readings):
            seconds, wall = self._batch(spin, count)
        self.walls.append(wall / count)
        if len(self.walls) == 1:
            self.count = 3 if self._long else 1
        elif len(self.walls) == 2:
            self.count = max(1, min(MOST, math.ceil(self._long * count / max(seconds, 1e-9))))
        return max(seconds, 1e-9) / count


class Machine:
    """A device, PyTorch if it can use the same device, and the copy bandwidth once it is measured.

    simulated  the device is the simulated driver of the tests: everything runs, figures are meaningless
    torch      PyTorch; None if missing, with the reason in `silent`
    """

    def __init__(self) -> None:
        from gpu.device import Device

        self.simulated = simulated = bool(os.environ.get("CUDASIM"))  # set by `python -m tests.cudasim COMMAND`
        self.long = 0.0 if simulated else LONG
        self.device = Device(0)
        self.clocks = Clocks(None if simulated else self.device.cuda.pci_bus_id())
        self.facts = _facts(self.device) | {"gpu_driver": self.clocks.driver}
        if simulated:
            self.facts["simulated"] = True
        self.name: str = self.facts["gpu"]
        self.silent: str | None = "the device is simulated" if simulated else None
        self.bandwidth: float | None = None  # bytes per second

    @functools.cached_property
    def torch(self) -> Any:
        """PyTorch, imported when a work first needs its rival: that takes seconds."""
        if self.silent:
            return None
        torch, self.silent = _torch()
        if torch:
            self.facts["torch_cuda"] = torch.version.cuda
        return torch

    def release(self) -> None:
        """Releases the memory of the last work, here and in PyTorch's cache."""
        gc.collect()
        self.device.owner.call(self.device.context.synchronize)
        if torch := self.__dict__.get("torch"):
            torch.cuda.empty_cache()

    def random(self, shape, rng: np.random.Generator, scale: float = 1.0):
        """Returns a device array of normal random numbers; they repeat after CHUNK."""
        array = self.device.empty(shape, np.float32)
        flat = array.reshape(array.size)
        some = rng.standard_normal(min(CHUNK, array.size), np.float32) * np.float32(scale)
        self.device.write(flat[: some.size], some)
        queue = self.device.queue("fill", 1)
        for first in range(some.size, array.size, some.size):
            part = flat[first : first + some.size]
            queue.run(self.device.copy, part, flat[: part.size])
        queue.close()
        return array

    def close(self) -> None:
        """Closes the device."""
        with contextlib.suppress(Exception):  # a lost device has nothing left to release
            self.release()
        self.device.close()


class Contest:
    """Rivals at one work on one machine; the sizes of the work are those of bench.harness.measure.Work, for one step.

    within  the setting of the measurement
    """

    def __init__(self, machine: Machine, work: str, params: dict, amount: float, unit: str, moved: float | None = None):
        machine.release()
        self.machine, self.queue = machine, machine.device.queue("bench", 1)
        self._sizes: dict[str, Any] = {"work": work, "params": params, "amount": amount, "unit": unit, "moved": moved}
        self.works: list[Work] = []
        self.within: contextlib.AbstractContextManager = contextlib.nullcontext()

    def do(self, work: Callable, *arguments) -> Any:
        """Does work on the queue of our steps; returns its result."""
        return self.queue.run(work, *arguments).wait()

    def ours(self, step: Callable[[], Any], check: Callable[[], Any], more: dict | None = None) -> None:
        """Adds our step, launched in one piece of work per batch."""
        self._add("ours", self._together(step), check, more)

    def beside(self, who: str, step: Callable[[], Any], check: Callable[[], Any]) -> None:
        """Adds a rival that launches kernels as we do."""
        self._add(who, self._together(step), check, None)

    def torch(self, who: str, step: Callable[[], Any], check: Callable[[], Any], more: dict | None = None) -> None:
        """Adds a step of PyTorch, on its default stream."""
        name = f"torch {self.machine.torch.__version__} {who}"
        self._add(name, self._on_stream(step), check, more)

    def once(self) -> None:
        """Takes one checked step of ours."""
        with self.within:
            self.works[0].run()
            self.works[0].check()

    def records(self, repeat: int) -> list[dict]:
        """Checks and measures; returns one record per rival, with environment, clocks, and the host's seconds."""
        with self.within:
            records = measure(self.works, repeat, self.machine.bandwidth)
        for work, record in zip(self.works, records, strict=True):
            record["env"] |= self.machine.facts
            if isinstance(work.run, Steps):
                record["wall_seconds"], record["steps"] = statistics.median(work.run.walls[-repeat:]), work.run.count
                record["clocks"] = clock_spread(work.run.readings)
        return records

    def _add(self, who: str, batch: Callable[[int, int], tuple[float, float]], check, more: dict | None) -> None:
        run = Steps(batch, self.machine.long, self.machine.clocks)
        settings: dict[str, Any] = {"warm": 2, "own_clock": True, "device": self.machine.name, "more": more or {}}
        self.works.append(Work(who=who, run=run, check=check, **self._sizes, **settings))

    def _together(self, step):
        device = self.machine.device

        def loop(count):
            stream = self.queue.stream  # local to the owner's thread: a closure would free it in another
            start = device.mark(stream)
            for _ in range(count):
                step()
            return start, device.mark(stream)

        def batch(spin, count):
            if spin:
                self.queue.run(loop, spin).wait()
            began = time.perf_counter()
            start, end = self.queue.run(loop, count).wait()
            wall = time.perf_counter() - began
            return 1e-3 * device.owner.call(start.event.time_till, end.event), wall

        return batch

    def _on_stream(self, step):
        torch = self.machine.torch

        def batch(spin, count):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            for _ in range(spin):
                step()
            torch.cuda.synchronize()
            began = time.perf_counter()
            start.record()
            for _ in range(count):
                step()
            end.record()
            end.synchronize()
            wall = time.perf_counter() - began
            return 1e-3 * start.elapsed_time(end), wall

        return batch


def _torch() -> tuple[Any, str | None]:
    """Returns PyTorch, if it can compute on this device; else the reason."""
    try:
        import torch
    except ImportError as error:
        return None, f"PyTorch cannot be imported ({error})"
    if not torch.cuda.is_available():
        return None, f"PyTorch {torch.__version__} sees no CUDA device"
    torch.zeros(1, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return torch, None


def _facts(device) -> dict[str, Any]:
    """Returns the device and compiler facts that the figures depend on."""
    import pycuda.driver as driver

    from gpu.runtime.compiler import compiler

    attribute = driver.device_attribute
    version = driver.get_driver_version()
    return {
        "gpu": device.cuda.name(),
        "capability": "{}.{}".format(*device.capability),
        "multiprocessors": device.multiprocessors,
        "gpu_memory": device.cuda.total_memory(),
        "l2": device.cuda.get_attribute(attribute.L2_CACHE_SIZE),
        "cuda": f"{version // 1000}.{version % 1000 // 10}",
        "compiler": compiler().name,
    }
