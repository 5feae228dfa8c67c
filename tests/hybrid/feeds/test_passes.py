import itertools

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid.feeds.iterable import begun


def numbers(loader, seed, epoch):
    return [part.tolist() for (part,) in begun(loader, seed, epoch)]


def loader(**options):
    data = torch.utils.data.TensorDataset(torch.arange(10))
    return torch.utils.data.DataLoader(data, batch_size=3, **options)


@pytest.mark.parametrize(
    ("source", "found"),
    [(iter([1]), "list_iterator, an iterator"), ((n for n in [1]), "generator, an iterator"), (5, "int")],
)
def test_what_cannot_is_refused(source, found):
    with pytest.raises(ValueError, match=f"batches: found {found}.* expected"):
        begun(source, 0, 0)


def test_a_loader_that_shuffles_is_a_function_of_seed_and_epoch():
    torch.manual_seed(0)
    state = torch.get_rng_state()
    one, other = loader(shuffle=True), loader(shuffle=True, generator=torch.Generator())
    first = numbers(one, 3, 0)
    assert numbers(other, 3, 0) == first == numbers(one, 3, 0)
    assert numbers(one, 3, 1) != first != numbers(one, 4, 0)
    assert sorted(itertools.chain(*first)) == list(range(10))
    assert torch.equal(torch.get_rng_state(), state), "what others draw is left alone"
