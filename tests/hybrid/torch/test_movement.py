"""How far backward moves the readout."""

import copy
import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from tests.support.losses import CLASSES, MAKE, WIDTH, batch, frozen, learned, trained


@pytest.fixture(params=MAKE)
def make(request):
    return MAKE[request.param]


def stepped(loss, hidden, target, weight=None):
    """The readout's own step on arrays; its gradient."""
    grad = np.empty((len(target), WIDTH), np.float32)
    given = () if weight is None else (weight.numpy(),)
    loss.readout.step(grad, hidden.detach().numpy(), target.int().numpy(), *given)
    return torch.from_numpy(grad)


def test_a_step_moves_it_as_a_step_of_the_readout_does(make, threads):
    ours, plain = make(rate=0.3), make(rate=0.3)
    for seed in range(4):
        hidden, target = batch(16, seed=seed)
        ours(hidden, target).loss.backward()
        grad = stepped(plain, hidden, target)
        assert (hidden.grad * 16).equal(grad)  # 16: a power of two, so nothing is rounded
        assert frozen(ours) == frozen(plain)


@pytest.mark.parametrize(("kind", "reduction"), [*zip(MAKE, itertools.cycle(["none", "mean", "sum"]))])
def test_a_reduction_moves_each_example_as_far(kind, reduction):
    ours, plain = MAKE[kind](rate=0.3, reduction=reduction), MAKE[kind](rate=0.3)
    hidden, target = batch(3, 5)
    loss = ours(hidden, target).loss
    assert loss.shape == (target.shape if reduction == "none" else ())
    loss.sum().backward()
    stepped(plain, hidden.flatten(0, 1), target.flatten())
    assert frozen(ours) == frozen(plain)


WHOLE = [("mean", 0.25), ("sum", 0.1), ("none", 65536.0), ("mean", 3e-8), ("sum", 1024.0)]


@pytest.mark.parametrize(
    ("kind", "reduction", "factor"), [(kind, *way) for kind, way in zip(MAKE, itertools.cycle(WHOLE))]
)
def test_a_factor_of_the_whole_loss_does_not_count(kind, reduction, factor):
    """So a GradScaler of any scale is undone, and 1 / n is under accumulation."""
    ours, plain = MAKE[kind](rate=0.3, reduction=reduction), MAKE[kind](rate=0.3)
    hidden, target = batch(16)
    weight = torch.rand(16)
    loss = ours(hidden, target, weight).loss
    (factor * loss.sum()).backward()
    grad = stepped(plain, hidden, target, weight)
    assert frozen(ours) == frozen(plain)
    unit = factor / (weight.sum() if reduction == "mean" else 1)
    torch.testing.assert_close(hidden.grad, grad * unit, rtol=1e-5, atol=0)


def test_a_loss_times_zero_moves_nothing(make):
    loss = trained(make(rate=0.3))
    before, (hidden, target) = learned(loss), batch(16)
    (0 * loss(hidden, target).loss).backward()
    assert learned(loss).equal(before) and hidden.grad.abs().max() == 0


def test_factors_of_the_user_s_own_count_against_their_mean(make):
    ours, plain = make(rate=0.3, reduction="none"), make(rate=0.3)
    hidden, target = batch(16)
    factors = torch.arange(16.0)
    (ours(hidden, target).loss * factors / 700).sum().backward()
    stepped(plain, hidden, target, factors / factors[1:].mean())
    np.testing.assert_allclose(learned(ours), learned(plain), rtol=1e-5, atol=1e-6)


def accumulated(loss, calls):
    """How far 16 examples move a loss, by so many calls of (loss / calls).backward(); and their gradient."""
    before, (hidden, target) = learned(loss), batch(16)
    for part in torch.arange(16).chunk(calls):
        (loss(hidden[part], target[part]).loss / calls).backward()
    return learned(loss) - before, hidden.grad


def test_accumulation_moves_as_far_as_one_batch():
    """To first order in the rate, since each call learns at once; where the classes are all drawn."""
    calls = 4
    for kind in MAKE:
        more = {"negatives": 4 * CLASSES} if kind == "sampled" else {}
        loss = trained(MAKE[kind](rate=0.3, **more))
        loss.rate = 1e-3
        (whole, grad), (parts, again) = (accumulated(copy.deepcopy(loss), count) for count in (1, calls))
        if kind != "logistic":  # whose draws are others in each call
            tolerance = 0.1 if kind == "sampled" else 2e-3
            assert (parts - whole).norm() < tolerance * whole.norm(), kind
            torch.testing.assert_close(again, grad, rtol=0.02, atol=0.02 * grad.abs().max().item())
        assert (parts.norm() / whole.norm()).item() == pytest.approx(1, abs=0.1), kind


def test_a_readout_moves_by_the_slope_of_the_loss(make):
    """Minus the rate times the slope of the summed loss by each of its parameters, by finite differences."""
    loss = trained(make(rate=0.5, reduction="sum"))
    loss.rate, (hidden, target) = 1e-3, batch(1, seed=9, grad=False)
    state = copy.deepcopy(loss.readout.state())
    table = next(iter(loss.state_dict().values()))

    def judged():
        if state:
            loss.readout.restore(state)  # the same negatives
        return loss(hidden, target).loss

    before, slopes = table.clone(), torch.zeros_like(table)
    for place in np.ndindex(*table.shape):
        values = []
        for value in (before[place] + 1e-2, before[place] - 1e-2):
            table[place] = value
            values.append(judged().detach())
        table[place] = before[place]
        slopes[place] = (values[0] - values[1]) / 2e-2
    (judged() / 3).backward()
    torch.testing.assert_close(table - before, -1e-3 * slopes, rtol=0.02, atol=1e-6)


def test_weights_and_ignored_targets_count_as_in_a_step(make):
    ours, plain = make(rate=0.3), make(rate=0.3)
    hidden, target = batch(16)
    weight = torch.arange(16.0)
    target[3:7] = -100
    kept = target >= 0
    found = ours(hidden, target, weight)
    exact = -plain.eval()(hidden[kept], target[kept]).output
    if "Sampled" not in type(ours).__name__:
        assert found.loss.item() == pytest.approx(((exact * weight[kept]).sum() / weight[kept].sum()).item(), rel=1e-5)
        np.testing.assert_allclose(-found.output[kept].detach(), exact.detach(), rtol=1e-6)
    assert found.output[~kept].tolist() == [0] * 4
    found.loss.backward()
    stepped(plain, hidden[kept], target[kept], weight[kept])
    assert frozen(ours) == frozen(plain)
    assert hidden.grad[3:7].abs().max() == 0 and hidden.grad[0].abs().max() == 0


def test_more_rows_than_a_step_takes_are_several_steps(make):
    ours, plain = make(rate=0.3, batch=16), make(rate=0.3, batch=16)
    hidden, target = batch(40)
    ours(hidden, target).loss.backward()
    grads = [stepped(plain, hidden[part], target[part]) for part in (slice(0, 16), slice(16, 32), slice(32, 40))]
    assert frozen(ours) == frozen(plain)
    torch.testing.assert_close(hidden.grad * 40, torch.cat(grads))
