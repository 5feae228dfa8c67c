"""The full softmax on the device, against NumPy in float64."""

import numpy as np
import pytest

from gpu import softmax
from gpu.runtime import kernels
from hybrid.contract import Learned
from tests import cudasim
from tests.support.softmaxes import check_step, oracle, problem

NAMES = ("grad", "loss", "weights")


class Case:
    """A problem on the device."""

    def __init__(self, gpu, weights, hidden, target=None):
        self.gpu, (batch, width) = gpu, hidden.shape
        self.weights, self.hidden = gpu.put(weights), gpu.put(hidden)
        self.target = None if target is None else gpu.put(target)
        self.grad, self.loss = gpu.empty(hidden.shape, np.float32), gpu.empty(batch, np.float32)
        self.work = gpu.run(softmax.workspace, batch, width, np.float32)

    def arguments(self, rate):
        return self.grad, self.loss, Learned(self.weights), self.work, self.hidden, self.target, None, rate

    def results(self):
        return [self.gpu.get(getattr(self, name)) for name in NAMES]

    def step(self, rate):
        """grad, loss and the weights after a step."""
        self.gpu.run(softmax.step, *self.arguments(rate))
        return self.results()

    def log_prob(self):
        out = self.gpu.empty(self.loss.shape, np.float32)
        self.gpu.run(softmax.log_prob, out, Learned(self.weights), self.work, self.hidden, self.target)
        return self.gpu.get(out)

    def best(self, k):
        shape = (len(self.hidden), k)
        ids, log_probs = self.gpu.empty(shape, np.int32), self.gpu.empty(shape, np.float32)
        self.gpu.run(softmax.best, ids, log_probs, Learned(self.weights), self.work, self.hidden)
        return self.gpu.get(ids), self.gpu.get(log_probs)


CHUNK = 64  # classes a chunk, in most tests
chunk_size = softmax.classes_of_chunk  # as it is, for tests that replace it

# Classes, width, rows: around a chunk, and around what a block reads at once
SIZES = [(2, 1, 1), (CHUNK, 33, 2), (CHUNK + 1, 128, 3), (2 * CHUNK + 1, 2, 4), (5 * CHUNK - 3, 8, 33)]


@pytest.fixture(autouse=True)
def chunks(monkeypatch):
    def each(classes):
        monkeypatch.setattr(softmax, "classes_of_chunk", lambda *sizes: classes)

    each(CHUNK)
    return each


@pytest.mark.parametrize("sizes", SIZES)
def test_step_against_float64(gpu, sizes):
    given = problem(*sizes)
    check_step(Case(gpu, *given).step(0.1), *given)


