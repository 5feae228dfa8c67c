"""Every byte of a device array set, on the current queue: what kernels must overwrite, or find."""

from gpu.device import current


def fill_bytes(target, value):
    """Set every byte of a device array."""
    import pycuda.driver as driver

    if target.nbytes:
        driver.memset_d8_async(target.pointer, value, target.nbytes, current().stream)
