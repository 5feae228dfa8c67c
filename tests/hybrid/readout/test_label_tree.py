"""The label tree as a readout, against the serial loop in float64."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

from hybrid import SGD, Adagrad, Pipeline, RowAdagrad
from hybrid.engine import Engine
from hybrid.engine.embedding import Inputs
from hybrid.feeds import Batch
from hybrid.readout import LabelTreeReadout, rebuild
from tests.support.label_trees import every, log_sigmoid, visited
from tests.support.points import Given
from tests.support.readouts import rated, reloaded

LABELS, WIDTH, BATCH = 31, 6, 16
COUNTS = np.arange(LABELS)[::-1]
PARENTS = np.array([-1, 0, 0, 0, *np.repeat([1, 2, 3], [10, 10, 11])])
MAKE = {
    "huffman": lambda **more: LabelTreeReadout(COUNTS, WIDTH, batch=BATCH, **more),
    "balanced": lambda **more: LabelTreeReadout(LABELS, WIDTH, tree="balanced", batch=BATCH, **more),
    "adagrad": lambda **more: LabelTreeReadout(COUNTS, WIDTH, batch=BATCH, biases=True, **more),
    "row-adagrad": lambda **more: LabelTreeReadout(COUNTS, WIDTH, batch=BATCH, **more),
    "given": lambda **more: LabelTreeReadout(LABELS, WIDTH, tree=(PARENTS, np.arange(4, 35)), batch=BATCH, **more),
}
MOVES = {"adagrad": Adagrad, "row-adagrad": RowAdagrad}
MAKE = {kind: rated(make, MOVES.get(kind, SGD)) for kind, make in MAKE.items()}


@pytest.fixture(params=MAKE)
def make(request):
    return MAKE[request.param]


def batch(rows=BATCH, seed=0):
    """hidden, target, target_at: up to four labels each, some none."""
    rng = np.random.default_rng(seed)
    target_at = np.concatenate([[0], np.cumsum(rng.integers(0, 5, rows))])
    hidden = rng.normal(size=(rows, WIDTH)).astype(np.float32)
    return hidden, rng.integers(0, LABELS, target_at[-1]).astype(np.int32), target_at


def step(readout, seed=0, weight=None):
    hidden, target, target_at = batch(seed=seed)
    return readout.step(np.empty_like(hidden), hidden, target, weight, target_at)


def of_all(readout, hidden):
    """The log-probabilities of all labels in float64; a bias is the weight of one more number, which is 1."""
    biases = readout.biases
    more = np.zeros(len(readout.rows)) if biases is None else biases
    rows = np.column_stack([readout.rows, more]).astype(float)
    return every(rows, readout.tree, np.column_stack([hidden, np.ones(len(hidden))]).astype(float))


def frozen(readout):
    return [array.tobytes() for array in readout.parameters().values()]


def test_a_rule_moves_rows_and_biases_as_the_serial_loop_does():
    """Adagrad: a bias is a number of its row, whose input is always 1."""
    readout = LabelTreeReadout(COUNTS, WIDTH, batch=BATCH, biases=True, optimiser=Adagrad(0.2))
    rows = np.zeros((len(readout.rows), WIDTH + 1))
    squares, rng = np.zeros_like(rows), np.random.default_rng(3)
    for seed in range(4):
        hidden, target, target_at = batch(seed=seed)
        weight = rng.random(BATCH).astype(np.float32)
        readout.step(np.empty_like(hidden), hidden, target, weight, target_at)
        for b in range(BATCH):
            h = np.append(hidden[b], 1.0)
            for node, turn in visited(readout.tree, target[target_at[b] : target_at[b + 1]]).items():
                grad = weight[b] * (np.exp(log_sigmoid(rows[node] @ h)) - turn) * h
                squares[node] += grad**2
                rows[node] -= 0.2 * grad / (np.sqrt(squares[node]) + 1e-10)
    np.testing.assert_allclose(readout.rows, rows[:, :-1], rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(readout.biases, rows[:, -1], rtol=2e-3, atol=2e-4)


def test_answers_are_those_of_all_labels(make):
    readout = make(rate=0.5)
    for seed in range(5):
        step(readout, seed)
    hidden, _, _ = batch(rows=40, seed=9)  # more than a batch
    expected = of_all(readout, hidden)
    np.testing.assert_allclose(readout.scores(hidden), expected, rtol=1e-4, atol=1e-5)
    rows, labels = np.repeat(hidden, LABELS, axis=0), np.tile(np.arange(LABELS, dtype=np.int32), 40)
    np.testing.assert_allclose(readout.log_prob(rows, labels).reshape(40, -1), expected, rtol=1e-4, atol=1e-5)
    ids, log_probs = readout.best(hidden, 7)
    np.testing.assert_allclose(log_probs, -np.sort(-expected, axis=1)[:, :7], rtol=1e-4)
    np.testing.assert_allclose(np.take_along_axis(expected, ids.astype(int), 1), log_probs, rtol=1e-4)
    exclude = sparse.csr_array(np.arange(LABELS) % 2 * np.ones((40, 1)))
    ids, _ = readout.best(hidden, 16, exclude)
    assert (ids % 2 == 0).all() and (np.sort(ids) == np.arange(0, LABELS, 2)).all()


def test_likely_labels_are_all_that_are_likely_enough(make):
    readout = make(rate=0.5)
    for seed in range(5):
        step(readout, seed)
    hidden, _, _ = batch(rows=40, seed=9)
    expected = np.exp(of_all(readout, hidden))
    for threshold in (1e-6, 0.02, 0.3, 1.0):
        found = readout.likely(hidden, threshold)
        assert found.shape == (40, LABELS) and found.dtype == np.float32
        np.testing.assert_allclose(found.toarray(), np.where(expected >= threshold, expected, 0), rtol=1e-4)


def test_a_checkpoint_and_copies_go_on_with_the_same_bits(make):
    readout = make(rate=0.1)
    step(readout)
    again = reloaded(readout)
    models = [readout, again, copy.deepcopy(readout), pickle.loads(pickle.dumps(readout))]
    assert len({step(model, 1) for model in models}) == 1
    assert len({b"".join(frozen(model)) for model in models}) == 1


def test_the_same_bits_at_any_number_of_threads(make):
    import numba

    found = set()
    for threads in (1, 2, 4):
        numba.set_num_threads(threads)
        readout = make(rate=0.1)
        losses = [step(readout, seed) for seed in range(3)]
        ids, log_probs = readout.best(batch(seed=9)[0], 5)
        scores = readout.scores(batch(seed=9)[0])
        found.add((b"".join(frozen(readout)), *losses, ids.tobytes(), log_probs.tobytes(), scores.tobytes()))
    assert len(found) == 1


def test_counts_that_a_checkpoint_declares():
    facts = MAKE["given"]().describe()
    with pytest.raises(ValueError, match="nodes: found 31, expected more than the 31 labels"):
        rebuild(facts | {"nodes": 31})
    spoiled = rebuild(facts)
    spoiled.parameters()["parents"][5] = 99
    with pytest.raises(ValueError, match="parents: expected the number of each node's parent"):
        spoiled.restore({})


BAD = {
    "places": (lambda t, at: (t, at + 1), ValueError, r"target_at\[0\]: found 1, expected 0"),
    "few places": (lambda t, at: (t, at[:-1].copy()), ValueError, r"target_at: found int64 \(16,\), .* int64 \(17,\)"),
    "label": (lambda t, at: (t + LABELS, at), IndexError, r"target\[0\]: found \d+, expected 0 to 30"),
    "one each": (lambda t, at: (t, None), ValueError, r"target: found int32 \(\d+,\), expected int32 \(16,\)"),
}


@pytest.mark.parametrize(("kind", "bad"), [*zip(MAKE, ["label"] * 5, strict=True), *(("huffman", bad) for bad in BAD)])
def test_bad_labels_are_refused_and_nothing_moves(kind, bad):
    readout = MAKE[kind](rate=0.1)
    step(readout)
    before, (spoil, error, message) = frozen(readout), BAD[bad]
    hidden, target, target_at = batch()
    target, target_at = spoil(target, target_at)
    with pytest.raises(error, match=message):
        readout.step(np.empty_like(hidden), hidden, target, None, target_at)
    assert frozen(readout) == before


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("huffman", 'counts: found only how many labels there are; .* tree="balanced"'),
        ("random", "tree: found 'random', expected one of huffman, balanced"),
        (([-1, 0, 0], [1, 2]), "tree: found 2 leaves, expected 31"),
        (([0, 0, 0], [1, 2]), "parents: expected"),
    ],
)
def test_what_is_no_tree_is_refused(tree, message):
    with pytest.raises(ValueError, match=message):
        LabelTreeReadout(LABELS, WIDTH, tree=tree)


@pytest.mark.parametrize("threshold", [0, -1, 1.5, np.nan])
def test_a_threshold_is_a_probability(threshold):
    with pytest.raises(ValueError, match="threshold: found"):
        MAKE["huffman"]().likely(batch()[0], threshold)


WEIGHT = np.linspace(0, 2, BATCH, dtype=np.float32)


def labelled(ticks, weighted=True):
    """Dense inputs with any number of labels each."""
    examples = (batch(seed=tick) for tick in range(ticks))
    weight = WEIGHT if weighted else None
    return Given(LABELS, *(Batch(None, None, target, weight, None, hidden, at) for hidden, target, at in examples))


def test_an_engine_keeps_the_labels_of_an_example_together(make):
    alone, within = make(rate=0.1), make(rate=0.1)
    engine = Engine(Inputs(WIDTH), None, within, schedule="constant", threads=2, pipeline=Pipeline(micro_batches=2))
    losses = [tick.loss for tick in engine.run(labelled(6))]
    expected = []
    for tick in range(6):
        hidden, target, target_at = batch(seed=tick)
        loss = alone.step(np.empty_like(hidden), hidden, target, WEIGHT, target_at)
        # Also of examples without a label: the root learns from them.
        expected.append(loss * BATCH / WEIGHT.sum())
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    assert frozen(within) == frozen(alone)
    biases = within.biases
    assert engine.size == within.rows.size + (0 if biases is None else biases.size)  # the tree is kept, and not learned


@pytest.mark.parametrize("weighted", [True, False])
def test_an_engine_counts_examples_without_labels_and_evaluates_the_loss_that_it_trains(weighted):
    make, feed = MAKE["adagrad"], labelled(1, weighted)
    given = feed[0]
    assert (np.diff(given.target_at) == 0).any()
    counted = given.weight.sum() if weighted else BATCH
    engine = Engine(Inputs(WIDTH), None, make(rate=0.0), threads=2)
    loss = make(rate=0.0).step(np.empty_like(given.x), given.x, given.target, given.weight, given.target_at)
    before = frozen(engine.readout)
    evaluated = engine.evaluate(feed)
    assert frozen(engine.readout) == before
    (tick,) = engine.run(feed)
    assert evaluated == pytest.approx(tick.loss, rel=1e-6) == pytest.approx(loss * BATCH / counted, rel=1e-6)
