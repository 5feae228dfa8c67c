"""Gradients of a module as one flat array: what a parameter has, and whether it has any."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from cpu.device import Device
from hybrid.trunk.torch import TorchGradient, place


def gradient(*parameters):
    return TorchGradient(Device(), place(Device(), 1), parameters)


def test_gradients_of_micro_batches_are_added_and_given_back():
    first, second, third = (torch.nn.Parameter(torch.zeros(shape)) for shape in ((2, 3), (4,), (1,)))
    found = gradient(first, second, third)
    for micro in range(3):
        first.grad = torch.full((2, 3), 10.0**micro)
        second.grad = torch.arange(4.0) if micro == 1 else None
        found.take()
        found.add(micro)
        assert first.grad is None
    found.give()
    assert first.grad.tolist() == [[111.0] * 3] * 2 and second.grad.tolist() == [0, 1, 2, 3]
    assert third.grad is None and found.flags.tolist() == [1, 1, 0]
    found.clear()
    assert first.grad is None and not found.flags.any()
    assert not any(array.any() for array in found._arrays)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_one_micro_batch_keeps_the_bits_of_any_dtype(dtype):
    own = torch.nn.Parameter(torch.zeros(50, dtype=dtype))
    expected = torch.randn(50, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    found, own.grad = gradient(own), expected.clone()
    assert found.dtype == (np.float64 if dtype == torch.float64 else np.float32)
    found.take()
    found.add(0)
    found.give()
    assert own.grad.dtype == dtype and torch.equal(own.grad, expected)
