"""What backward writes, when it moves the readout and how far; alone, compiled, and in two processes."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid import Adagrad
from hybrid.torch import FullLoss
from tests.support.losses import CLASSES, MAKE, WIDTH, batch, frozen, learned, trained

ROOT = Path(__file__).parents[3]
FREEZE = {
    "eval": lambda loss: loss.eval(),
    "frozen": lambda loss: loss.requires_grad_(False),
    "frozen by its net": lambda loss: torch.nn.Sequential(loss).requires_grad_(False)[0],
}


@pytest.fixture(params=MAKE)
def make(request):
    return MAKE[request.param]


# The gradient


def test_the_gradient_is_that_of_cross_entropy():
    loss = trained(FullLoss(WIDTH, CLASSES, optimiser=Adagrad(0.5)))
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
    loss, other = trained(make()), trained(make())
    before, (hidden, target) = frozen(loss), batch(16)
    loss(hidden, target)
    with torch.no_grad():
        loss(hidden, target)
    loss.log_prob(hidden), loss.predict(hidden), loss.best(hidden, 3)
    assert frozen(loss) == before
    (0 * loss(hidden, target).loss).backward()
    assert learned(loss).equal(learned(other)) and hidden.grad.abs().max() == 0
    loss, plain = trained(make()), batch(16, grad=False)[0]
    for each, vectors in ((loss, plain), (other, hidden)):  # vectors that need no gradient teach all the same
        each(vectors, target).loss.backward()
    assert plain.grad is None and frozen(loss) == frozen(other) != before


@pytest.mark.parametrize(("kind", "freeze"), [*zip(MAKE, itertools.cycle(FREEZE))])
def test_where_it_is_frozen_there_is_a_gradient_and_nothing_moves(kind, freeze):
    loss = FREEZE[freeze](trained(MAKE[kind](optimiser=Adagrad(0.3), biases=True)))
    before, (hidden, target) = frozen(loss), batch(20)
    (-5 * loss(hidden, target).loss).backward()
    hidden.grad /= -5
    up, down = (hidden.detach() + sign * 1e-2 * hidden.grad / hidden.grad.norm() for sign in (1, -1))
    slope = (loss(up, target).loss - loss(down, target).loss) / 2e-2
    assert hidden.grad.norm().item() == pytest.approx(slope.item(), rel=0.02)
    assert frozen(loss) == before and hidden.grad.abs().max() > 0
    loss.train().requires_grad_(True)(*batch(20)).loss.backward()
    assert frozen(loss) != before


def test_each_backward_of_a_kept_graph_moves_again(make):
    loss, other = make(rate=0.3), make(rate=0.3)
    hidden, target = batch(16)
    judged = loss(hidden, target).loss
    judged.backward(retain_graph=True)
    before = frozen(loss)
    judged.backward()
    again = [batch(16)[0] for _ in range(2)]
    for vectors in again:
        other(vectors, target).loss.backward()
    assert frozen(loss) == frozen(other) and frozen(loss) != before
    assert hidden.grad.equal(again[0].grad + again[1].grad)  # each of the parameters as that backward found them
    assert not again[0].grad.equal(again[1].grad)
    after = frozen(loss)
    with pytest.raises(RuntimeError, match="second time"):
        judged.backward()
    assert frozen(loss) == after


# How far it moves


def stepped(loss, hidden, target, weight=None):
    """The readout's own step on arrays; its gradient."""
    grad = np.empty((len(target), WIDTH), np.float32)
    given = () if weight is None else (weight.numpy(),)
    loss.readout.step(grad, hidden.detach().numpy(), target.int().numpy(), *given)
    return torch.from_numpy(grad)


FACTORS = [("mean", 0.25), ("sum", 0.1), ("none", 65536.0), ("mean", 3e-8), ("sum", 1024.0)]


@pytest.mark.parametrize(("kind", "factor"), [*zip(MAKE, itertools.cycle(FACTORS))])
def test_a_factor_of_the_whole_loss_does_not_count(kind, factor):
    """So a GradScaler of any scale is undone, and 1 / n is under accumulation."""
    reduction, factor = factor
    ours, plain = MAKE[kind](rate=0.3, reduction=reduction), MAKE[kind](rate=0.3)
    hidden, target = batch(16)
    weight = torch.rand(16)
    loss = ours(hidden, target, weight).loss
    assert loss.shape == (target.shape if reduction == "none" else ())
    (factor * loss.sum()).backward()
    grad = stepped(plain, hidden, target, weight)
    assert frozen(ours) == frozen(plain)
    unit = factor / (weight.sum() if reduction == "mean" else 1)
    torch.testing.assert_close(hidden.grad, grad * unit, rtol=1e-5, atol=0)


def test_factors_of_the_user_s_own_count_against_their_mean(make):
    ours, plain = make(rate=0.3, reduction="none"), make(rate=0.3)
    hidden, target = batch(16)
    factors = torch.arange(16.0)
    (ours(hidden, target).loss * factors / 700).sum().backward()
    stepped(plain, hidden, target, factors / factors[1:].mean())
    np.testing.assert_allclose(learned(ours), learned(plain), rtol=1e-5, atol=1e-6)


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


