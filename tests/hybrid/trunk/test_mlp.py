"""MLPs of any depth as a trunk: gradients of autograd, exact stops, dropout, options, optimisers, errors."""

import copy
import itertools
import pickle
import types

import numpy as np
import pytest

from hybrid import MLP, SGD, Adam, AdamW, Embedding, Engine, FullReadout, backend, settings, trunk
from hybrid.optimisers import TRUNK, named
from hybrid.train.options import choose
from hybrid.trunk.mlp import Optimiser, Options
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, Feed, assert_same_bits, parameters, through

SIZES = (12, 10, 10, 6)
OPTIMISERS = {
    "sgd": {"optimiser": SGD(0.1)},
    "momentum": {"optimiser": SGD(0.1, momentum=0.5, decay=1e-4)},
    "adam": {"optimiser": Adam(0.01, betas=(0.9, 0.99))},
    "all": {"dropout": 0.25, "optimiser": AdamW(0.01, clip=0.5)},
}


def engine(dense, **options):
    embedding = Embedding(CLASSES, 4, per_example=CONTEXT, spread=0.3, optimiser=SGD(0.05))
    readout = FullReadout(CLASSES, 6, batch=BATCH, optimiser=SGD(0.05))
    return Engine(embedding, dense, readout, **through({"device": "cpu"} | options))


class Slot(types.SimpleNamespace):
    """The arrays of a slot that a trunk asks for, and no schedule."""

    learns, tick, micro, scale = True, 3, 1, 1.0

    def __init__(self, made, x, grad):
        widths = made.buffers().widths | {"x_grad": made.inputs}
        super().__init__(**{f"{name}_dev": np.empty((len(x), width), np.float32) for name, width in widths.items()})
        self.x_dev, self.grad_dev, self.examples = x, grad.copy(), len(x)


def placed(*arguments, **options):
    made, place = MLP(*arguments, **options), backend.choose("cpu")
    made.place(place.device, place)
    return made


