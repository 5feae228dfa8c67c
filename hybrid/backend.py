"""Selection of the kernel modules of a device: choose("cuda:0" | "cuda:0+tf32" | "cuda:0+bf16" | "cpu" | None)."""

import functools
import importlib
import importlib.util
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

KERNELS = (  # of a complete backend
    *("units", "mlp", "optimiser", "rows", "softmax", "tree_softmax", "tree_batch", "head", "pvm"),
    *("sampled_softmax", "sampled_logistic", "negative"),
)

turn = 0  # offset added to this process's GPU number, modulo the GPUs of the machine; set by hybrid/mpi/group.py


class Backend:
    """A device and its kernel modules: `backend.units`, `backend.rows`, ...; see KERNELS.

    Each module implements the Protocol of its name in hybrid/contract.py. A backend may lack some of them: the GPU backend
    has no kernels for sampled classes, the CPU none for trees in batches. Access to a missing module raises ValueError.

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
            raise ValueError(f'device: "{self.name}" has no kernels for {name}, only for {offered}; use "cpu"')
        module = self.__dict__[name] = importlib.import_module(f"{self._package}.{name}")
        return module

    def _has(self, name: str) -> bool:
        return importlib.util.find_spec(f"{self._package}.{name}") is not None


def choose(device: str | None = None) -> Backend:
    """Returns the backend of a device; None and "auto" select the first usable GPU, otherwise the CPU.

    With several ranks on a machine, the first uses that GPU and each further rank the next one, see `turn`.

    "cuda:0+tf32" enables TF32 tensor cores, which round factors to 10-bit mantissas; by default they are off. With
    "cuda:0+bf16" the step of a full softmax also has factors and logits of bfloat16; its rows stay float32.

    Raises ValueError, with the reason and the remedy, if the device does not exist or is unusable.
    """
    if device is None or device == "auto":
        device = "cpu" if why_no_gpu() else "cuda:0"
    if device == "cpu":
        return _backend("cpu", "cpu")
    named = re.fullmatch(r"cuda:(\d+)(?:\+(tf32|bf16))?", str(device))
    if not named:
        raise ValueError(f'device: found "{device}", expected "auto", "cpu", "cuda:N", "cuda:N+tf32" or "cuda:N+bf16"')
    reason = why_no_gpu()
    if reason:
        raise ValueError(f'device: "{device}" cannot be used: {reason}; use "cpu"')
    ordinal, devices = int(named[1]), importlib.import_module("gpu.runtime.available").devices() if turn else 0
    return _gpu(device, (ordinal + turn) % devices if ordinal < devices else ordinal, named[2] or "fp32")


def given(backend: Backend | str | None) -> Backend:
    """Returns the backend itself, or the one of that name as `choose` takes it; None selects the CPU."""
    if isinstance(backend, str | None):
        return choose(backend or "cpu")
    if not isinstance(backend, Backend):
        raise ValueError(f"backend: found {type(backend).__name__}, expected hybrid.choose(...), or a device's name")
    return backend


def again(owner: str, device: str) -> Backend:
    """Returns the backend on which a pickled or copied part continues; ValueError that names the owner if it is unusable."""
    try:
        return choose(device)
    except ValueError as failure:
        raise ValueError(
            f"{owner}: pickled on {device} and usable only there: {failure}. To use another device, save a checkpoint "
            "(Engine.save, Engine.load)"
        ) from None


def auto() -> str:
    """Returns the device that "auto" selects and the reason, in one line."""
    reason = why_no_gpu()
    return f"cpu, because {reason}" if reason else f"cuda:0, {choose('cuda:0').device.cuda.name()}"


def why_no_gpu() -> str | None:
    """Returns the reason why no GPU is usable, or None if one is."""
    return importlib.import_module("gpu.runtime.available").unavailable()


@functools.cache  # one context, one owner thread and one set of compiled kernels per device
def _gpu(name: str, ordinal: int, precision: str) -> Backend:
    return _backend("gpu", name, ordinal, precision)


def _backend(package: str, name: str, *settings: Any) -> Backend:
    """Returns the backend of a package that has a module `device`; its KERNELS modules are imported on first use."""
    return Backend(name, importlib.import_module(f"{package}.device").Device(*settings), package)


# Pairs (host, there): a host array and its copy on a device, or the same array twice if the device uses host memory.

Pairs = Iterable[tuple[np.ndarray, Any]]


def fetch_arrays(device: Any, pairs: Pairs) -> None:
    """Copies each array from the device to the host, unless both are the same."""
    for host, there in pairs:
        if host is not there:
            np.copyto(host, device.to_host(there))


def send_arrays(device: Any, pairs: Pairs) -> None:
    """Copies each array from the host to the device, unless both are the same."""
    for host, there in pairs:
        device.write(there, host)
