"""Errors of the driver as exceptions of this package, which name the device, what was asked for and the remedy."""

import sys


class DeviceError(OSError):
    """The device or its driver failed: what was on the device is lost, what is on the host is not."""


def failed(name: str, error: object) -> DeviceError:
    """The exception to raise when the driver, or a library on the device `name`, reports an error."""
    return DeviceError(
        f"{name}: {error}; what was on the device is lost, the last checkpoint stands; `hybrid doctor` may say more"
    )


class Translated:
    """A context in which errors of the driver become MemoryError or DeviceError.

    name    of the device
    wanted  what memory is asked for, for the message
    """

    def __init__(self, name: str, wanted: str = ""):
        self._name, self._wanted = name, wanted

    def __enter__(self) -> "Translated":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        driver = sys.modules.get("pycuda.driver")  # without it nothing of the driver's can have failed
        if driver is None or not isinstance(error, driver.Error):
            return
        if isinstance(error, driver.MemoryError):
            raise MemoryError(f"{self._name}: no room for {self._wanted or 'what a kernel needs'}{_room()}") from error
        raise failed(self._name, error) from error


def _room() -> str:
    """How much memory of the current device is free, for a message."""
    import pycuda.driver as driver

    try:
        free, total = driver.mem_get_info()
    except driver.Error:
        return ""
    return f"; {free / 1e6:,.1f} of {total / 1e6:,.1f} MB are free"
