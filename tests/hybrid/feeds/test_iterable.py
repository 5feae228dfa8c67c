import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid import IterableFeed
from hybrid.feeds import Batch, fitting
from hybrid.feeds.iterable import begun
from tests.support.purity import assert_equal, check_feed

RNG = np.random.default_rng(0)
IDS, TARGET = RNG.integers(0, 7, (22, 2)).astype(np.int32), RNG.integers(0, 5, 22).astype(np.int32)
PAIRS = [(IDS[at : at + 5], TARGET[at : at + 5]) for at in range(0, 22, 5)]


def shuffled(epoch):
    order = np.random.default_rng([1, epoch]).permutation(22)
    return ((IDS[order[at : at + 5]], TARGET[order[at : at + 5]]) for at in range(0, 22, 5))


def loader(**options):
    table = torch.utils.data.TensorDataset(torch.tensor(IDS), torch.tensor(TARGET, dtype=torch.int64))
    return torch.utils.data.DataLoader(table, batch_size=5, shuffle=True, **options)


SOURCES = {
    "a list": lambda: PAIRS,
    "a function of the epoch": lambda: shuffled,
    "a loader": loader,
    "batches": lambda: [Batch(ids.reshape(-1), None, target) for ids, target in PAIRS],
}


@pytest.mark.parametrize("source", SOURCES)
def test_is_a_pure_function_of_the_tick_and_fits(source):
    def make():
        return IterableFeed(SOURCES[source](), epochs=3, seed=1)

    feed = make()
    for tick in range(len(feed)):
        fitting(feed, tick)
    if source != "a loader":  # whose targets are int64, as tensors are
        check_feed(make)
    again = make()
    for tick in (7, 2, 14, 13, 0):
        assert_equal(fitting(again, tick), fitting(feed, tick))
    assert (feed.rows, feed.classes, feed.batch, feed.most_ids, feed.ticks_per_epoch) == (7, 5, 5, 10, 5)
    np.testing.assert_array_equal(feed.counts, np.bincount(TARGET))


def test_worker_processes_change_no_batch():
    helpers = {"num_workers": 2, "multiprocessing_context": "spawn", "persistent_workers": True}
    alone, helped = (IterableFeed(loader(**options), epochs=2) for options in ({}, helpers))
    for tick in range(len(alone)):
        assert_equal(fitting(alone, tick), fitting(helped, tick))
    assert alone.describe() == helped.describe()


def test_ids_that_are_too_large_take_no_memory():
    with pytest.raises(IndexError, match=r"batches\[1\]: target\[0\]: found 10000000000000, expected 0 to"):
        IterableFeed([([1], [0]), ([1], [10**13])])
    with pytest.raises(IndexError, match=r"batches\[0\]: ids\[0\]: found 10000000000000, expected 0 to"):
        IterableFeed([([10**13], [0])])
    with pytest.raises(ValueError, match="classes: found 5, expected at least 2147483647"):
        IterableFeed([([1], [2**31 - 2])], classes=5)
    for name, value in (("rows", "9"), ("classes", 2**31)):
        with pytest.raises(ValueError, match=f"{name}: found {value!r}, expected a whole number"):
            IterableFeed(PAIRS, **{name: value})


def test_dicts_of_fields():
    feed = IterableFeed([{"ids": [1, 2, 0], "bag_at": [0, 2, 3], "target": [0, 1, 1], "target_at": [0, 1, 3]}])
    batch = fitting(feed, 0)
    assert batch.bag_at.tolist() == [0, 2, 3] and batch.target_at.tolist() == [0, 1, 3]
    assert feed.most_targets == 3 and feed.batch == 2
    few = np.array([0, 3], np.uint8)
    assert IterableFeed([{"ids": few, "target": few}]).classes == 4


def test_an_epoch_with_more_batches_is_cut_to_as_many_as_the_first():
    feed = IterableFeed(lambda epoch: PAIRS * (epoch + 1), epochs=2)
    assert len(feed) == 10
    assert_equal(feed[9], feed[4])


BAD = {
    "batches: found none": [],
    "batches: found list_iterator, an iterator, which ends after one pass": iter(PAIRS),
    "batches: found generator, an iterator": (pair for pair in PAIRS),
    "batches: found int, expected an iterable of batches, or a function of the epoch": 5,
    r"batches\[5\]: found str, expected a Batch of hybrid.feeds, a pair": [*PAIRS, "text"],
    r"batches\[0\]: found a dict of x, label, expected target": [{"x": [[1.0]], "label": [1]}],
    r"batches\[0\]: found Tensor, expected": [(torch.ones(1, 2, requires_grad=True), [0])],
}


@pytest.mark.parametrize("message", BAD)
def test_refusals(message):
    with pytest.raises(ValueError, match=message):
        IterableFeed(BAD[message])


def ids(loader, seed, epoch):
    return [part.tolist() for (part,) in begun(loader, seed, epoch)]


def test_a_loader_that_shuffles_is_a_function_of_seed_and_epoch():
    torch.manual_seed(0)
    state = torch.get_rng_state()
    data = torch.utils.data.TensorDataset(torch.arange(10))
    settings = {"batch_size": 3, "shuffle": True}
    one = torch.utils.data.DataLoader(data, **settings)
    other = torch.utils.data.DataLoader(data, generator=torch.Generator(), **settings)
    first = ids(one, 3, 0)
    assert ids(other, 3, 0) == first == ids(one, 3, 0)
    assert ids(one, 3, 1) != first != ids(one, 4, 0)
    assert sorted(itertools.chain(*first)) == list(range(10))
    assert torch.equal(torch.get_rng_state(), state), "what others draw is left alone"
