"""Arrays of the host that a device has its own copies of: (host, there) pairs, one array where it shares the memory."""

import numpy as np


def fetch(device, pairs) -> None:
    """Bring what stands on the device to the host; nothing to do where the device shares its memory."""
    for host, there in pairs:
        if host is not there:
            np.copyto(host, device.to_host(there))


def send(device, pairs) -> None:
    """Bring what stands on the host to the device; nothing to do where the device shares its memory."""
    for host, there in pairs:
        device.write(there, host)