def test_more_rows_than_a_step_takes_are_several_steps_of_the_readout(make):
    ours, plain = make(rate=0.3, batch=24), make(rate=0.3, batch=24)
    hidden, target = batch(32)
    ours(hidden, target).loss.backward()
    grads = [stepped(plain, hidden[part], target[part]) for part in (slice(0, 24), slice(24, 32))]
    assert frozen(ours) == frozen(plain)
    assert (hidden.grad * 32).equal(torch.cat(grads))  # 32: a power of two, so nothing is rounded


# What is rejected in backward


def upstream(factor):
    return lambda loss, hidden, target: (factor * loss(hidden, target).loss).backward()


THROUGH = "Loss: found a backward through log_prob or best"
REJECTED = [
    (upstream(-1.0), ValueError, r"upstream gradient\[0\]: found one below 0, expected at least 0"),
    (upstream(float("nan")), FloatingPointError, r"upstream gradient\[0\]: found nan"),
    (upstream(float("inf")), FloatingPointError, r"upstream gradient\[0\]: found inf"),
    (lambda loss, h, t: loss.log_prob(h).sum().backward(), RuntimeError, THROUGH),
    (lambda loss, h, t: loss.best(h, 3)[1].sum().backward(), RuntimeError, THROUGH),
    (
        lambda loss, h, t: torch.autograd.grad(loss(h, t).loss, h, create_graph=True),
        RuntimeError,
        "Loss: found create_graph=True, expected a first derivative",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REJECTED)
def test_what_has_no_gradient_is_rejected_and_moves_nothing(call, error, message):
    loss = trained(MAKE["huffman"]())
    before, (hidden, target) = frozen(loss), batch(16)
    with pytest.raises(error, match=message):
        call(loss, hidden, target)
    assert frozen(loss) == before and not loss.log_prob(hidden.detach()).requires_grad


# Around it


class Net(torch.nn.Module):
    """A layer under a loss."""

    def __init__(self, kind, **more):
        super().__init__()
        torch.manual_seed(0)
        self.trunk, self.head = torch.nn.Linear(WIDTH, WIDTH), MAKE[kind](rate=0.3, **more)

    def forward(self, vectors, target):
        return self.head(self.trunk(vectors).tanh(), target)


def compiled(by_pytorch):
    """What three steps teach the loss, and the last gradients of the layer."""
    net = Net("huffman")
    call = torch.compile(net, backend="aot_eager") if by_pytorch else net
    for seed in range(3):
        call(*batch(16, seed=seed, grad=False)).loss.backward()
    return frozen(net.head), net.trunk.weight.grad


def test_a_compiled_net_around_it_learns_the_same():
    """In a process of its own: while PyTorch compiles it warns of itself, and hides that only where warnings are no errors."""
    script = """
from tests.hybrid.torch.test_backward import compiled
(tree, grad), (same, again) = compiled(False), compiled(True)
assert tree == same and grad.equal(again)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


PROCESS = """
import sys
import torch
import torch.distributed as processes
from tests.hybrid.torch.test_backward import distributed

rank, folder, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
processes.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
torch.save(distributed(kind, rank), f"{folder}/{rank}.pt")
processes.barrier()
processes.destroy_process_group()
"""
CUTS = ((0, 11), (11, 16))  # which of the 16 rows each process has


def distributed(kind, rank=None):
    """What a net under DDP learns in three steps, and what a loss alone learns; rank None: in one process."""
    net = Net(kind, reduction="sum", batch=7)
    model = net if rank is None else torch.nn.parallel.DistributedDataParallel(net)
    first, last = (0, 16) if rank is None else CUTS[rank]
    rate = 0.1 if rank is None else 0.2  # DDP takes the mean of two sums
    optimiser = torch.optim.SGD(net.trunk.parameters(), lr=rate)
    for seed in range(3):
        vectors, target = batch(16, seed=seed, grad=False)
        target[4] = -100
        optimiser.zero_grad()
        model(vectors[first:last], target[first:last]).loss.backward()
        optimiser.step()
    return frozen(net.head), net.trunk.weight.detach(), *alone(kind, first, last)


def alone(kind, first, last):
    """What a loss learns from some of the rows of each batch, and the gradient of those rows."""
    loss, grads = MAKE[kind](rate=0.3, batch=7), []
    for seed in range(3):
        hidden, target = batch(16, seed=seed)
        weight = torch.arange(16.0)
        loss(hidden[first:last], target[first:last], weight[first:last]).loss.backward()
        grads.append(hidden.grad[first:last] * weight[first:last].sum())
    return frozen(loss), torch.stack(grads)


def test_two_processes_learn_as_one_does(tmp_path):
    kind = "sampled"
    one = distributed(kind)  # first: what it compiles both processes only load
    commands = [[sys.executable, "-c", PROCESS, str(rank), str(tmp_path), kind] for rank in (0, 1)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    told = [process.communicate(timeout=300)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    ours = [torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1)]
    assert ours[0][0] == ours[1][0]
    assert ours[0][2] == ours[1][2] == one[2]
    torch.testing.assert_close(torch.cat([ours[0][3], ours[1][3]], dim=1), one[3], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours[0][1], one[1], rtol=1e-5, atol=1e-6)
    mine, wanted = (torch.frombuffer(bytearray(found[0]), dtype=torch.float32) for found in (ours[0], one))
    torch.testing.assert_close(mine[: 36 * 6], wanted[: 36 * 6], rtol=1e-4, atol=1e-6)
