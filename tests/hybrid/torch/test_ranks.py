"""Two processes under DistributedDataParallel learn what one process learns from both their batches."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid.torch import loss as ranks
from tests.support.losses import MAKE, batch, frozen

SCRIPT = """
import sys
import torch
import torch.distributed as processes
from tests.hybrid.torch.test_ranks import learn

rank, folder, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
processes.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
torch.save(learn(kind, rank), f"{folder}/{rank}.pt")
processes.barrier()
processes.destroy_process_group()
"""
CUTS = ((0, 11), (11, 16))  # which of the 16 rows each process has


class Net(torch.nn.Module):
    """A layer under a loss."""

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.trunk = torch.nn.Linear(6, 6)
        self.head = MAKE[kind](rate=0.3, reduction="sum", batch=7)

    def forward(self, vectors, target):
        return self.head(self.trunk(vectors).tanh(), target)


def learn(kind, rank=None):
    """What a net under DDP learns in three steps, and what a loss alone learns; rank None: in one process."""
    net = Net(kind)
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
    one = learn(kind)  # first: what it compiles both processes only load
    command = [sys.executable, "-c", SCRIPT]
    running = [
        subprocess.Popen([*command, str(rank), str(tmp_path), kind], stderr=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    told = [process.communicate(timeout=300)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    ours = [torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1)]
    assert ours[0][0] == ours[1][0]
    assert ours[0][2] == ours[1][2] == one[2]
    torch.testing.assert_close(torch.cat([ours[0][3], ours[1][3]], dim=1), one[3], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours[0][1], one[1], rtol=1e-5, atol=1e-6)
    mine, wanted = (torch.frombuffer(bytearray(found[0]), dtype=torch.float32) for found in (ours[0], one))
    torch.testing.assert_close(mine[: 36 * 6], wanted[: 36 * 6], rtol=1e-4, atol=1e-6)


def test_without_processes_one_is_alone():
    assert ranks.alone(None)
