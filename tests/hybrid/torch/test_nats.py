"""What backward writes, and when it moves the readout; how far is in test_movement.py."""

import copy
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid.torch import FullLoss, TreeLoss
from tests.support.losses import CLASSES, COUNTS, MAKE, WIDTH, batch, frozen, trained

ROOT = Path(__file__).parents[3]


@pytest.fixture(params=MAKE)
def make(request):
    return MAKE[request.param]


# The gradient


@pytest.mark.parametrize(("kind", "reduction"), [*zip(MAKE, itertools.cycle(["mean", "sum"]))])
def test_the_gradient_is_the_slope_of_the_loss(kind, reduction):
    loss = trained(MAKE[kind](rate=0.5, reduction=reduction))
    loss.rate = 0.0  # nothing moves: the loss is a function of the hidden vectors alone
    hidden, target = batch(3, 4, seed=9)
    target[1, 2] = -100
    weight = torch.rand(3, 4)
    state = copy.deepcopy(loss.readout.state())

    def judged(vectors):
        if state:
            loss.readout.restore(state)  # the same negatives
        return 3 * loss(vectors, target, weight).loss

    judged(hidden).backward()
    h = 1e-2  # float32: a smaller step drowns in rounding
    for place in np.ndindex(3, 4, WIDTH):
        up, down = hidden.detach().clone(), hidden.detach().clone()
        up[place] += h
        down[place] -= h
        slope = (judged(up) - judged(down)) / (up[place] - down[place])
        assert hidden.grad[place].item() == pytest.approx(slope.item(), abs=3e-3)
    assert hidden.grad[1, 2].tolist() == [0] * WIDTH


