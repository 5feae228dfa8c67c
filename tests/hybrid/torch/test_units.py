"""hybrid.torch.UnitsModule beside the same networks in PyTorch's autograd."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hybrid import Units
from hybrid.torch import UnitsModule

COUNT, INPUTS, HIDDEN, OUTPUTS = 4, 6, 5, 3


def _own(module):
    """The same units as tensors that require gradients: matrices and biases of both layers."""
    parts = zip(*(module.units.weights_of(unit) for unit in range(COUNT)), strict=True)
    return [torch.from_numpy(np.stack(part)).requires_grad_() for part in parts]


def _outputs(x, first, first_bias, second, second_bias):
    hidden = torch.tanh(torch.einsum("bun,uhn->buh", x, first) + first_bias)
    return torch.tanh(torch.einsum("buh,uoh->buo", hidden, second) + second_bias)


@pytest.fixture
def module():
    return UnitsModule(Units(COUNT, INPUTS, HIDDEN, OUTPUTS, activation="tanh", device="cpu"), rate=0.25)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_and_moves_are_those_of_autograd(module, dtype):
    x = torch.randn(7, COUNT, INPUTS, generator=torch.manual_seed(0), dtype=dtype)
    for _ in range(2):
        own, mine, theirs = _own(module), x.clone().requires_grad_(), x.float().clone().requires_grad_()
        loss, expected = module(mine).pow(4).mean(), _outputs(theirs, *own).pow(4).mean()
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        loss.backward()
        expected.backward()
        assert mine.grad.dtype == dtype
        torch.testing.assert_close(mine.grad.float(), theirs.grad, rtol=1e-4, atol=1e-7)
        for part, now in zip(own, _own(module), strict=True):
            torch.testing.assert_close(now.detach(), (part - 0.25 * part.grad).detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("still", [lambda module: module.eval(), lambda module: module.requires_grad_(False)])
def test_what_is_frozen_gives_gradients_and_stays(module, still):
    before = module.units.weights
    still(module)
    x = torch.randn(2, COUNT, INPUTS, requires_grad=True)
    module(x).sum().backward()
    assert x.grad.abs().sum() > 0 and module.units.weights.tobytes() == before.tobytes()


def test_a_net_may_be_on_another_device_than_its_input(module):
    module.to("meta")  # as cuda() moves the anchor, whose gradient PyTorch wants there
    before = module.units.weights
    module(torch.ones(COUNT, INPUTS)).sum().backward()
    assert module.anchor.grad.is_meta and module.units.weights.tobytes() != before.tobytes()


def test_its_state_is_that_of_the_units(module):
    other = copy.deepcopy(module)
    module(torch.ones(COUNT, INPUTS)).sum().backward()
    assert other.units.weights.tobytes() != module.units.weights.tobytes()
    other.load_state_dict(module.state_dict())
    assert other.units.weights.tobytes() == module.units.weights.tobytes()
    small = UnitsModule(Units(1, 2, 2, 2, device="cpu"))
    before = small.units.weights
    with pytest.raises(ValueError, match="weights: found float32"):
        small.load_state_dict(module.state_dict())
    assert small.units.weights.tobytes() == before.tobytes()


def test_mistakes_are_named(module):
    with pytest.raises(ValueError, match=r"units: found Linear, expected hybrid\.Units"):
        UnitsModule(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="rate: found -1"):
        UnitsModule(module.units, -1)
    with pytest.raises(ValueError, match=r"x: found torch\.int64, expected a tensor of floats"):
        module(torch.ones(COUNT, INPUTS, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"x: found float32 \(2, 2\), expected numbers \(4, 6\)"):
        module(torch.ones(2, 2))
    x = torch.ones(COUNT, INPUTS, requires_grad=True)
    with pytest.raises(RuntimeError, match="create_graph=True"):
        torch.autograd.grad(module(x).sum(), x, create_graph=True)
