"""Causal self-attention against NumPy in float64; kept whole in checkpoints. (hybrid/trunk/_attention.py too)"""

import itertools
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid import SGD, AdamW, AttentionBlocks
from hybrid.engine import Embedding, Engine
from hybrid.feeds.sequences import SequenceFeed
from hybrid.feeds.text import Corpus
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.readout import FullReadout
from hybrid.trunk._attention import Attention
from hybrid.trunk.attention import AttentionTrunk, make
from tests.support.small_engine import assert_same_bits, parameters

WIDTH, LENGTH = 6, 4


def norm(x, layer):
    spread = np.sqrt(x.var(axis=-1, keepdims=True) + layer.eps)
    return (x - x.mean(axis=-1, keepdims=True)) / spread * double(layer.weight) + double(layer.bias)


def double(tensor):
    return tensor.detach().double().numpy()


def linear(x, layer):
    return x @ double(layer.weight).T + double(layer.bias)


def test_places_begin_as_small_normal_numbers():
    torch.manual_seed(0)
    place = double(Attention(64, 64, length=32, every=True, blocks=1, heads=2, dropout=0.0).place)
    assert place.shape == (32, 64) and 0.018 < place.std() < 0.022 and abs(place).max() < 0.1


def by_numpy(module, x):
    """(T, width) -> (T, width), place by place."""
    x = x + double(module.place)
    for block in module.blocks:
        query, key, value = np.split(linear(norm(x, block.before_attention), block.asked), 3, axis=1)
        mixed = np.empty_like(x)
        for head in np.split(np.arange(WIDTH), block.heads):
            for at in range(len(x)):
                raised = np.exp(query[at, head] @ key[: at + 1, head].T / np.sqrt(len(head)))
                mixed[at, head] = raised / raised.sum() @ value[: at + 1, head]
        x = x + linear(mixed, block.mixed)
        x = x + linear(np.maximum(linear(norm(x, block.before_net), block.inner), 0), block.outer)
    return norm(x, module.norm)


def test_every_place_is_that_of_the_formula():
    blocks = AttentionBlocks(heads=2)
    module = AttentionTrunk(WIDTH, length=LENGTH, seed=3, blocks=blocks).module.eval()
    x = np.random.default_rng(0).normal(size=(2, LENGTH, WIDTH)).astype(np.float32)
    found = module(torch.from_numpy(x)).detach().numpy()
    for row, given in zip(found, x.astype(float), strict=True):
        np.testing.assert_allclose(row, by_numpy(module, given), atol=1e-5)
    last = AttentionTrunk(WIDTH, length=LENGTH, every=False, seed=3, blocks=blocks).module.eval()
    np.testing.assert_allclose(last(torch.from_numpy(x.reshape(2, -1))).detach().numpy(), found[:, -1], atol=1e-6)


def feed():
    text = "one two three four five six seven".split() * 12
    corpus = Corpus([text], Vocabulary.build([text]))
    return SequenceFeed(corpus, length=LENGTH, windows=4, start=False, epochs=2, unlabelled=True)


def engine(data):
    optimiser = AdamW(0.01, clip=1.0)
    trunk = AttentionTrunk(WIDTH, 5, length=LENGTH, blocks=1, threads=1, seed=1, optimiser=optimiser)
    rows = Embedding(data.rows, WIDTH, spread=0.3, optimiser=SGD(0.1))
    readout = FullReadout(data.counts, 5, batch=data.batch, optimiser=SGD(0.05))
    return Engine(rows, trunk, readout, device="cpu", threads=1)


def test_it_learns_and_a_checkpoint_keeps_all_of_it(tmp_path):
    data = feed()
    whole, stopped = engine(data), engine(data)
    losses = [tick.loss for tick in whole.run(data)]
    assert losses[-1] < losses[0]
    list(itertools.islice(stopped.run(data), 3))
    stopped.save(tmp_path)
    for again in (Engine.load(tmp_path, threads=1)[0], pickle.loads(pickle.dumps(stopped))):
        assert again.trunk.describe() == stopped.trunk.describe()
        again.trunk.threads = 1
        list(again.run(data))
        assert_same_bits(parameters(again), parameters(whole))


def test_rows_side_by_side_are_so_many_places():
    options = {"width": WIDTH, "history": 9, "dropout": 0.1, "trunk_rate": 0.1}
    assert [make(many * WIDTH, 5, options, seed=0).length for many in (2, 3)] == [2, 3]
    made = make(WIDTH, 5, options | {"order": "sequence"}, seed=0)
    assert (made.length, made.sequence, made.outputs) == (9, 9, 5)
    with pytest.raises(ValueError, match="--trunk attention: found examples of 1 row, expected several"):
        make(WIDTH, 5, options, seed=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"blocks": AttentionBlocks(heads=4)}, "heads: found 4, expected a divisor of 6"),
        ({"optimiser": "sgd"}, "optimiser: found 'sgd', expected one of adamw"),
        ({"optimiser": SGD(0.1)}, r"optimiser: found SGD\(rate=0.1, .*expected one of adamw"),
        ({"blocks": 0}, "blocks: found 0, expected a whole number"),
    ],
)
def test_what_it_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        AttentionTrunk(WIDTH, length=LENGTH, **arguments)
    with pytest.raises(ValueError, match=r"dropout: found 1.0, expected a share"):
        AttentionBlocks(dropout=1.0)
