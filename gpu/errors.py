"""Errors of the driver in the words of this package: the device, what was asked for, the remedy."""


class DeviceError(OSError):
    """The device or its driver failed; what was on the device is lost, what is on the host stands."""


def failed(name: str, error) -> DeviceError:
    """What to raise when the driver, or a library on the device `name`, answers with an error."""
    return DeviceError(
        f"{name}: {error}; what was on the device is lost, the last checkpoint stands; `hybrid doctor` may say more"
    )


class Translated:
    """While open, errors of the driver become MemoryError or DeviceError: the device, what was asked for, the remedy."""

    def __init__(self, name: str, wanted: str = ""):
        self._name, self._wanted = name, wanted

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        import pycuda.driver as driver

        if not isinstance(error, driver.Error):
            return
        if isinstance(error, driver.MemoryError):
            raise MemoryError(f"{self._name}: no room for {self._wanted or 'what a kernel needs'}{_room()}") from error
        raise failed(self._name, error) from error


def _room() -> str:
    """How much memory of the current device is free, in words."""
    import pycuda.driver as driver

    try:
        free, total = driver.mem_get_info()
    except driver.Error:
        return ""
    return f"; {free / 1e6:,.1f} of {total / 1e6:,.1f} MB are free"
