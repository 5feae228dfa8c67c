"""Any module of PyTorch as the trunk: what it learns, and that a run goes on with the same bytes.

Here is tested hybrid/trunk/torch.py too.
"""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid.engine import Engine
from hybrid.engine.embedding import Inputs
from hybrid.readout import FullReadout
from hybrid.trunk.mlp import MLP
from hybrid.trunk.torch import TorchTrunk
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
    module, own = plain(), MLP((WIDTH, 10, 6), rate=0.1, momentum=0.5, clip=0.02)  # which cuts most steps
    own.weights[:] = np.concatenate([tensor.detach().numpy().reshape(-1) for tensor in module.parameters()])
    trunks = TorchTrunk(module, WIDTH, 6, optimiser=momentum, clip=0.02), own
    engines = [
        engine(trunk=trunk, schedule="constant", **way) for trunk in trunks
    ]  # their momentum takes a falling rate otherwise
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
        again, _ = Engine.load(
            tmp_path,
            trunk=TorchTrunk(net(7), WIDTH, 6, optimiser=adam),  # the clip is the checkpoint's
            threads=2,
            overlap=True,
        )
        assert again.trunk.clip == 5.0
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
    module = Summed()
    trunk = TorchTrunk(module, 5, 3, optimiser=lambda own: torch.optim.SGD(own, lr=0.1), sequence=4)
    trained = Engine(Inputs(5), trunk, FullReadout(9, 3, batch=12, rate=0.05), threads=1, micro_batches=2)
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


class Gives(torch.nn.Module):
    def __init__(self, what):
        super().__init__()
        self.what, self.own = what, torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.what(x)


LINEAR = torch.nn.Linear(4, 3)
BAD = [
    (lambda: TorchTrunk(object(), 4, 3, optimiser=adam), "module: found object, expected a torch.nn.Module"),
    (
        lambda: TorchTrunk(LINEAR, 4, 5, optimiser=adam),
        r"module: gives float32 \(1, 3\), expected a floating tensor \(1, 5\)",
    ),
    (lambda: TorchTrunk(LINEAR, 5, 3, optimiser=adam), r"module: fails on float32 \(1, 5\): .*"),
    (
        lambda: TorchTrunk(Gives(lambda x: (x, 1)), 4, 4, optimiser=adam),
        "module: gives tuple, expected a floating tensor",
    ),
    (
        lambda: TorchTrunk(Gives(lambda x: x.long()), 4, 4, optimiser=adam),
        r"module: gives int64 \(1, 4\), expected a floating",
    ),
    (
        lambda: TorchTrunk(LINEAR, 4, 3, optimiser="adam"),
        "optimiser: found str, expected a torch.optim.Optimizer, or a",
    ),
    (lambda: TorchTrunk(LINEAR, 4, 3, optimiser=lambda own: None), "optimiser: found NoneType, expected a torch.optim"),
    (
        lambda: TorchTrunk(LINEAR, 4, 3, optimiser=adam(net().parameters())),
        "optimiser: found a parameter that is not the",
    ),
    (
        lambda: TorchTrunk(LINEAR, 4, 3, optimiser=torch.optim.LBFGS),
        "optimiser: found LBFGS, whose step needs a closure, expected one that steps by the gradient",
    ),
    (
        lambda: TorchTrunk(torch.nn.ReLU(), 4, 4, optimiser=adam),
        "module: found ReLU without a parameter that learns, expected one at least",
    ),
    (lambda: TorchTrunk(LINEAR, 4, 3, optimiser=adam, clip=0), "clip: found 0, expected a number above 0"),
    (lambda: engine(delay=1), "delay: found 1, expected 0: autograd goes back through a module that has not moved"),
]


@pytest.mark.parametrize("call, message", BAD)
def test_what_does_not_fit_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "trunk, message",
    [
        (
            lambda: None,
            r"the checkpoint's is a Sequential of PyTorch, .* expected Engine.load\(folder, trunk=TorchTrunk",
        ),
        (
            lambda: TorchTrunk(torch.nn.Linear(WIDTH, 6), WIDTH, 6, optimiser=adam),
            "found module Linear, expected Sequential",
        ),
        (lambda: TorchTrunk(net(), WIDTH, 6, optimiser=momentum), "trunk: found optimiser SGD, expected Adam"),
        (
            lambda: TorchTrunk(plain(), WIDTH, 6, optimiser=adam),
            r"optimiser: found groups of \[4\] parameters, expected \[6\]",
        ),
        (lambda: MLP([WIDTH, 4, 6]), "trunk: found a mlp trunk, the checkpoint has a torch trunk"),
    ],
)
def test_a_checkpoint_is_filled_into_a_trunk_made_as_it_was(trunk, message, tmp_path):
    trained = engine()
    losses(trained, 2)
    trained.save(tmp_path)
    with pytest.raises(ValueError, match=message):
        Engine.load(tmp_path, trunk=trunk())


def test_all_of_the_gradient_is_whole_after_its_one_step():
    """Ranks add it up from the place that is told; see Stages."""
    trained, told = engine(), []
    falling = trained.trunk.falling

    def noted(slot):
        for place in falling(slot):
            told.append(place)
            yield place

    trained.trunk.falling = noted
    losses(trained, 2)
    assert told and not any(told)
