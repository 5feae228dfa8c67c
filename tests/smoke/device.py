"""A device for the cases of tests/smoke: arrays that begin as NaN, what was launched, and how far numbers are off."""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from bench.gpu.kit import compile_kernels
from hybrid.contract import Learned
from tests.support import visits


class Check(NamedTuple):
    """Numbers that were found, and those that were expected; `first`: what they were before, since a step moves them by little.

    Allowed are `tolerance` of the change, as in bench.harness.measure.near, and two roundings; nothing of whole numbers.
    """

    what: str
    found: Any
    expected: Any
    first: Any = 0.0
    tolerance: float = 1e-4

    def distances(self) -> tuple[float, float, float]:
        """Error, what is allowed, and the change. FloatingPointError where a number is not finite, or was never written."""
        if wrong := int(np.count_nonzero(~np.isfinite(self.found))):
            raise FloatingPointError(f"{self.what}: {wrong} of {self.found.size} numbers are not finite")
        expected = np.asarray(self.expected, np.float64)
        parts = self.found - expected, expected - self.first, expected
        error, change, size = (float(np.linalg.norm(part.ravel())) for part in parts)
        whole = self.found.dtype.kind in "iu"
        return error, 0.0 if whole else self.tolerance * change + 2**-23 * size, change


class Case(NamedTuple):
    """work(gpu) gives the checks; kernels: names that it must launch, among others, so that a case is what it is called."""

    work: Callable[["Gpu"], Iterable[Check]]
    kernels: tuple[str, ...] = ()


class Gpu:
    """A device, the simulated one under `python -m tests.cudasim`, with all kernels compiled."""

    queue: Any
    rng: np.random.Generator

    def __init__(self) -> None:
        self.simulated = bool(os.environ.get("CUDASIM"))
        from gpu.device import Device
        from gpu.runtime import blas, kernels

        if self.simulated:  # a workspace of cuBLAS that is not filled with poison for a second
            mock.patch.object(blas.Handle, "_room", lambda handle: 1 << 16).start()
        self.device = Device(0)
        self.name: str = self.device.cuda.name()
        try:
            compile_kernels(kernels.target(self.device.capability))
        except OSError as error:
            print(f"not all kernels compile: {error}", file=sys.stderr, flush=True)  # cases say which do not

    def run(self, case: Case) -> tuple[list[Check], list[str]]:
        """The checks of a case, and the kernels that it launched, as "units.step_whole"."""
        from gpu.runtime import kernels

        launch, launched = kernels.launch, {}

        def noted(file: str, name: str, *rest: Any, **more: Any) -> None:
            launched[name] = f"{Path(file).stem}.{name}"
            launch(file, name, *rest, **more)

        self.queue, self.rng = self.device.inline("smoke", 1), np.random.default_rng(7)
        with mock.patch.object(kernels, "launch", noted):
            checks = list(case.work(self))
        if missing := [name for name in case.kernels if name not in launched]:
            raise LookupError(f"{missing[0]} was not launched, but {', '.join(launched)}")
        self._problems()
        return checks, sorted(launched.values())

    def lost(self) -> bool:
        """Whether the device does no more work: only another process has it again. A DeviceError alone does not say so."""
        try:
            self.device.owner.call(self.device.context.synchronize)
            self._problems()
        except Exception:
            return True
        return False

    def _problems(self) -> None:
        from tests import cudasim

        if self.simulated and (found := cudasim.problems()):
            raise RuntimeError(f"the simulated driver saw {found[0]}")

    def do(self, work: Callable, *arguments: Any) -> Any:
        """The result of some work on the queue, once the device has done it."""
        return self.queue.run(work, *arguments).wait()

    def get(self, array: Any) -> Any:
        """A copy on the host; of what learns too."""
        return visits.copied(array, self.get) if isinstance(array, Learned) else self.device.to_host(array)

    def put(self, array: Any) -> Any:
        """A copy on the device, of float32 but for whole numbers; of what learns too, None of None."""
        if array is None or isinstance(array, Learned):
            return array and visits.copied(array, self.put)
        return self.device.from_host(array.astype(np.float32) if array.dtype.kind == "f" else array)

    def empty(self, *shape: int, dtype: Any = np.float32) -> Any:
        """An array whose bytes are all 255: NaN, or -1."""
        return self.poisoned(self.device.empty(shape, dtype))

    def poisoned(self, there: Any) -> Any:
        """An array, or a workspace of several, whose bytes are now all 255."""
        from tests.support.fill_bytes import fill_bytes

        if isinstance(there, tuple):
            return type(there)(*map(self.poisoned, there))
        self.do(fill_bytes, there, 255)
        return there

    def normal(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        """Random numbers of float32."""
        return (scale * self.rng.normal(size=shape)).astype(np.float32)

    def random(self, *shape: int) -> np.ndarray:
        """Random numbers of float32, from 0 to 1."""
        return self.rng.random(shape, np.float32)
