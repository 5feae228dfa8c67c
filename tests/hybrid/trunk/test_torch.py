"""Any module of PyTorch as the trunk: what it learns, that resumed runs have the same bytes, its tensors and its device."""

import contextlib
import copy
import pickle
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from cpu.device import Device
from hybrid import SGD, Pipeline
from hybrid.engine import Engine
from hybrid.engine.embedding import Inputs
from hybrid.readout import FullReadout
from hybrid.storage import checkpoint
from hybrid.trunk.mlp import MLP
from hybrid.trunk.torch import Cuda, Host, State, TorchGradient, TorchTrunk
from tests.support import points
from tests.support.small_engine import Feed, assert_same_bits, parameters
from tests.support.torch_engine import WIDTH, adam, engine, net


def losses(engine, ticks=12):
    return [tick.loss for tick in engine.run(Feed(ticks))]


def plain():
    """Of the module below, with its weights."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(WIDTH, 10), torch.nn.Tanh(), torch.nn.Linear(10, 6), torch.nn.Tanh())


def momentum(own):
    return torch.optim.SGD(own, lr=0.1, momentum=0.5)


@pytest.mark.parametrize("way", [{}, {"micro_batches": 3, "overlap": True}])
def test_it_learns_what_our_own_trunk_of_the_same_net_learns(way):
    module, own = plain(), MLP((WIDTH, 10, 6), optimiser=SGD(0.1, momentum=0.5, clip=0.02))  # which cuts most steps
    own.weights[:] = np.concatenate([tensor.detach().numpy().reshape(-1) for tensor in module.parameters()])
    trunks = TorchTrunk(module, WIDTH, 6, optimiser=momentum, clip=0.02), own
    # Their momentum takes a falling rate otherwise.
    engines = [engine(trunk=trunk, schedule="constant", **way) for trunk in trunks]
    np.testing.assert_allclose(losses(engines[0]), losses(engines[1]), rtol=1e-5)
    for name in ("embedding.table", "readout.nodes"):
        np.testing.assert_allclose(*(each.parameters()[name] for each in engines), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("way", "options"), [("checkpoint", {"overlap": True, "micro_batches": 2}), ("pickle", {}), ("copy", {})]
)
def test_a_run_goes_on_with_the_same_bytes_dropout_and_running_means_too(way, options, tmp_path):
    whole, stopped = engine(**options), engine(**options)
    expected = losses(whole)
    run = stopped.run(Feed(12))
    before = [next(run).loss for _ in range(5)]
    if way == "checkpoint":
        stopped.save(tmp_path)
        fresh = TorchTrunk(net(7), WIDTH, 6, optimiser=adam)
        again, _ = Engine.load(tmp_path, trunk=fresh, threads=2, overlap=True)
        assert again.trunk.clip == 5.0  # the checkpoint's
    else:
        again = pickle.loads(pickle.dumps(stopped)) if way == "pickle" else copy.deepcopy(stopped)
    run.close()
    assert before + losses(again) == expected
    assert_same_bits(parameters(again), parameters(whole))


def test_with_threads_of_its_own_the_bytes_are_those_of_any_way_of_spending_the_cores():
    found = []
    for way in ({"overlap": True}, {"overlap": False}, {"threads": 1}, {}):
        made = engine(trunk=TorchTrunk(net(), WIDTH, 6, optimiser=adam, threads=1), **way)
        found.append((losses(made), parameters(made)))
    for others in found[1:]:
        assert others[0] == found[0][0]
        assert_same_bits(others[1], found[0][1])


def test_nothing_of_the_users_pytorch_changes():
    module = net()
    module[1].eval()
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    trained = engine(module, overlap=False)
    losses(trained)
    trained.evaluate(Feed(2))
    assert torch.get_num_threads() == threads and torch.equal(torch.get_rng_state(), state)
    assert [part.training for part in module] == [True, False, True, True, True]
    assert trained.parameters()["trunk.buffer.1.num_batches_tracked"] == 0  # it was frozen


def test_questions_drop_nothing():
    trained = engine()
    losses(trained)
    ids = Feed()[0].ids
    first = trained.hidden(ids)
    np.testing.assert_array_equal(trained.hidden(ids), first)
    module = trained.trunk.module.eval()
    x = torch.from_numpy(trained.embedding.table[ids].reshape(-1, WIDTH))
    np.testing.assert_allclose(first, module(x).detach(), rtol=1e-5, atol=1e-6)


def test_the_schedule_scales_the_rates_of_the_optimiser_and_gives_them_back():
    seen = []

    class Watched(torch.optim.SGD):
        def step(self):
            seen.append(self.param_groups[0]["lr"])
            super().step()

    trained = engine(plain(), optimiser=lambda own: Watched(own, lr=0.5))
    losses(trained, 4)
    np.testing.assert_allclose(seen, [0.5, 0.375, 0.25, 0.125])
    assert trained.trunk.optimiser.param_groups[0]["lr"] == 0.5


class Sequences(points.Points):
    """12 numbers a batch: sequences of 4 of them."""

    def __getitem__(self, tick):
        batch = super().__getitem__(3 * tick % 8)
        size = 4 * (len(batch.target) // 4)
        return batch._replace(x=batch.x[:size], target=batch.target[:size])


class Summed(torch.nn.Module):
    """What came so far in a sequence, and one matrix."""

    def __init__(self):
        super().__init__()
        self.matrix, self.shapes = torch.nn.Linear(5, 3, bias=False), []

    def forward(self, x):
        self.shapes.append(tuple(x.shape))
        return self.matrix(x.cumsum(dim=1))


def test_sequences_are_shown_whole(tmp_path):
    torch.manual_seed(0)
    module = Summed()
    trunk = TorchTrunk(module, 5, 3, optimiser=lambda own: torch.optim.SGD(own, lr=0.1), sequence=4)
    readout = FullReadout(9, 3, batch=12, optimiser=SGD(0.05))
    trained = Engine(Inputs(5), trunk, readout, threads=1, pipeline=Pipeline(micro_batches=2))
    found = [tick.loss for tick in trained.run(Sequences(True))]
    assert found[-1] < found[0] and set(module.shapes) == {(1, 4, 5), (2, 4, 5)}
    x = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)
    expected = x.reshape(2, 4, 5).cumsum(axis=1).reshape(8, 5) @ module.matrix.weight.detach().numpy().T
    np.testing.assert_allclose(trained.hidden(x=x), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="found 6 examples, expected a multiple of 4, the sequence of the trunk"):
        trained.hidden(x=x[:6])


def test_a_first_layer_in_place_learns_what_the_same_layer_beside_its_input_learns():
    def found(inplace):
        trained = engine(torch.nn.Sequential(torch.nn.ReLU(inplace), *plain()))
        return losses(trained), parameters(trained)

    ours, expected = found(True), found(False)
    assert ours[0] == expected[0]
    assert_same_bits(ours[1], expected[1])


class Gives(torch.nn.Linear):
    def __init__(self, what):
        super().__init__(1, 1)
        self.forward = what


def made(module, inputs=4, outputs=3, optimiser=adam, **options):
    return TorchTrunk(module, inputs, outputs, optimiser=optimiser, **options)


LINEAR = torch.nn.Linear(4, 3)
BAD = [
    (lambda: made(object()), "module: found object, expected a torch.nn.Module"),
    (lambda: made(LINEAR, outputs=5), r"module: gives float32 \(1, 3\), expected a floating tensor \(1, 5\)"),
    (lambda: made(LINEAR, inputs=5), r"module: fails on float32 \(1, 5\): .*"),
    (lambda: made(Gives(lambda x: (x, 1))), "module: gives tuple, expected a floating tensor"),
    (lambda: made(Gives(lambda x: x.long())), r"module: gives int64 \(1, 4\), expected a floating"),
    (lambda: made(LINEAR, optimiser="adam"), "optimiser: found str, expected a torch.optim.Optimizer, or a"),
    (lambda: made(LINEAR, optimiser=lambda own: None), "optimiser: found NoneType, expected a torch.optim"),
    (lambda: made(LINEAR, optimiser=adam(net().parameters())), "optimiser: found a parameter that is not the"),
    (lambda: made(LINEAR, optimiser=torch.optim.LBFGS), "optimiser: found LBFGS, whose step needs a closure, expected"),
    (lambda: made(torch.nn.ReLU(), outputs=4), "module: found ReLU without a parameter that learns, expected one"),
    (lambda: made(LINEAR, clip=0), "clip: found 0, expected a number above 0"),
]


@pytest.mark.parametrize("call, message", BAD)
def test_what_does_not_fit_is_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()


OTHERS = [
    (lambda: None, r"the checkpoint's is a Sequential of PyTorch, .* expected Engine.load\(folder, trunk=TorchTrunk"),
    (lambda: made(torch.nn.Linear(WIDTH, 6), WIDTH, 6), "found module Linear, expected Sequential"),
    (lambda: made(net(), WIDTH, 6, momentum), "trunk: found optimiser SGD, expected Adam"),
    (lambda: made(plain(), WIDTH, 6), r"optimiser: found groups of \[4\] parameters, expected \[6\]"),
    (lambda: MLP([WIDTH, 4, 6]), "trunk: found a mlp trunk, the checkpoint has a torch trunk"),
]


@pytest.mark.parametrize("trunk, message", OTHERS)
def test_a_checkpoint_is_filled_into_a_trunk_made_as_it_was(trunk, message, tmp_path):
    trained = engine()
    losses(trained, 2)
    trained.save(tmp_path)
    with pytest.raises(ValueError, match=message):
        Engine.load(tmp_path, trunk=trunk())


# Its gradient


def gradient(*parameters):
    return TorchGradient(Device(), Host(1), parameters)


def test_gradients_of_micro_batches_are_added_and_given_back():
    first, second, third = (torch.nn.Parameter(torch.zeros(shape)) for shape in ((2, 3), (4,), (1,)))
    found = gradient(first, second, third)
    for micro in range(3):
        first.grad = torch.full((2, 3), 10.0**micro)
        second.grad = torch.arange(4.0) if micro == 1 else None
        found.take()
        found.add(micro)
        assert first.grad is None
    found.give(None)
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
    found.give(None)
    assert own.grad.dtype == dtype and torch.equal(own.grad, expected)


# Its tensors as arrays


class Odd(torch.nn.Module):
    """Parameters and buffers that NumPy cannot show, one under two names, and a buffer that is not kept."""

    def __init__(self, seed=0):
        super().__init__()
        drawn = torch.Generator().manual_seed(seed)
        self.across = torch.nn.Parameter(torch.randn(3, 4, generator=drawn).T)
        self.short = torch.nn.Parameter(torch.randn(5, generator=drawn).bfloat16())
        self.two_bytes = torch.nn.Parameter(torch.randn(2, 2, generator=drawn).half())
        self.plain = self.tied = torch.nn.Parameter(torch.randn(2, generator=drawn))
        self.register_buffer("seen", torch.tensor(seed))
        self.register_buffer("flag", torch.tensor([seed == 0]))
        self.register_buffer("mask", torch.ones(2), persistent=False)


def stepped(seed=0, rate=0.1):
    module = Odd(seed)
    groups = {"params": [module.across, module.plain]}, {"params": [module.short], "lr": rate / 2}
    optimiser = torch.optim.AdamW(groups, rate)
    for _ in range(2):
        for parameter in (module.across, module.plain, module.short):
            parameter.grad = torch.ones_like(parameter)
        optimiser.step()
    return module, optimiser


def test_what_is_kept_comes_back_bit_for_bit(tmp_path):
    module, optimiser = stepped()
    state = State(module, optimiser)
    state.fetch()
    checkpoint.save(tmp_path, state.arrays(), {"state": state.facts()})
    other, fresh = Odd(1), torch.optim.AdamW
    own = fresh([{"params": [other.across, other.plain]}, {"params": [other.short], "lr": 5.0}], 7.0, betas=(0.1, 0.2))
    again = State(other, own)
    again.expect(checkpoint.read_facts(tmp_path)["state"])
    checkpoint.load_into(tmp_path, again.arrays())
    again.send()
    for name, tensor in module.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor) and other.state_dict()[name].dtype == tensor.dtype
    kept, found = optimiser.state_dict(), own.state_dict()
    assert found["param_groups"] == kept["param_groups"]
    for number, entries in kept["state"].items():
        for key, value in entries.items():
            assert torch.equal(found["state"][number][key], value)


def test_settings_are_facts_and_rates_that_are_tensors_stay_tensors():
    module = torch.nn.Linear(2, 2)
    optimiser = torch.optim.Adam(module.parameters(), lr=torch.tensor(0.25))
    state = State(module, optimiser)
    facts = state.facts()
    assert facts["groups"][0]["lr"] == 0.25 and facts["groups"][0]["betas"] == [0.9, 0.999] and facts["state"] == {}
    optimiser.param_groups[0]["lr"] = torch.tensor(1.0)
    state.expect(facts)
    group = optimiser.param_groups[0]
    assert torch.equal(group["lr"], torch.tensor(0.25)) and group["betas"] == (0.9, 0.999)


def test_what_no_checkpoint_can_keep_is_rejected():
    class Extra(torch.nn.Linear):
        def get_extra_state(self):
            return {"a": 1}

        def set_extra_state(self, state):
            pass

    module = Extra(2, 2)
    with pytest.raises(ValueError, match="module: keeps dict _extra_state, expected tensors"):
        State(module, torch.optim.SGD(module.parameters()))
    module = torch.nn.Linear(2, 1)
    optimiser = torch.optim.LBFGS(module.parameters())
    module(torch.ones(1, 2)).sum().backward()
    optimiser.step(lambda: torch.tensor(1.0))
    with pytest.raises(ValueError, match="optimiser: keeps list, expected tensors and numbers"):
        State(module, optimiser).facts()


# Where it computes; a GPU's PyTorch is a fake


@pytest.mark.parametrize("own, expected", [(None, 1), (2, 2)])
def test_a_stage_computes_with_the_threads_of_its_queue_or_with_its_own(own, expected):
    before, there = torch.get_num_threads(), Host(own)
    queue = Device().inline("dense", 1)

    def work():
        with there.stage(0):
            return torch.get_num_threads()

    assert queue.run(work).wait() == expected and torch.get_num_threads() == before


def test_on_a_gpu_pytorch_works_on_the_stream_of_the_queue_and_nothing_waits(monkeypatch):
    log, generator = [], torch.Generator()

    def external(handle, device):
        log.append(f"stream {handle} of {device}")
        return types.SimpleNamespace(device=torch.device(device))

    @contextlib.contextmanager
    def within(stream):
        log.append("in")
        yield
        log.append("out")

    fake = {"init": lambda: log.append("init"), "ExternalStream": external, "stream": within}
    monkeypatch.setattr(torch, "cuda", types.SimpleNamespace(default_generators=[None, generator], **fake))
    monkeypatch.setattr("gpu.device.current", lambda: types.SimpleNamespace(handle=77))
    there = Cuda(types.SimpleNamespace(name="cuda:1"))
    host, own = torch.get_rng_state(), generator.get_state()
    with there.stage(3, 1):
        log.append("work")
        first = torch.rand(1, generator=generator).item()
    assert log == ["init", "stream 77 of cuda:1", "in", "work", "out"]
    with there.stage(3, 1):
        assert torch.rand(1, generator=generator).item() == first
    assert torch.equal(torch.get_rng_state(), host) and torch.equal(generator.get_state(), own)
