"""Losses of PyTorch whose readout is on a GPU: the numbers of the CPU's, in PyTorch's memory and after its stream.

Here are tested hybrid/torch/loss.py and hybrid/readout/base.py. PyTorch does not see the simulated driver, so its
tensors of a GPU are stood in for by arrays of ours, which look like them to `Beside`, and its stream by a queue of ours.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from gpu.runtime.array import Array
from hybrid import backend

torch = pytest.importorskip("torch")

from hybrid import Adagrad, HeadParts
from hybrid.torch import FullLoss, HeadLoss, TreeLoss
from hybrid.torch.loss import Beside, Host, place

CLASSES, WIDTH, BATCH = 37, 6, 16
COUNTS = np.arange(CLASSES)[::-1] + 1
MAKE = {
    "huffman": lambda **more: TreeLoss(WIDTH, COUNTS, batch=BATCH, optimiser=Adagrad(0.3), **more),
    "full": lambda **more: FullLoss(WIDTH, COUNTS, batch=BATCH, optimiser=Adagrad(0.3), **more),
    "head": lambda **more: HeadLoss(WIDTH, COUNTS, batch=BATCH, optimiser=Adagrad(0.3), parts=HeadParts(9, 5), **more),
}
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(params=MAKE)
def make(request):
    return MAKE[request.param]


def batch(rows, seed=0):
    drawn = torch.Generator().manual_seed(seed)
    hidden = torch.randn(rows, WIDTH, generator=drawn).requires_grad_()
    return hidden, torch.randint(0, CLASSES, (rows,), generator=drawn)


def first(loss):
    return next(iter(loss.state_dict().values()))


def test_tensors_of_the_host_under_a_readout_on_a_gpu(gpu, make):
    ours, plain = make(device="cuda:0"), make()
    for seed in range(5):
        (hidden, target), again = batch(2 * BATCH + 3, seed), batch(2 * BATCH + 3, seed)[0]
        target[5] = -100
        weight = torch.rand(2 * BATCH + 3) if seed % 2 else None
        found, wanted = ours(hidden, target, weight), plain(again, target, weight)
        found.loss.backward()
        wanted.loss.backward()
        torch.testing.assert_close(found.output, wanted.output, **CLOSE)
        torch.testing.assert_close(hidden.grad, again.grad, **CLOSE)
    torch.testing.assert_close(first(ours), first(plain), **CLOSE)
    torch.testing.assert_close(ours.log_prob(hidden), plain.log_prob(hidden), **CLOSE)
    other = make(device="cuda:0")
    other.load_state_dict(plain.state_dict())
    torch.testing.assert_close(other(hidden, target).output, plain(hidden, target).output, **CLOSE)
    before = first(ours).clone()
    ours.eval()(hidden, target).loss.backward()
    assert first(ours).equal(before)


class Tensor:
    """An array of ours that looks like a tensor of PyTorch on "cuda:0"."""

    def __init__(self, gpu, values):
        self.gpu, self.shape = gpu, values.shape
        self.array = values if isinstance(values, Array) else gpu.put(values)
        self.device = torch.device("cuda", 0)
        self.__cuda_array_interface__ = self.array.__cuda_array_interface__

    def __len__(self):
        return self.shape[0]

    def __neg__(self):
        return -self.numpy()

    def detach(self):
        return self

    contiguous = cpu = detach

    def new_empty(self, shape):
        return Tensor(self.gpu, self.gpu.empty(shape, np.float32))

    def numpy(self):
        return self.gpu.get(self.array)


@pytest.fixture
def stream(gpu, monkeypatch):
    """A queue on which "PyTorch" works."""
    queue = gpu.device.queue("theirs", 1)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=queue.handle))
    return queue


def arrays(rows, seed=0):
    hidden, target = batch(rows, seed)
    return hidden.detach().numpy(), target.int().numpy()


@pytest.mark.parametrize("kind", ["huffman", "full"])
def test_tensors_of_the_readout_s_gpu_are_used_where_they_are(gpu, stream, kind):
    ours, plain = MAKE[kind](device="cuda:0").readout, MAKE[kind]().readout
    for seed in range(5):
        hidden, target = arrays(2 * BATCH + 3, seed)
        vectors, classes = Tensor(gpu, hidden), Tensor(gpu, target)
        beside, host = place(ours, vectors), Host(plain)
        assert isinstance(beside, Beside)
        given = torch.from_numpy(hidden), torch.from_numpy(target)
        np.testing.assert_allclose(beside.losses(vectors, classes), host.losses(*given), **CLOSE)
        np.testing.assert_allclose(beside.still(vectors, classes, None).numpy(), host.still(*given, None), **CLOSE)
        weight = np.linspace(0, 2, len(target), dtype=np.float32) if seed % 2 else None
        theirs, own = (None, None) if weight is None else (Tensor(gpu, weight), torch.from_numpy(weight))
        np.testing.assert_allclose(beside.step(vectors, classes, theirs).numpy(), host.step(*given, own), **CLOSE)
    np.testing.assert_allclose(*(next(iter(each.parameters().values())) for each in (ours, plain)), **CLOSE)


def test_what_their_stream_still_computes_is_waited_for(gpu, stream):
    readout = MAKE["huffman"](device="cuda:0").readout
    hidden, target = arrays(BATCH)
    wanted = MAKE["huffman"]().readout.log_prob(hidden, target)
    for _ in gpu.orders(4):
        locked = gpu.device.host_empty(hidden.shape, np.float32)
        np.copyto(locked, hidden)
        vectors = Tensor(gpu, gpu.empty(hidden.shape, np.float32))
        stream.run(gpu.device.copy, vectors.array, locked)  # not waited for
        np.testing.assert_allclose(Beside(readout).log_prob(vectors, Tensor(gpu, target)).numpy(), wanted, **CLOSE)


def test_who_is_beside_whom(gpu):
    there, here = torch.device("cuda", 0), torch.device("cpu")
    cuda = backend.choose("cuda:0")
    tree = MAKE["huffman"](device="cuda:0").readout
    assert tree.backend is cuda and MAKE["huffman"](device=there).readout.backend is cuda
    for readout, device, kind in [
        (tree, there, Beside),
        (tree, here, Host),
        (tree, torch.device("cuda", 1), Host),
        (MAKE["huffman"]().readout, there, Host),
        (MAKE["head"](device="cuda:0").readout, there, Host),
    ]:
        assert type(place(readout, SimpleNamespace(device=device))) is kind