@pytest.mark.parametrize(
    ("sizes", "form"),
    [
        (SIZES, {"activation": ("relu", "linear")}),
        ((5, 7), {"activation": "logistic", "bias": False}),
        ((12, 9, 9, 9, 3), {"bias": False}),
    ],
)
def test_gradients_are_those_of_autograd(sizes, form):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    made = placed(sizes, **form)
    made.weights += rng.normal(0, 0.1, made.weights.size).astype(np.float32)
    x, grad = (rng.normal(size=(70, width)).astype(np.float32) for width in (sizes[0], sizes[-1]))
    slot = Slot(made, x, grad)
    made.forward(slot)
    made.backward(slot)

    functions = {"logistic": torch.sigmoid, "linear": lambda s: s}
    weights = torch.tensor(made.weights.astype(float)).requires_grad_()
    first = value = torch.tensor(x.astype(float)).requires_grad_()
    at = 0
    for layer in made.layers:
        o = layer.outputs
        s = value @ weights[at : at + layer.inputs * o].reshape(o, -1).T
        at += layer.inputs * o
        if layer.bias:
            s, at = s + weights[at : at + o], at + o
        value = functions.get(layer.activation, getattr(torch, layer.activation, None))(s)
    value.backward(torch.tensor(grad.astype(float)))
    np.testing.assert_allclose(slot.hidden_dev, value.detach().numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(slot.x_grad_dev, first.grad.numpy(), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(made.gradient.part(), weights.grad.numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", OPTIMISERS)
def test_a_run_that_stops_goes_on_with_the_same_bits(tmp_path, kind):
    whole, stopped = (engine(MLP(SIZES, **OPTIMISERS[kind]), micro_batches=2) for _ in range(2))
    losses = [tick.loss for tick in whole.run(Feed(14))]
    list(itertools.islice(stopped.run(Feed(14)), 5))
    stopped.save(tmp_path / "checkpoint")
    loaded, _ = Engine.load(tmp_path / "checkpoint", device="cpu", threads=1)
    for resumed in (loaded, copy.deepcopy(stopped), pickle.loads(pickle.dumps(stopped)), stopped):
        assert resumed.trunk.describe() == whole.trunk.describe()
        assert [tick.loss for tick in resumed.run(Feed(14))] == losses[5:]
        assert_same_bits(parameters(resumed), parameters(whole))


def test_dropout_drops_while_it_learns_and_answers_no_question():
    dropping, plain = (engine(MLP(SIZES, dropout=dropout)) for dropout in (0.5, 0.0))
    batch = Feed(1)[0]
    np.testing.assert_array_equal(dropping.hidden(batch.ids), plain.hidden(batch.ids))
    assert dropping.evaluate(Feed(3)) == plain.evaluate(Feed(3))
    losses = [[tick.loss for tick in trained.run(Feed(3))] for trained in (dropping, plain)]
    assert losses[0] != losses[1]


def test_masks_differ_by_seed_tick_micro_batch_and_layer():
    slot = types.SimpleNamespace(learns=True, tick=3, micro=0)
    places = [(0, 3, 0), (1, 3, 0), (0, 4, 0), (0, 3, 1)]
    keys = []
    for seed, tick, micro in places:
        slot.tick, slot.micro = tick, micro
        keys += MLP(SIZES, dropout=0.5, seed=seed)._keys(slot)
    assert len(set(keys)) == 3 * len(places) and all(0 <= key < 2**63 for key in keys)


@pytest.mark.parametrize("kind", OPTIMISERS)
def test_a_checkpoint_holds_at_least_what_it_declares(kind):
    made = MLP(SIZES, **OPTIMISERS[kind])
    facts = made.describe()
    assert trunk.least(facts) == 12 * 10 + 10 * 10 + 10 * 6 <= sum(array.size for array in made.parameters().values())
    assert trunk.rebuild(facts).describe() == facts
    with pytest.raises(ValueError, match="optimiser: found 'adagrad', expected one of sgd, adam, adamw"):
        trunk.rebuild(facts | {"optimiser": "adagrad"})


def test_weights_begin_with_the_variance_that_keeps_signals():
    for activation, variance in (("tanh", 2 / 500), ("relu", 2 / 200)):
        matrix = MLP((200, 300), activation).weights[: 200 * 300]
        assert matrix.var() == pytest.approx(variance, rel=0.03)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([5],), {}, r"sizes: found \[5\], expected the inputs, the width of every hidden layer, the outputs"),
        ((7,), {}, "sizes: found 7"),
        (([5, 0, 3],), {}, r"sizes\[1\]: found 0, expected a whole number"),
        ((SIZES, "cube"), {}, "activation: found 'cube', expected one of logistic"),
        ((SIZES, ("tanh", "cube")), {}, "last: found 'cube'"),
        ((SIZES, ("tanh",)), {}, r"activation: found \('tanh',\), expected one, or \(of hidden layers, of the last"),
        ((SIZES,), {"dropout": 1.0}, "dropout: found 1.0, expected a number below 1"),
        (((5, 6),), {"dropout": 0.5}, "dropout: found 0.5, but sizes .* have no hidden layer"),
    ],
)
def test_what_it_cannot_be(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        MLP(*arguments, **options)


def made_of(**options):
    return trunk.make("mlp", 8, 6, settings.defaults(Options) | options, seed=3)


def test_options_of_the_command_line_make_it():
    assert made_of(trunk_optimiser="adamw", momentum=None, trunk_decay=0.0).optimiser.decay == 0
    facts = made_of(hidden=[5, 4], dropout=0.1, trunk_decay=0.01).describe()
    expected = {"sizes": [8, 5, 4, 6], "decay": 0.01, "momentum": 0.9, "dropout": 0.1}
    assert {name: facts[name] for name in expected} == expected


def test_a_tuned_rate_belongs_to_its_optimiser(monkeypatch):
    from hybrid.models import language

    def chosen(**options):
        options = choose("language", text="x", readout="full", **options)
        return [options[name] for name in ("trunk_optimiser", "trunk_rate", "momentum")]

    monkeypatch.setitem(language.TUNED, "full", {"trunk_optimiser": "adam", "trunk_rate": 0.007})
    assert chosen() == ["adam", 0.007, None] == chosen(trunk_optimiser="adam")
    assert chosen(trunk_optimiser="sgd") == ["sgd", 0.2, 0.9]
    assert chosen(trunk_optimiser="adamw") == ["adamw", 0.001, None]


# The optimiser of its weights


THEIRS = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}
MOVES = [("sgd", {}), ("sgd", {"momentum": 0.5}), ("adam", {"betas": (0.5, 0.9)}), ("adamw", {"betas": (0.5, 0.9)})]


@pytest.mark.parametrize(("move", "clip"), [*zip(MOVES, itertools.cycle([None, 0.5]))])
def test_weights_move_against_the_mean_gradient_as_in_pytorch(move, clip):
    torch = pytest.importorskip("torch")
    name, options = move
    own = Optimiser(named(name, TRUNK, rate=0.2, decay=0.1, clip=clip, **options), 40)
    rng, place, examples, scale = np.random.default_rng(0), backend.choose("cpu"), 7, 0.5
    weights = rng.normal(size=40).astype(np.float32)
    theirs = torch.tensor(weights.astype(float)).requires_grad_()
    judge = getattr(torch.optim, THEIRS[name])([theirs], lr=0.2 * scale, weight_decay=0.1, **options)
    own.place(place.device, place)
    for _ in range(3):
        grad = rng.normal(size=40).astype(np.float32)
        theirs.grad = torch.tensor(grad / examples).double()
        if clip:
            torch.nn.utils.clip_grad_norm_([theirs], clip)
        judge.step()
        own.move(weights, grad, examples, scale)
        assert not grad.any()
        np.testing.assert_allclose(weights, theirs.detach().numpy(), rtol=1e-5, atol=1e-6)
