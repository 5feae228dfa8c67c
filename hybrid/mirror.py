"""Pairs (host, there): an array of the host and its copy on a device; the same array where the device uses host memory."""

from collections.abc import Iterable
from typing import Any

import numpy as np

Pairs = Iterable[tuple[np.ndarray, Any]]


def fetch(device: Any, pairs: Pairs) -> None:
    """Copy each array from the device to the host, unless both are the same."""
    for host, there in pairs:
        if host is not there:
            np.copyto(host, device.to_host(there))


def send(device: Any, pairs: Pairs) -> None:
    """Copy each array from the host to the device, unless both are the same."""
    for host, there in pairs:
        device.write(there, host)
