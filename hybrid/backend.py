"""Which modules do the arithmetic: choose("cuda:0" | "cuda:0+tf32" | "cpu" | None), or why a device cannot be taken."""

import functools
import importlib
import re
from types import ModuleType
from typing import Any, NamedTuple


class Backend(NamedTuple):
    """A device and the modules that compute on it; each module keeps its Protocol in hybrid/contract.py.

    sampled_softmax and negative are None on a GPU: what is drawn and sparse is the CPU's.
    """

    name: str
    device: Any
    units: ModuleType
    rows: ModuleType
    softmax: ModuleType
    tree_softmax: ModuleType
    split: ModuleType
    pvm: ModuleType
    sampled_softmax: Any = None
    negative: Any = None


MODULES = {"gpu": Backend._fields[2:8], "cpu": Backend._fields[2:]}


def choose(device: str | None = None) -> Backend:
    """The backend of a device; None and "auto" take the first GPU when it can be used and the CPU otherwise.

    "cuda:0+tf32" lets the tensor cores of a GPU multiply with factors of 10 bits; nothing else does.

    Raises ValueError, with the reason and the remedy, for a device that does not exist or cannot be used.
    """
    if device is None or device == "auto":
        device = "cpu" if why_no_gpu() else "cuda:0"
    if device == "cpu":
        return _backend("cpu", "cpu")
    named = re.fullmatch(r"cuda:(\d+)(\+tf32)?", device)
    if not named:
        raise ValueError(f'device: found "{device}", expected "auto", "cpu", "cuda:N" or "cuda:N+tf32"')
    reason = why_no_gpu()
    if reason:
        raise ValueError(f'device: "{device}" cannot be used: {reason}; use --device cpu')
    return _gpu(device, int(named[1]), bool(named[2]))


def again(owner: str, device: str) -> Backend:
    """The backend on which a part of a model goes on that was pickled or copied.

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
    return importlib.import_module("gpu.device").unavailable()


@functools.cache  # one context, one owner thread and one set of compiled kernels a device
def _gpu(name: str, ordinal: int, tf32: bool) -> Backend:
    return _backend("gpu", name, ordinal, tf32)


def _backend(package: str, name: str, *settings) -> Backend:
    device = importlib.import_module(f"{package}.device").Device(*settings)
    return Backend(name, device, *(importlib.import_module(f"{package}.{module}") for module in MODULES[package]))
