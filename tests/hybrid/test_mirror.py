"""Pairs of an array of the host and its copy on a device."""

import numpy as np

from hybrid import backend


class Device:
    """Copies of it are arrays of lists, so that no copy can be taken for its original."""

    def to_host(self, there):
        return np.array(there["numbers"], np.float32)

    def write(self, there, host):
        if there is not host:
            there["numbers"] = host.tolist()


def test_arrays_go_to_the_device_and_come_back():
    host, there = np.arange(3, dtype=np.float32), {"numbers": [7, 8, 9]}
    backend.send_arrays(Device(), [(host, there)])
    assert there["numbers"] == [0, 1, 2]
    there["numbers"] = [4, 5, 6]
    backend.fetch_arrays(Device(), [(host, there)])
    assert host.tolist() == [4, 5, 6]
