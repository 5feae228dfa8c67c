"""Arrays as tensors without a copy, streams, threads and generators during a stage; a GPU's PyTorch is a fake here."""

import contextlib
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from cpu.device import Device
from hybrid.trunk.torch import Cuda, drawing, place


def test_on_the_host_a_tensor_is_the_array():
    array = np.zeros((2, 3), np.float32)
    place(Device(), None).tensor(array).add_(1)
    assert (array == 1).all()


@pytest.mark.parametrize("own, expected", [(None, 1), (2, 2)])
def test_a_stage_computes_with_the_threads_of_its_queue_or_with_its_own(own, expected):
    before, there = torch.get_num_threads(), place(Device(), own)
    queue = Device().inline("dense", 1)

    def work():
        with there.stage(0):
            return torch.get_num_threads()

    assert queue.run(work).wait() == expected and torch.get_num_threads() == before


def test_what_is_drawn_is_a_function_of_the_key_and_the_users_generator_goes_on():
    def drawn(*key):
        with drawing([torch.default_generator], key):
            return torch.rand(3).tolist()

    state = torch.get_rng_state()
    assert drawn(0, 1, 2) == drawn(0, 1, 2) != drawn(0, 1, 3)
    with pytest.raises(ZeroDivisionError), drawing([torch.default_generator], (5,)):
        1 / 0  # noqa: B018
    assert torch.equal(torch.get_rng_state(), state)


class Fakes:
    """What torch.cuda is asked, written down."""

    def __init__(self):
        self.log = []
        self.generator = torch.Generator()
        self.default_generators = [None, self.generator]

    def init(self):
        self.log.append("init")

    def ExternalStream(self, handle, device):  # its name
        self.log.append(f"stream {handle} of {device}")
        return types.SimpleNamespace(device=torch.device(device))

    @contextlib.contextmanager
    def stream(self, stream):
        self.log.append("in")
        yield
        self.log.append("out")


def test_on_a_gpu_pytorch_works_on_the_stream_of_the_queue_and_nothing_waits(monkeypatch):
    fakes = Fakes()
    monkeypatch.setattr(torch, "cuda", fakes)
    monkeypatch.setattr("gpu.device.current", lambda: types.SimpleNamespace(handle=77))
    there = Cuda(types.SimpleNamespace(name="cuda:1"))
    host, own = torch.get_rng_state(), fakes.generator.get_state()
    with there.stage(3, 1):
        fakes.log.append("work")
        first = torch.rand(1, generator=fakes.generator).item()
    assert fakes.log == ["init", "stream 77 of cuda:1", "in", "work", "out"]
    with there.stage(3, 1):
        assert torch.rand(1, generator=fakes.generator).item() == first
    assert torch.equal(torch.get_rng_state(), host) and torch.equal(fakes.generator.get_state(), own)
