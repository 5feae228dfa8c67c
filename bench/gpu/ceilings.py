"""The ceilings of the device: copies, reading and writing in place, fp32 and TF32 products; ours and PyTorch's."""

import contextlib
import json
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench.gpu.machine import Contest, Machine
from bench.harness.measure import near

NUMBERS, QUICK_NUMBERS = 1 << 30, 1 << 14  # float32 of a copy: reads 4 GiB and writes 4 GiB
SIDE, QUICK_SIDE = 8192, 48  # side of the matrices
SAMPLE = 8  # rows of a product to check
PRECISIONS = ("fp32", "tf32", "bf16")
TOLERANCE = {"fp32": 1e-4, "tf32": 5e-3, "bf16": 3e-2}  # factors of 24, 11, 8 significant bits
OF_PRODUCTS = TOLERANCE | {"fp32": 1e-5}  # tolerances of a single product


def ceilings(machine: Machine, quick: bool) -> Iterator[Callable[[], Contest]]:
    """Yields a factory of the contest of each ceiling."""
    numbers, side = (QUICK_NUMBERS, QUICK_SIDE) if quick else (NUMBERS, SIDE)
    yield partial(_copy, machine, numbers)
    yield partial(_in_place, machine, numbers // 2)
    for kind in PRECISIONS[:2]:
        yield partial(_product, machine, side, kind)


def bandwidth(records: list[dict]) -> float:
    """Returns the bytes per second of the best copy."""
    return max(record["value"] for record in records)


def measured(path: str, machine: Machine, quick: bool) -> float | None:
    """Returns the bandwidth of this machine, driver and compiler from a file of results; None if missing."""
    try:
        with open(path) as file:
            records = [json.loads(line) for line in file]
    except OSError:
        return None
    wanted = {"numbers": QUICK_NUMBERS if quick else NUMBERS}
    here = [
        record
        for record in records
        if (record.get("work"), record.get("params")) == ("gpu.copy", wanted)
        and machine.facts.items() <= record["env"].items()
    ]
    return bandwidth(here) if here else None


@contextlib.contextmanager
def precision(machine: Machine, kind: str):
    """A context in which both sides multiply matrices in fp32, or in TF32; under "bf16" ours also in bfloat16."""
    for setting in _settings(machine):
        setting(kind)
    try:
        yield
    finally:
        for setting in _settings(machine):
            setting("fp32")


def _settings(machine: Machine):
    def ours(kind):
        machine.device.precision = kind

    def torchs(kind):
        machine.torch.backends.cuda.matmul.allow_tf32 = kind != "fp32"

    return [ours, torchs] if machine.torch else [ours]


def _copy(machine: Machine, numbers: int) -> Contest:
    """Returns device-to-device copies, beyond any cache; bytes read and bytes written are counted."""
    from gpu.device import copy

    contest = Contest(machine, "gpu.copy", {"numbers": numbers}, 8.0 * numbers, "bytes/s")
    source = machine.random(numbers, np.random.default_rng(1))
    target = machine.device.empty(numbers, np.float32)
    ends = (slice(0, 1000), slice(numbers - 1000, numbers))

    def check():
        for end in ends:
            near("copy", machine.device.to_host(target[end]), machine.device.to_host(source[end]), tolerance=0)
            machine.device.write(target[end], np.full(1000, np.nan, np.float32))  # for the next copy to overwrite

    contest.ours(lambda: copy(target, source), check)
    if machine.torch:
        there, here = (machine.torch.as_tensor(array, device="cuda") for array in (target, source))
        contest.torch("copy_", lambda: there.copy_(here), check)
    return contest


def _in_place(machine: Machine, numbers: int) -> Contest:
    """Returns plain SGD, which reads and writes a weight and its gradient, 16 bytes; after the first step the gradient is 0.

    PyTorch's `add_` reads and writes 8 bytes a number, and has twice as many numbers.
    """
    from gpu import units

    rate = 0.01
    contest = Contest(
        machine, "gpu.read-modify-write", {"bytes": 8 * numbers}, 16.0 * numbers, "bytes/s", moved=16.0 * numbers
    )
    rng = np.random.default_rng(2)
    both = machine.random((2, numbers), rng)
    weights, grad = (both[i : i + 1].reshape(numbers) for i in range(2))
    end = slice(numbers - 1000, numbers)
    first, slope = (machine.device.to_host(array[end]).astype(np.float64) for array in (weights, grad))

    def check():
        near("update", machine.device.to_host(weights[end]), first - rate * slope, first)
        near("the gradient afterwards", machine.device.to_host(grad[end]), np.zeros(1000), tolerance=0)

    contest.ours(lambda: units.update(weights, None, grad, rate, 0.0), check)
    if machine.torch:
        tensor = machine.torch.randn(2 * numbers, device="cuda")
        before = tensor[-1000:].cpu().numpy().astype(np.float64)
        contest.torch("add_", lambda: tensor.add_(1), lambda: near("add_", tensor[-1000:].cpu(), before + 1))
    return contest


def _product(machine: Machine, side: int, kind: str) -> Contest:
    """Returns a square product."""
    from gpu.runtime import blas

    rng = np.random.default_rng(3)
    contest = Contest(machine, "gpu.gemm", {"side": side, "precision": kind}, 2.0 * side**3, "FLOP/s")
    contest.within = precision(machine, kind)
    a, b = (rng.standard_normal((side, side), np.float32) for _ in range(2))
    expected = a[:SAMPLE].astype(np.float64) @ b.astype(np.float64)
    tolerance = OF_PRODUCTS[kind]
    out, left, right = (
        machine.device.empty(a.shape, np.float32),
        machine.device.from_host(a),
        machine.device.from_host(b),
    )

    def check():
        near("product", machine.device.to_host(out[:SAMPLE]), expected, tolerance=tolerance)

    contest.ours(lambda: blas.gemm(out, left, right), check)
    if machine.torch:
        torch = machine.torch
        parts = [torch.as_tensor(array, device="cuda") for array in (left, right)]
        result = torch.empty(a.shape, device="cuda")
        contest.torch(
            "mm",
            lambda: torch.mm(*parts, out=result),
            lambda: near("product", result[:SAMPLE].cpu(), expected, tolerance=tolerance),
        )
    return contest
