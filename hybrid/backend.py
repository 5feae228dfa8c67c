"""Which modules do the arithmetic: choose("cuda:0" | "cuda:0+tf32" | "cpu" | None), or why a device cannot be taken."""

import functools
import importlib
import importlib.util
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

KERNELS = (
    "units",
    "mlp",
    "optimiser",
    "rows",
    "softmax",
    "tree_softmax",
    "tree_batch",
    "split",
    "head",
    "pvm",
    "sampled_softmax",
    "sampled_logistic",
    "negative",
    "label_tree",
)  # of a whole backend


turn = (
    0  # how many GPUs further on, around those of the machine, this process takes its own; hybrid/mpi/group.py sets it
)


class Backend:
    """A device and the modules of kernels that compute on it: `backend.units`, `backend.rows`, ...; see KERNELS.

    Each module keeps the Protocol of its name in hybrid/contract.py. A backend may have only some of them: the GPU's has
    none for drawn classes. To ask for one that is missing raises ValueError.

    name    as `choose` takes it
    device  a Device of hybrid/contract.py
    """

    def __init__(self, name: str, device: Any, package: str):
        self.name, self.device, self._package = name, device, package

    def __getattr__(self, name: str) -> Any:
        if name not in KERNELS:
            raise AttributeError(f"a backend has no attribute {name!r}")
        if not self._has(name):
            offered = ", ".join(filter(self._has, KERNELS))
            raise ValueError(f'device: "{self.name}" has no kernels for {name}, only for {offered}; use --device cpu')
        module = self.__dict__[name] = importlib.import_module(f"{self._package}.{name}")
        return module

    def _has(self, name: str) -> bool:
        return importlib.util.find_spec(f"{self._package}.{name}") is not None


def choose(device: str | None = None) -> Backend:
    """The backend of a device; None and "auto" take the first GPU when it can be used and the CPU otherwise.

    Of several ranks on a machine the first takes that GPU, and each other one the next, see `turn`.

    "cuda:0+tf32" lets the tensor cores of a GPU multiply with factors of 10 bits; nothing else does.

    Raises ValueError, with the reason and the remedy, for a device that does not exist or cannot be used.
    """
    if device is None or device == "auto":
        device = "cpu" if why_no_gpu() else "cuda:0"
    if device == "cpu":
        return _backend("cpu", "cpu")
    named = re.fullmatch(r"cuda:(\d+)(\+tf32)?", str(device))
    if not named:
        raise ValueError(f'device: found "{device}", expected "auto", "cpu", "cuda:N" or "cuda:N+tf32"')
    reason = why_no_gpu()
    if reason:
        raise ValueError(f'device: "{device}" cannot be used: {reason}; use --device cpu')
    ordinal, devices = int(named[1]), importlib.import_module("gpu.runtime.available").devices() if turn else 0
    return _gpu(device, (ordinal + turn) % devices if ordinal < devices else ordinal, bool(named[2]))


def given(backend: Backend | str | None) -> Backend:
    """The backend that a part of a model was given: itself, or its name as `choose` takes it; None: the CPU's."""
    if isinstance(backend, str | None):
        return choose(backend or "cpu")
    if not isinstance(backend, Backend):
        raise ValueError(f"backend: found {type(backend).__name__}, expected hybrid.choose(...), or a device's name")
    return backend


def again(owner: str, device: str) -> Backend:
    """The backend on which a part of a model that was pickled or copied goes on.

    Raises ValueError, naming the owner, where that device cannot be used here.
    """
    try:
        return choose(device)
    except ValueError as failure:
        raise ValueError(
            f"{owner}: pickled on {device} and goes on there only: {failure}. To go on elsewhere keep a checkpoint "
            "(Engine.save, Engine.load)"
        ) from None


def auto() -> str:
    """The device that "auto" takes, and why, in one line."""
    reason = why_no_gpu()
    return f"cpu, because {reason}" if reason else f"cuda:0, {choose('cuda:0').device.cuda.name()}"


def why_no_gpu() -> str | None:
    """The reason why no GPU can be used, None when one can."""
    reason: str | None = importlib.import_module("gpu.runtime.available").unavailable()
    return reason


@functools.cache  # one context, one owner thread and one set of compiled kernels a device
def _gpu(name: str, ordinal: int, tf32: bool) -> Backend:
    return _backend("gpu", name, ordinal, tf32)


def _backend(package: str, name: str, *settings: Any) -> Backend:
    """The backend of a package with a module `device`; those of KERNELS that it has are imported when they are used."""
    return Backend(name, importlib.import_module(f"{package}.device").Device(*settings), package)


# Pairs (host, there): an array of the host and its copy on a device; the same array where the device uses host memory.

Pairs = Iterable[tuple[np.ndarray, Any]]


def fetch_arrays(device: Any, pairs: Pairs) -> None:
    """Copy each array from the device to the host, unless both are the same."""
    for host, there in pairs:
        if host is not there:
            np.copyto(host, device.to_host(there))


def send_arrays(device: Any, pairs: Pairs) -> None:
    """Copy each array from the host to the device, unless both are the same."""
    for host, there in pairs:
        device.write(there, host)
