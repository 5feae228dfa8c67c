import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid.torch import fast_head
from tests.support.neighbours import clustered

WEIGHTS, HIDDEN = torch.from_numpy(clustered(2500, 16)), torch.from_numpy(clustered(64, 16, seed=1))


def layer(dtype=torch.float32, bias=True):
    """A trained layer."""
    linear = torch.nn.Linear(16, 2500, bias=bias)
    with torch.no_grad():
        linear.weight.copy_(WEIGHTS)
    return linear.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
def test_the_likeliest_are_those_of_the_layer(dtype, bias):
    linear, hidden = layer(dtype, bias), HIDDEN.to(dtype).reshape(4, 16, 16)
    fast = fast_head(linear, k=5, hidden=hidden)
    assert fast.worth.recall == fast.worth.agreement == 1 and fast.weight is linear.weight and fast.bias is linear.bias
    exact = hidden.double() @ linear.weight.double().T + (linear.bias.double() if bias else 0)
    right, order = exact.topk(5)
    ids, logits = fast.best(hidden)
    assert ids.dtype == torch.int64 and torch.equal(ids, order)
    torch.testing.assert_close(logits.double(), right, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        left = fast(hidden)
    assert left.shape == (4, 16, 2500) and left.dtype == dtype
    assert torch.equal(left.isfinite().sum(-1), torch.full((4, 16), 5))
    assert torch.equal(left.gather(-1, order), right.to(dtype)) or dtype == torch.float32
    if dtype == torch.float32:
        assert torch.equal(fast.best(hidden.numpy())[0], order)
    assert torch.equal(fast_head(linear, k=1)(hidden).argmax(-1), exact.argmax(-1))


def test_it_samples_from_the_softmax_over_the_likeliest():
    linear = layer()
    fast = fast_head(linear, k=3)
    one = HIDDEN[:1].expand(4000, 16)
    drawn = fast.sample(one, temperature=2.0, generator=torch.Generator().manual_seed(0))
    top, ids = linear(HIDDEN[:1]).topk(3)
    shares = torch.stack([(drawn == which).double().mean() for which in ids[0]])
    torch.testing.assert_close(shares, torch.softmax(top[0] / 2, -1).double(), atol=0.04, rtol=0)
    assert shares.sum() == 1
    assert torch.equal(fast.sample(HIDDEN.reshape(8, 8, 16), temperature=0), linear(HIDDEN).argmax(-1).reshape(8, 8))


def test_the_weights_are_shared_with_the_layer_and_a_copy_of_the_net_answers_alike():
    linear = layer()
    net = torch.nn.Sequential(torch.nn.Identity(), fast_head(linear, k=4))
    assert np.shares_memory(net[1].head.weights, linear.weight.detach().numpy())
    assert {name.split(".")[-1] for name in net.state_dict()} == {"weight", "bias"}
    assert torch.equal(copy.deepcopy(net)(HIDDEN), net(HIDDEN))
    assert net(HIDDEN[:0]).shape == (0, linear.out_features)
    state = net.state_dict()
    net.load_state_dict(state)
    with pytest.raises(ValueError, match=r"1\.linear\.weight: found other numbers than those of the search"):
        net.load_state_dict({name: values + 1 for name, values in state.items()})


def test_another_layer_is_refused():
    with pytest.raises(ValueError, match=r"linear: found Identity, expected a torch\.nn\.Linear of float32"):
        fast_head(torch.nn.Identity())
    with pytest.raises(ValueError, match=r"linear: found Linear of torch\.float64 on cpu"):
        fast_head(torch.nn.Linear(3, 4, dtype=torch.float64))


@pytest.mark.parametrize("hidden", [HIDDEN[:, :3], HIDDEN.long(), HIDDEN.tolist(), torch.tensor(1.0)])
def test_other_hidden_vectors_are_refused(hidden):
    with pytest.raises(ValueError, match=r"hidden: found .*expected"):
        fast_head(layer(), k=2).best(hidden)
