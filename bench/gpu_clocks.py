"""Clocks and power of a device while something runs on it, as NVML tells, which comes with the driver; nothing is set."""

import contextlib
import ctypes
import statistics
import threading
from collections.abc import Iterator

NVML = "libnvidia-ml.so.1"
KINDS = {"sm": 1, "memory": 2}  # of clocks, as NVML numbers them
EVERY = 0.1  # seconds: the first reading finds the clocks up
READS = "nvmlDeviceGetClockInfo", "nvmlDeviceGetPowerUsage"


class Clocks:
    """Reads the device at a place on the bus, as "0000:3b:00.0"; nothing of None, or where there is no NVML.

    driver  the version of the driver; None where NVML does not tell
    """

    def __init__(self, bus: str | None):
        self.driver: str | None = None
        self._device = ctypes.c_void_p()
        self._library = None if bus is None else self._open(bus)

    def now(self) -> dict[str, int]:
        """Clocks in MHz, power in mW; only what NVML tells of this device."""
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
        """Add a reading every tenth of a second while the body runs."""
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
        """NVML, begun, with the device found; None where one of these fails."""
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


def spread(readings: list[dict[str, int]]) -> dict[str, list[float]]:
    """Least, median and most of each figure that was read."""
    names = sorted({name for reading in readings for name in reading})
    values = {name: [reading[name] for reading in readings if name in reading] for name in names}
    return {name: [min(found), statistics.median(found), max(found)] for name, found in values.items()}