def test_the_gradient_is_that_of_cross_entropy():
    loss = trained(FullLoss(WIDTH, CLASSES, rate=0.5))
    loss.rate = 0.0
    hidden, target = batch(2, 5)
    target[0, 0] = -100
    output, mean = loss(hidden, target)
    (2 * mean - output[1].sum()).backward()
    again = hidden.detach().double().requires_grad_()
    logits = again @ loss.state_dict()["weights"].double().T
    wanted = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
    own = logits.log_softmax(-1)[1].gather(-1, target[1][:, None])
    (2 * wanted - own.sum()).backward()
    assert mean.item() == pytest.approx(wanted.item(), rel=1e-5)
    torch.testing.assert_close(output[1].double(), own[:, 0].detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(hidden.grad.double(), again.grad, rtol=1e-4, atol=1e-6)


# When it moves


def test_nothing_moves_but_in_backward(make):
    loss = trained(make())
    before, (hidden, target) = frozen(loss), batch(16)
    loss(hidden, target)
    with torch.no_grad():
        loss(hidden, target)
    loss.log_prob(hidden), loss.predict(hidden), loss.best(hidden, 3)
    assert frozen(loss) == before
    loss(hidden, target).loss.backward()
    assert frozen(loss) != before


FREEZE = {
    "eval": lambda loss: loss.eval(),
    "frozen": lambda loss: loss.requires_grad_(False),
    "frozen by its net": lambda loss: torch.nn.Sequential(loss).requires_grad_(False)[0],
}


@pytest.mark.parametrize(("kind", "freeze"), [*zip(MAKE, itertools.cycle(FREEZE))])
def test_where_it_is_frozen_there_is_a_gradient_and_nothing_moves(kind, freeze):
    loss = FREEZE[freeze](trained(MAKE[kind](rate=0.3, optimiser="adagrad", biases=True)))
    before, (hidden, target) = frozen(loss), batch(20)
    (-5 * loss(hidden, target).loss).backward()
    hidden.grad /= -5
    up, down = (hidden.detach() + sign * 1e-2 * hidden.grad / hidden.grad.norm() for sign in (1, -1))
    slope = (loss(up, target).loss - loss(down, target).loss) / 2e-2
    assert hidden.grad.norm().item() == pytest.approx(slope.item(), rel=0.02)
    assert frozen(loss) == before and hidden.grad.abs().max() > 0
    loss.train().requires_grad_(True)(*batch(20)).loss.backward()
    assert frozen(loss) != before


def test_hidden_vectors_that_need_no_gradient_teach_all_the_same(make):
    loss, other = make(), make()
    hidden, target = batch(16, grad=False)
    loss(hidden, target).loss.backward()
    other(*batch(16)).loss.backward()
    assert hidden.grad is None and frozen(loss) == frozen(other)


def test_each_backward_of_a_kept_graph_moves_again(make):
    loss, other = make(rate=0.3), make(rate=0.3)
    hidden, target = batch(16)
    judged = loss(hidden, target).loss
    judged.backward(retain_graph=True)
    first, before = hidden.grad.clone(), frozen(loss)
    judged.backward()
    for _ in range(2):
        other(*batch(16)).loss.backward()
    assert frozen(loss) == frozen(other) and frozen(loss) != before
    assert not hidden.grad.equal(2 * first)  # of the parameters as the second one found them
    after = frozen(loss)
    with pytest.raises(RuntimeError, match="second time"):
        judged.backward()
    assert frozen(loss) == after


def test_the_gradient_is_of_the_parameters_as_backward_finds_them():
    loss, other = trained(MAKE["huffman"](rate=0.3)), trained(MAKE["huffman"](rate=0.3))
    hidden, target = batch(16)
    waiting = loss(hidden, target).loss
    for each in (loss, other):
        each(*batch(16, seed=5)).loss.backward()
    waiting.backward()
    again = batch(16)[0]
    other(again, target).loss.backward()
    assert hidden.grad.equal(again.grad) and frozen(loss) == frozen(other)


@pytest.mark.parametrize("call", [lambda loss, h: loss.log_prob(h), lambda loss, h: loss.best(h, 3)[1]])
def test_a_backward_through_answers_is_refused(call):
    loss = trained(MAKE["huffman"]())
    hidden, _ = batch(16)
    with pytest.raises(RuntimeError, match=r"Loss: found a backward through log_prob or best, expected"):
        call(loss, hidden).sum().backward()
    assert not call(loss, hidden.detach()).requires_grad


# What is refused in backward


@pytest.mark.parametrize(
    ("factor", "error", "told"),
    [
        (-1.0, ValueError, r"upstream gradient\[0\]: found one below 0, expected at least 0"),
        (float("nan"), FloatingPointError, r"upstream gradient\[0\]: found nan"),
        (float("inf"), FloatingPointError, r"upstream gradient\[0\]: found inf"),
    ],
)
def test_upstream_gradients_that_are_none(factor, error, told):
    loss = trained(MAKE["huffman"]())
    before = frozen(loss)
    with pytest.raises(error, match=told):
        (factor * loss(*batch(16)).loss).backward()
    assert frozen(loss) == before


def test_a_graph_of_the_gradient_is_refused():
    loss = trained(MAKE["huffman"]())
    before, (hidden, target) = frozen(loss), batch(16)
    with pytest.raises(RuntimeError, match=r"Loss: found create_graph=True, expected a first derivative"):
        torch.autograd.grad(loss(hidden, target).loss, hidden, create_graph=True)
    assert frozen(loss) == before


class Net(torch.nn.Module):
    """A layer under a loss."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.trunk, self.head = torch.nn.Linear(WIDTH, WIDTH), TreeLoss(WIDTH, COUNTS, rate=0.3)

    def forward(self, vectors, target):
        return self.head(self.trunk(vectors).tanh(), target)


def learn(compiled: bool) -> tuple[bytes, torch.Tensor]:
    """What three steps teach the loss, and the last gradients of the layer."""
    net = Net()
    call = torch.compile(net, backend="aot_eager") if compiled else net
    for seed in range(3):
        call(*batch(16, seed=seed, grad=False)).loss.backward()
    return frozen(net.head), net.trunk.weight.grad


def test_a_compiled_net_around_it_learns_the_same():
    """In a process of its own: while PyTorch compiles it warns of itself, and hides that only where warnings are no errors."""
    script = """
from tests.hybrid.torch.test_nats import learn
(tree, grad), (same, again) = learn(False), learn(True)
assert tree == same and grad.equal(again)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
