"""Tests of the simulator, each in a process of its own: a broken context or a dead process stays with one test."""

import ctypes
import hashlib
import importlib
import inspect
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tests import cudasim

KERNELS = Path(__file__).with_name("kernels.cu")


def isolated(code: int = 0, says: str = "", **settings: object) -> Callable[[Callable], Callable[[], None]]:
    """Run the test in its own process, with CUDASIM_ variables; expect its exit code, and a text on stderr.

    Its arguments, such as a Gpu, are made there, of the classes that its annotations name.
    """

    def wrap(body: Callable) -> Callable[[], None]:
        def test() -> None:
            variables = {f"CUDASIM_{name.upper()}": str(value) for name, value in settings.items()}
            command = [sys.executable, "-m", "tests.cudasim.isolated", body.__module__, body.__name__]
            root = Path(__file__).resolve().parents[2]
            done = subprocess.run(command, cwd=root, env=os.environ | variables, capture_output=True, text=True)
            assert done.returncode == code, done.stdout + done.stderr
            assert says in done.stderr, done.stderr

        test.__name__, test.__doc__, test.__module__ = body.__name__, body.__doc__, body.__module__
        test.body = body  # type: ignore[attr-defined]
        return test

    return wrap


def compiled(source: Path = KERNELS, architecture: str = "sm_90") -> Path:
    """The image of a kernel file, compiled once for all processes."""
    state = hashlib.sha256(architecture.encode() + cudasim.NVCC.read_bytes() + source.read_bytes())
    state.update(os.environ.get("CUDASIM_COUNT", "").encode())  # which makes it another image
    for header in sorted((cudasim.HERE / "include").glob("*.h")):
        state.update(header.read_bytes())
    image = cudasim.CACHE / f"{source.stem}-{state.hexdigest()[:16]}.cubin"
    if not image.exists():
        cudasim.CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run([cudasim.NVCC, "-cubin", f"-arch={architecture}", "-o", image, source], check=True)
    return image


class Gpu:
    """A device with a context, and what the tests do with it."""

    def __init__(self, ordinal: int = 0, source: Path = KERNELS, architecture: str = "sm_90") -> None:
        import pycuda.driver as driver

        self.driver = driver
        driver.init()
        self.context = driver.Device(ordinal).retain_primary_context()
        self.context.push()
        self.module = driver.module_from_file(str(compiled(source, architecture)))

    def close(self) -> None:
        """Let go of the context; what is still allocated then is a leak."""
        self.module = None
        self.context.pop()
        self.context.detach()

    def kernel(self, name: str, arguments: str):
        """A prepared kernel of kernels.cu."""
        function = self.module.get_function(name)
        function.prepare(arguments)
        return function

    def locked(self, values) -> np.ndarray:
        """Page-locked float32 memory with these values."""
        values = np.asarray(values, np.float32)
        buffer = self.driver.pagelocked_empty(values.shape, np.float32)
        buffer[...] = values
        return buffer

    def run(self, name: str, arguments: str, *values, grid=(1, 1), block=(32, 1, 1), shared: int = 0) -> None:
        """Launch a kernel and wait for it."""
        self.kernel(name, arguments).prepared_call(grid, block, *values, shared_size=shared)
        self.driver.Context.synchronize()

    def to_device(self, values):
        """A device array of these float32 values."""
        values = np.asarray(values, np.float32)
        memory = self.driver.mem_alloc(values.nbytes)
        self.driver.memcpy_htod(memory, values)
        return memory

    def to_host(self, memory, count: int, dtype=np.float32) -> np.ndarray:
        """The first values of a device array."""
        out = np.empty(count, dtype)
        self.driver.memcpy_dtoh(out, memory)
        return out

    @contextmanager
    def broken(self, kind: str, text: str = "", heal: bool = True) -> Iterator[None]:
        """The body ends in a CUDA error, and the first problem noted is of this kind and says this; then all is well again."""
        try:
            yield
        except self.driver.Error:
            pass
        else:
            raise AssertionError(f"no error; problems: {cudasim.problems()}")
        found = cudasim.problems()
        assert found and found[0].startswith(kind + ":") and text in found[0], found
        if heal:
            cudasim.clear()
            cudasim.heal()


def driver_call(name: str, *arguments) -> int:
    """Call the driver itself, where PyCUDA would not let us."""
    return getattr(cudasim.start(), name)(*arguments)


def pointer(address) -> ctypes.c_void_p:
    """An address as an argument of driver_call."""
    return ctypes.c_void_p(int(address))


def main() -> None:
    """Run one test's body here."""
    cudasim.start()
    module, name = sys.argv[1:]
    code = 0
    try:
        body = getattr(importlib.import_module(module), name).body
        body(*(one.annotation() for one in inspect.signature(body).parameters.values()))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)  # PyCUDA would abort over the context that a failed test leaves behind


if __name__ == "__main__":
    main()
