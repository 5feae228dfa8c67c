"""A loss in files and copies: state_dict, torch.save, pickle, copy.deepcopy."""

import copy
import io
import itertools
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid.torch import FullLoss, TreeLoss
from tests.support.losses import COUNTS, MAKE, WIDTH, batch, frozen, trained


@pytest.fixture(params=MAKE)
def make(request):
    return MAKE[request.param]


def go_on(loss):
    """What three more steps make of it."""
    found = [loss(*batch(16, seed=50 + seed)).loss for seed in range(3)]
    for one in found:
        one.backward()
    return [one.item() for one in found], frozen(loss)


def saved(value):
    """As torch.save writes it and torch.load, which trusts nobody, reads it."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_a_net_goes_on_from_its_state_dict_with_the_same_bytes(make):
    net = torch.nn.ModuleDict({"trunk": torch.nn.Linear(2, 2), "head": trained(make(rate=0.3))})
    again = torch.nn.ModuleDict({"trunk": torch.nn.Linear(2, 2), "head": make(rate=0.3)})
    assert again.load_state_dict(saved(net.state_dict())) == ([], [])
    assert frozen(again) == frozen(net) and go_on(again["head"]) == go_on(net["head"])


def test_what_an_optimiser_keeps_travels_too(make):
    learned = {"rate": 0.3, "optimiser": "row-adagrad", "biases": True}
    loss, again = trained(make(**learned)), make(**learned)
    state = saved(loss.state_dict())
    assert {"squares", "biases"} < state.keys()
    again.load_state_dict(state)
    assert go_on(again) == go_on(loss)


def test_its_tensors_are_the_readout_s_own_and_are_written_in_place(make):
    loss, other = make(), trained(make(rate=0.3))
    name, tensor = next(iter(loss.state_dict().items()))
    at = loss.readout.parameters()[name].ctypes.data
    assert tensor.data_ptr() == at
    trained(loss)
    assert tensor.abs().max() > 0  # it is what it is now
    loss.load_state_dict(other.state_dict(), assign=True)
    assert tensor.data_ptr() == at and tensor.equal(other.state_dict()[name])


def test_the_counts_of_a_huffman_tree_travel():
    first, second = trained(TreeLoss(WIDTH, COUNTS)), TreeLoss(WIDTH, COUNTS[::-1].copy())
    second.load_state_dict(first.state_dict())
    hidden, target = batch(16)
    assert second(hidden, target).output.equal(first(hidden, target).output)


DUPLICATES = copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss))


@pytest.mark.parametrize(("kind", "duplicate"), [*zip(MAKE, itertools.cycle(DUPLICATES))])
def test_copies_share_nothing_and_go_on(kind, duplicate):
    loss = trained(MAKE[kind](rate=0.3, reduction="sum", ignore_index=3))
    loss.rate_scale = 0.5
    loss.follow(torch.optim.SGD(loss.parameters()))
    other = duplicate(loss)
    assert (other.reduction, other.ignore_index, other.rate, other.rate_scale) == ("sum", 3, 0.3, 0.5)
    loss.follow(None)
    before = frozen(other)
    assert before == frozen(loss)
    found = go_on(loss)
    assert frozen(other) == before and go_on(other) == found


def faulty(state, change):
    state = {name: value.clone() for name, value in state.items()}
    change(state)
    return state


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda state: state.pop("nodes"), r'Missing key\(s\) in state_dict: "nodes"'),
        (lambda state: state.update(more=torch.zeros(1)), r'Unexpected key\(s\) in state_dict: "more"'),
        (
            lambda state: state.update(nodes=torch.zeros(3, WIDTH)),
            r"nodes: found the shape \(3, 6\), expected \(36, 6\)",
        ),
        (lambda state: state.update(nodes=np.zeros((36, WIDTH))), r"nodes: found ndarray, expected a tensor \(36, 6\)"),
        (lambda state: state["nodes"].fill_(np.nan), "nodes: found NaN or infinity"),
        (lambda state: state["counts"].neg_(), r"counts\[0\]: found -37.0, expected a finite number of at least 0"),
    ],
)
def test_a_state_that_does_not_fit_is_named_and_nothing_is_written(change, told):
    loss = trained(TreeLoss(WIDTH, COUNTS))
    before = frozen(loss)
    with pytest.raises(RuntimeError, match=told):
        loss.load_state_dict(faulty(loss.state_dict(), change))
    if "key" not in told:
        assert frozen(loss) == before


def test_squares_below_0_are_named_and_nothing_is_written():
    loss, name = trained(FullLoss(WIDTH, COUNTS, optimiser="adagrad", biases=True)), "bias_squares"
    before = frozen(loss)
    with pytest.raises(RuntimeError, match=rf"\b{name}: found -1.0, expected numbers of at least 0"):
        loss.load_state_dict(faulty(loss.state_dict(), lambda state: state[name][1:2].fill_(-1)))
    assert frozen(loss) == before


def test_without_strict_what_is_there_is_taken():
    loss, other = MAKE["full"](), trained(MAKE["full"]())
    state = other.state_dict() | {"more": torch.zeros(1)}
    assert loss.load_state_dict(state, strict=False) == ([], ["more"])
    assert frozen(loss) == frozen(other)
    assert loss.load_state_dict({}, strict=False) == (["weights"], [])
    assert loss.load_state_dict({"weights": other.state_dict()["weights"].half()}) == ([], [])
    torch.testing.assert_close(loss.state_dict()["weights"], other.state_dict()["weights"], rtol=1e-3, atol=1e-4)


AVERAGES = {
    "mean": lambda net: torch.optim.swa_utils.AveragedModel(net),
    "exponential": lambda net: torch.optim.swa_utils.AveragedModel(
        net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99)
    ),
}


@pytest.mark.parametrize(("average", "before"), [("mean", 0), ("exponential", 3)])
def test_an_average_without_the_readout_is_refused_until_it_is_loaded(average, before):
    net = torch.nn.ModuleDict({"trunk": torch.nn.Linear(2, 2), "head": trained(MAKE["huffman"](rate=0.3), before)})
    averaged = AVERAGES[average](net)
    averaged.module["head"](*batch(4))
    for seed in range(2):
        net["head"](*batch(16, seed=seed)).loss.backward()
        averaged.update_parameters(net)
    head = averaged.module["head"].eval()
    for call in (lambda: head(*batch(4)), lambda: head.log_prob(batch(4)[0]), lambda: head.best(batch(4)[0], 2)):
        with pytest.raises(RuntimeError, match=r"Loss: found the parameters\(\) of another net copied or averaged in"):
            call()
    ours, theirs = head.state_dict(), net["head"].state_dict()
    floats = [name for name in ours if ours[name].is_floating_point()]
    head.load_state_dict(
        theirs | {name: ours[name].lerp(theirs[name], 0.5) for name in floats}
    )  # as docs/torch.md says
    assert head(*batch(4)).loss.isfinite()
