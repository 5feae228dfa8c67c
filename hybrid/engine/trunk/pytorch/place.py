"""Where a torch module computes: arrays of a slot as tensors of its device, and the state of PyTorch during a stage.

PyTorch keeps for each thread how many threads it computes with, and for the process one generator a device. A stage sets both
and puts them back, so the user's own work with PyTorch sees neither. What is drawn in a stage is a function of the seed, the
tick, the micro-batch and the stage, so a run that goes on draws what it would have drawn, and no state has to be kept.
"""

import contextlib
import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np


def place(device: Any, threads: int | None) -> "Host | Cuda":
    """The place for a device of hybrid/contract.py.

    threads  on the CPU: with how many PyTorch computes; None: as many as the queue of the stage has
    """
    return Host(threads) if device.host_memory else Cuda(device)


class Host:
    """The host's memory."""

    name = "cpu"

    def __init__(self, threads: int | None):
        self._threads = threads

    def tensor(self, array: np.ndarray) -> Any:
        """The array itself, as a tensor."""
        import torch

        return torch.from_numpy(array)

    @contextlib.contextmanager
    def stage(self, *key: int) -> Iterator[None]:
        """A context for the work of a stage; key: what its random numbers are a function of."""
        import numba
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(self._threads or numba.get_num_threads())
        try:
            with drawing([torch.default_generator], key):
                yield
        finally:
            torch.set_num_threads(before)


class Cuda:
    """A GPU's memory. PyTorch works on the stream of the queue that does the stage, so events of our queues order its work
    too, and nothing waits. Both libraries are in the device's primary context.
    """

    def __init__(self, device: Any):
        import torch

        from gpu.device import current

        torch.cuda.init()
        self.name, self._current = device.name, current

    def tensor(self, array: Any) -> Any:
        """The array of the device itself, as a tensor: read through __cuda_array_interface__, which copies nothing."""
        import torch

        return torch.as_tensor(array, device=self.name)

    @contextlib.contextmanager
    def stage(self, *key: int) -> Iterator[None]:
        """A context for the work of a stage; key: what its random numbers are a function of."""
        import torch

        stream = torch.cuda.ExternalStream(self._current().handle, device=self.name)
        generators = [torch.default_generator, torch.cuda.default_generators[stream.device.index]]
        with torch.cuda.stream(stream), drawing(generators, key):
            yield


@contextlib.contextmanager
def drawing(generators: list[Any], key: tuple[int, ...]) -> Iterator[None]:
    """A context in which these generators draw from a seed that is a function of the key; they go on after it as before it."""
    seed = int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=4).digest(), "little")
    kept = [generator.get_state() for generator in generators]
    try:
        for generator in generators:
            generator.manual_seed(seed)
        yield
    finally:
        for generator, state in zip(generators, kept, strict=True):
            generator.set_state(state)