@pytest.mark.parametrize(  # what a block reads four of may end anywhere
    ("classes", "chunk"), [(CHUNK + rest, CHUNK * (1 + rest % 2)) for rest in range(1, 5)]
)
def test_biases_and_weights_of_examples_against_float64(gpu, chunks, classes, chunk):
    """Biases, which are NaN behind the last class: there they are not read."""
    chunks(chunk)
    weights, hidden, target = problem(classes, 9, 5)
    biases, weight = np.linspace(-2, 3, classes, dtype=np.float32), np.linspace(0.5, 2, 5, dtype=np.float32)
    case = Case(gpu, weights, hidden, target)
    on_device = gpu.put(np.append(biases, np.full(4, np.nan, np.float32)))[:classes]
    learned, rate = Learned(case.weights, on_device), 0.1
    ids, log_probs, out = gpu.empty((5, 7), np.int32), gpu.empty((5, 7), np.float32), gpu.empty(5, np.float32)
    gpu.run(softmax.best, ids, log_probs, learned, case.work, case.hidden)
    gpu.run(softmax.log_prob, out, learned, case.work, case.hidden, case.target)
    gpu.run(softmax.step, case.grad, case.loss, learned, case.work, case.hidden, case.target, gpu.put(weight), rate)

    expected = oracle(np.column_stack([weights, biases]), np.column_stack([hidden, np.ones(5)]))
    order = np.argsort(-expected, axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(gpu.get(ids), order)
    np.testing.assert_allclose(gpu.get(log_probs), np.take_along_axis(expected, order, 1), atol=1e-5)
    np.testing.assert_allclose(gpu.get(out), expected[np.arange(5), target], atol=1e-5)
    miss = weight[:, None] * (np.exp(expected) - np.eye(classes)[target])
    grad, loss, moved = case.results()
    np.testing.assert_allclose(loss, -weight * expected[np.arange(5), target], atol=1e-5)
    np.testing.assert_allclose(grad, miss @ weights, atol=1e-5)
    np.testing.assert_allclose(moved, weights - 0.1 * miss.T @ hidden, atol=1e-5)
    np.testing.assert_allclose(gpu.get(on_device), biases - 0.1 * miss.sum(axis=0), atol=1e-5)


def test_targets_on_both_sides_of_the_edges_of_chunks(gpu):
    """The last row's is the first of a chunk: behind the chunk before there are no logits."""
    given = *problem(2 * CHUNK, 8, 4)[:2], np.array([0, CHUNK - 1, 2 * CHUNK - 1, CHUNK], np.int32)
    check_step(Case(gpu, *given).step(0.1), *given)


@pytest.mark.parametrize("sizes", [(1023, 3, 2), (4097, 2, 3)])
def test_step_in_one_chunk_against_float64(gpu, chunks, sizes):
    chunks(1 << 14)
    given = problem(*sizes)
    check_step(Case(gpu, *given).step(0.1), *given)


@pytest.mark.parametrize("spread", [1e-20, 1e4])
def test_logits_of_any_size(gpu, spread):
    """Logits grow from chunk to chunk, so that the base changes in each."""
    weights, hidden, target = problem(5 * CHUNK, 8, 6, spread=spread)
    weights *= np.geomspace(1e-3, 1, len(weights), dtype=np.float32)[:, None]
    expected = oracle(weights, hidden)[np.arange(6), target]
    grad, loss, _ = Case(gpu, weights, hidden, target).step(0.0)
    np.testing.assert_allclose(loss, -expected, rtol=1e-5, atol=1e-5)
    assert np.isfinite(grad).all()


@pytest.mark.parametrize("largest", [1e4, 3.4e38])
def test_the_largest_numbers_that_there_are(gpu, largest):
    """Two classes share all the mass, one of them in each chunk; the loss is log 2, or the distance."""
    weights = np.full((CHUNK + 3, 1), -largest, np.float32)
    weights[[1, CHUNK + 1]] = largest
    case = Case(gpu, weights, np.ones((2, 1), np.float32), np.array([1, 0], np.int32))
    loss = -case.log_prob()
    assert loss[0] == pytest.approx(np.log(2))
    assert loss[1] == pytest.approx(2 * largest + np.log(2)) if largest < 3e38 else np.isposinf(loss[1])


M = 1 << 20


@pytest.mark.parametrize(
    ("batch", "classes", "width", "expected"),
    [
        (1, 1000, 128, 1024),  # all classes, and no memory for more
        (64, M, 8, M),
        (1024, 100_000, 128, 65536),  # 256 MiB
        (1024, 16 * M, 128, M // 2),  # a quarter of 8 GiB
        (1024, 100_000, 8192, 100_096),
        (1025, 100_000, 128, 65408),
        (M, 100_000, 128, 128),
        (0, 1000, 128, 1024),
    ],
)
def test_a_chunk_has_as_many_logits_as_memory_allows(batch, classes, width, expected):
    assert chunk_size(batch, classes, width) == expected


# NaN and infinity


@pytest.mark.parametrize("sign", [1, -1])
def test_a_nan_stays_visible(gpu, sign):
    weights, hidden, target = problem(2 * CHUNK, 8, 3)
    weights[CHUNK + 1, 2] = np.copysign(np.nan, sign)
    grad, loss, _ = Case(gpu, weights, hidden, target).step(0.0)
    assert np.isnan(loss).all() and np.isnan(grad).all()
    assert (Case(gpu, weights, hidden, target).best(2)[0][:, 0] == CHUNK + 1).all()


def test_a_nan_of_one_row_stays_there(gpu):
    weights, hidden, target = problem(CHUNK + 9, 8, 3)
    hidden[1, 4] = np.nan
    grad, loss, _ = Case(gpu, weights, hidden, target).step(0.0)
    np.testing.assert_array_equal(np.isnan(loss), [False, True, False])
    np.testing.assert_array_equal(np.isnan(grad).any(axis=1), [False, True, False])


def test_infinite_logits(gpu):
    weights, hidden, target = np.zeros((5, 1), np.float32), np.ones((1, 1), np.float32), np.array([1], np.int32)
    weights[0] = -np.inf  # a class of no probability
    assert Case(gpu, weights, hidden, target).log_prob()[0] == pytest.approx(-np.log(4))
    weights[0] = np.inf
    assert np.isnan(Case(gpu, weights, hidden, target).log_prob()[0])
    weights[:] = -np.inf
    assert np.isnan(Case(gpu, weights, hidden, target).log_prob()[0])


# The k best


@pytest.mark.parametrize(("classes", "k"), [(33, 33), (CHUNK, 1), (CHUNK, 31), (3 * CHUNK + 1, 2), (3 * CHUNK + 1, 33)])
def test_best_is_the_head_of_a_sorted_list(gpu, classes, k):
    weights, hidden, _ = problem(classes, 3, 3, seed=classes + k)
    np.round(weights, out=weights)  # whole numbers: exact logits, many ties, and zeros of both signs
    np.round(hidden, out=hidden)
    order = np.argsort(-(hidden @ weights.T), axis=1, kind="stable")[:, :k]
    ids, log_probs = Case(gpu, weights, hidden).best(k)
    np.testing.assert_array_equal(ids, order)
    np.testing.assert_allclose(log_probs, np.take_along_axis(oracle(weights, hidden), order, 1), atol=1e-5)


@pytest.mark.parametrize("k", [1, 200, 1025])
def test_best_of_rising_logits(gpu, chunks, k):
    """Every class beats all before it, so that those that wait are sorted again and again; and of equal ones."""
    chunks(4096)
    weights = np.arange(5000, dtype=np.float32)[:, None]
    ids, log_probs = Case(gpu, weights, np.array([[0.5], [0]], np.float32)).best(k)
    np.testing.assert_array_equal(ids, [range(4999, 4999 - k, -1), range(k)])
    np.testing.assert_allclose(log_probs[1], -np.log(5000), atol=1e-5)


def test_zeros_of_both_signs_are_equal(gpu):
    weights = np.array([[-1], [-1e-30], [0], [1e-30], [-1e-30]], np.float32)
    ids, _ = Case(gpu, weights, np.array([[1e-30]], np.float32)).best(5)  # all but the first underflow, two to -0
    assert ids.tolist() == [[1, 2, 3, 4, 0]]


def test_more_than_there_are_up_to_as_many_as_a_block_can_hold_and_one_more(gpu, monkeypatch):
    case = Case(gpu, *problem(3, 4, 2))
    room = 1 << ((gpu.device.shared_block - 1024) // 8).bit_length() - 1
    monkeypatch.setattr(gpu.device, "shared_block", 8 * room + 1024)  # not a byte more
    for k in (5, room - softmax.TILE):
        ids, log_probs = case.best(k)
        assert (np.sort(ids[:, :3], axis=1) == [0, 1, 2]).all() and (ids[:, 3:] == -1).all()
        assert np.isneginf(log_probs[:, 3:]).all()
    with pytest.raises(ValueError, match=f"expected at most {room - softmax.TILE} "):
        case.best(room - softmax.TILE + 1)


# Time


def test_nothing_is_allocated_copied_or_waited_for(gpu, simulated):
    case = Case(gpu, *problem(3 * CHUNK, 4, 2))
    out = gpu.empty(2, np.float32)

    def work():
        softmax.step(*case.arguments(0.1))
        softmax.log_prob(out, Learned(case.weights), case.work, case.hidden, case.target)

    gpu.run(work)  # compiles
    # chunks: two launches each in a first pass, four in the second, but the last without its first
    made = gpu.run(cudasim.calls, work)
    assert made.keys() <= {"launch", "other"} and made["launch"] == 3 * (2 + 4 + 2) - 1


def test_the_same_bytes_beside_another_queue(gpu):
    """Two queues at work at once, and the same problems one after the other."""
    problems = [problem(3 * CHUNK + 1, 8, 5, seed=number) for number in range(2)]
    expected = [Case(gpu, *arrays).step(0.1) for arrays in problems]
    for _ in gpu.orders(2):
        cases = [Case(gpu, *arrays) for arrays in problems]
        queues = [gpu.device.queue(name, 1) for name in "ab"]
        for queue, case in zip(queues, cases, strict=True):
            queue.run(softmax.step, *case.arguments(0.1))
        for queue in queues:
            queue.close()
        for case, results in zip(cases, expected, strict=True):
            assert [found.tobytes() for found in case.results()] == [before.tobytes() for before in results]


@pytest.mark.parametrize("width", [16, 9])  # rows of hidden vectors that begin at 16 bytes, or not
def test_a_step_in_bfloat16(gpu, chunks, monkeypatch, width):
    """Near the exact step, with the same bytes each time; log p and the best classes stay exact."""
    given = problem(CHUNK + 37, width, 6)
    exact, log_prob = Case(gpu, *given).step(0.1), Case(gpu, *given).log_prob()
    monkeypatch.setattr(gpu.device, "precision", "bf16")
    for _ in gpu.orders(2):
        for size in (CHUNK, 4 * CHUNK):  # logits of the first chunk are computed twice, or kept
            chunks(size)
            case = Case(gpu, *given)
            if not gpu.simulated:  # there fp32 becomes TF32
                np.testing.assert_array_equal(case.log_prob(), log_prob)
            found = case.step(0.1)
            for name, one, wanted, first in zip(NAMES, found, exact, (0, 0, given[0]), strict=True):
                change = np.linalg.norm(wanted - first)
                assert 0 < np.linalg.norm(one - wanted) < 0.02 * change, name


def test_halves_are_rounded_to_the_nearest(gpu):
    drawn = np.random.default_rng(0).integers(0, 2**32, 4099, dtype=np.uint32).view(np.float32)
    special = np.array([0, -0.0, 1, np.inf, -np.inf, np.nan, 3.4e38, 1e-45, 1.00390625, 1.01171875], np.float32)
    given = np.concatenate([special, drawn])
    torch = pytest.importorskip("torch")
    there, out = gpu.put(given), gpu.empty(given.size, np.uint16)
    gpu.run(lambda: kernels.launch(softmax.__file__, "halve", "PPq", 3, 256, out, there, given.size))
    found = torch.from_numpy(gpu.get(out).view(np.int16)).view(torch.bfloat16)
    torch.testing.assert_close(found, torch.from_numpy(given).bfloat16(), rtol=0, atol=0, equal_nan=True)
