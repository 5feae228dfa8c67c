"""A loss as a user calls it: shapes, dtypes, answers, errors; in files, copies and a parent module; and how it is imported."""

import copy
import itertools
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid import Adagrad, FullReadout, RowAdagrad, SampledSoftmax
from hybrid.torch import FullLoss, ReadoutLoss, SampledLoss, TreeLoss
from tests.support.losses import CLASSES, COUNTS, MAKE, WIDTH, batch, frozen, trained

ROOT = Path(__file__).parents[3]
DUPLICATES = copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss))


@pytest.fixture(params=MAKE)
def make(request):
    return MAKE[request.param]


# What goes in


@pytest.mark.parametrize(
    ("kind", "shape"),
    [*((kind, (2, 1, 5)) for kind in MAKE), *(("huffman", shape) for shape in [(), (1,), (7,), (0,), (3, 0)])],
)
def test_any_leading_shape(kind, shape):
    loss = trained(MAKE[kind]()).eval()
    hidden, target = batch(*shape)
    output, mean = loss(hidden, target)
    rows = loss(hidden.reshape(-1, WIDTH), target.reshape(-1)).output
    assert output.shape == shape and output.flatten().equal(rows)
    assert mean.item() == pytest.approx(-rows.mean().item() if rows.numel() else 0, abs=1e-6)
    loss.train()(hidden, target).loss.backward()
    assert hidden.grad.shape == hidden.shape
    assert loss.log_prob(hidden).shape == (*shape, CLASSES) and loss.predict(hidden).shape == shape
    assert [found.shape for found in loss.best(hidden, 3)] == [(*shape, 3)] * 2


@pytest.mark.parametrize("kind", [FullLoss, SampledLoss])
def test_it_starts_from_a_trained_linear(kind):
    linear, loss = torch.nn.Linear(WIDTH, CLASSES), kind(WIDTH, COUNTS, biases=True).eval()
    loss.load_state_dict({"weights": linear.weight, "biases": linear.bias}, strict=False)
    hidden, target = batch(5)
    expected = torch.nn.functional.cross_entropy(linear(hidden), target)
    assert loss(hidden, target).loss.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_all_is_computed_in_float32_whatever_the_dtype_and_pytorch_are_set_to(dtype):
    loss, other = MAKE["huffman"](rate=0.3), MAKE["huffman"](rate=0.3)
    (hidden, target), before = batch(16), torch.get_default_dtype()
    given = hidden.detach().to(dtype).requires_grad_()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.autocast("cpu", torch.bfloat16):
            found = loss(given, target)
        found.loss.backward()
    finally:
        torch.set_default_dtype(before)
    same = given.detach().float().requires_grad_()
    wanted = other(same, target)
    wanted.loss.backward()
    assert found.loss.dtype == found.output.dtype == torch.float32 and found.loss == wanted.loss
    assert given.grad.dtype == dtype and given.grad.equal(same.grad.to(dtype))
    assert frozen(loss) == frozen(other)
    with torch.inference_mode():
        assert loss(given, target).loss.isfinite()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_where_no_example_has_a_class_the_loss_is_zero(reduction):
    loss = trained(MAKE["huffman"](reduction=reduction, ignore_index=-1))
    before, (hidden, target) = frozen(loss), batch(4)
    found = loss(hidden, torch.full_like(target, -1))
    assert found.loss.sum() == 0 and found.output.tolist() == [0] * 4
    found.loss.sum().backward()
    assert hidden.grad.abs().max() == 0 and frozen(loss) == before


@pytest.mark.parametrize("ignored", [torch.nn.CrossEntropyLoss().ignore_index, -(2**63), 2**63 - 1])
def test_what_is_ignored_is_any_number_by_default_that_of_pytorch(ignored):
    more = {} if ignored == -100 else {"ignore_index": ignored}
    loss, (hidden, target) = trained(FullLoss(WIDTH, CLASSES, **more)).eval(), batch(4)
    target[1] = ignored
    assert loss(hidden, target).output[1] == 0


def test_a_mean_is_the_same_for_weights_that_sum_to_less_than_one():
    loss, given = trained(FullLoss(WIDTH, CLASSES)).eval(), batch(4)
    small, large = (loss(*given, torch.full((4,), weight)).loss for weight in (1 / 16, 2.0))
    torch.testing.assert_close(small, large)


def test_hidden_vectors_without_a_class_may_be_anything(make):
    loss = make()
    hidden, target = batch(4, grad=False)
    hidden[1], target[1] = float("nan"), -100
    assert loss(hidden, target).loss.isfinite()


# What comes out


def test_answers_are_those_of_the_readout(make):
    loss = trained(make(rate=0.5))
    hidden, _ = batch(3, 5, seed=9)
    rows, exclude = hidden.detach().reshape(15, WIDTH).numpy(), sparse.csr_array(np.eye(15, CLASSES))
    log_probs, (ids, best) = loss.log_prob(hidden), loss.best(hidden, 4, exclude)
    expected = (loss.readout.scores(rows), *loss.readout.best(rows, 4, exclude))
    for ours, theirs in zip((log_probs, ids, best), expected, strict=True):
        np.testing.assert_array_equal(ours.detach().numpy().reshape(theirs.shape), theirs)
    assert ids.dtype == torch.int64 and not ids.requires_grad
    assert loss.predict(hidden).equal(loss.best(hidden, 2)[0][..., 0])
    every = loss.eval()(hidden[0, 0].expand(CLASSES, WIDTH), torch.arange(CLASSES)).output
    torch.testing.assert_close(log_probs[0, 0], every.detach(), rtol=1e-4, atol=1e-5)


def test_a_sampled_loss_is_of_the_drawn_classes_in_training_and_exact_after_eval():
    loss = trained(SampledLoss(WIDTH, COUNTS, optimiser=Adagrad(0.3), loss=SampledSoftmax(4)))
    hidden, target = batch(64)
    drawn, exact = loss(hidden, target).output, loss.eval()(hidden, target).output
    assert (drawn > exact).float().mean() > 0.9
    chosen = loss.log_prob(hidden).gather(1, target[:, None])[:, 0]
    torch.testing.assert_close(exact.detach(), chosen, rtol=1e-5, atol=1e-5)


def test_the_rate_may_follow_a_schedule_of_torch(make):
    loss, plain = make(rate=0.4), make(rate=0.2)
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 1, 0.5)
    optimiser.step(), schedule.step()
    for followed in (optimiser, None):
        loss.follow(followed)
        for each in (loss, plain):
            each(*batch(16)).loss.backward()
        assert frozen(loss) == frozen(plain)
        loss.rate, loss.rate_scale = 0.2, 1.0
    with pytest.raises(ValueError, match=r"optimiser: found StepLR, expected a torch\.optim"):
        loss.follow(schedule)


def test_the_highest_rate_of_a_schedule_is_the_rate():
    loss, scales = MAKE["full"](rate=0.4), []
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    loss.follow(optimiser)
    loss(*batch(4)).loss.backward()
    assert loss.rate_scale == 1  # without a schedule
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=2.0, total_steps=10)
    for _ in range(10):
        loss(*batch(4)).loss.backward()
        scales.append(loss.rate_scale)
        optimiser.step(), schedule.step()
    assert max(scales) == pytest.approx(1, abs=0.1) and scales[0] == pytest.approx(0.04) and scales[-1] < 1e-3


# What a parent does to it


def test_its_parameters_are_not_the_parent_s(make):
    loss = trained(make())
    net = torch.nn.Sequential(torch.nn.Linear(3, WIDTH), loss)
    before = frozen(loss)
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.anchor"]
    assert not list(net.buffers())
    net.half(), net.double(), net.to(torch.bfloat16), net.float(), net.requires_grad_(False), net.zero_grad()
    assert frozen(loss) == before
    assert all(value.dtype != torch.bfloat16 for value in loss.state_dict().values())


# What is rejected


def at(row, value):
    """A change of one row."""
    return lambda tensor: tensor.index_fill(0, torch.tensor([row]), value)


BAD = {  # hidden vectors, target or weights, changed
    "an array": (0, lambda h: h.detach().numpy(), ValueError, "hidden: found ndarray, expected a floating tensor"),
    "whole numbers": (0, lambda h: h.long(), ValueError, r"hidden: found int64 \(4, 6\), expected a floating"),
    "another width": (0, lambda h: h[:, :5], ValueError, r"hidden: found float32 \(4, 5\), .* 6 numbers a vector"),
    "NaN": (0, at(2, np.nan), FloatingPointError, r"hidden\[2\]: found NaN"),
    "overflow": (0, lambda h: h.double() * 1e300, FloatingPointError, r"hidden\[0\]: found NaN or infinity"),
    "a list": (1, lambda t: t.tolist(), ValueError, r"target: found list, expected int64 or int32 \(4,\)"),
    "floating classes": (1, lambda t: t.float(), ValueError, r"target: found float32 \(4,\).*target.long\(\)"),
    "two axes": (1, lambda t: t[:, None], ValueError, r"target: found int64 \(4, 1\)"),
    "below 0": (1, lambda t: t - 99, IndexError, r"target\[0\]: found -\d+, expected 0 to 36, or -100"),
    "V": (1, at(1, 37), IndexError, r"target\[1\]: found 37, expected 0 to 36"),
    "beyond int32": (1, lambda t: t + 2**32, IndexError, r"target\[0\]: found 4294967\d+, expected 0 to 36"),
    "weights too few": (2, lambda w: w[:3], ValueError, r"weight: found float32 \(3,\), expected .*\(4,\)"),
    "a number": (2, lambda w: 2.0, ValueError, r"weight: found float, expected a floating tensor \(4,\)"),
    "whole weights": (2, lambda w: w.int(), ValueError, r"weight: found int32 \(4,\).*weight.float\(\)"),
    "a negative": (2, lambda w: -w, ValueError, r"weight\[0\]: found -1.0, expected a finite number"),
    "infinite": (2, lambda w: w * np.inf, ValueError, r"weight\[0\]: found inf, expected a finite"),
}


@pytest.mark.parametrize(("kind", "fault"), [*((kind, "NaN") for kind in MAKE), *(("huffman", fault) for fault in BAD)])
def test_bad_input_is_named_and_moves_nothing(kind, fault):
    place, change, error, message = BAD[fault]
    loss = trained(MAKE[kind]())
    before, given = frozen(loss), [*batch(4), torch.ones(4)]
    given[place] = change(given[place])
    with pytest.raises(error, match=message):
        loss(*given)
    assert frozen(loss) == before


def test_bad_questions_and_losses_are_named():
    loss = FullLoss(WIDTH, CLASSES)
    with pytest.raises(ValueError, match=r"hidden: found float32 \(2, 5\)"):
        loss.log_prob(torch.zeros(2, 5))
    with pytest.raises(FloatingPointError, match=r"hidden\[1\]: found NaN"):
        loss.best(torch.tensor([[0.0] * 6, [np.nan] * 6]), 3)
    loss.readout.weights[3] = np.nan
    with pytest.raises(FloatingPointError, match=r"loss\[0\]: found nan; a lower rate may help"):
        loss(*batch(4))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"reduction": "avg"}, "reduction: found 'avg', expected one of mean, sum, none"),
        ({"ignore_index": 1.5}, "ignore_index: found 1.5, expected a whole number"),
        ({"ignore_index": 2**63}, "ignore_index: found 9223372036854775808, expected a whole number"),
        ({"ignore_index": -(2**63) - 1}, "ignore_index: found -9223372036854775809, expected a whole number"),
        ({"optimiser": "adam"}, "optimiser: found 'adam', expected one of sgd, row-adagrad, adagrad"),
        ({"tree": "ternary"}, "tree: found 'ternary'"),
        ({"device": "tpu"}, 'device: found "tpu", expected'),
        ({"device": torch.device("cuda", 0)}, 'device: "cuda:0" cannot be used'),
    ],
)
def test_settings_that_are_none(settings, told):
    with pytest.raises(ValueError, match=told):
        TreeLoss(WIDTH, COUNTS, **settings)


def test_a_readout_that_is_none():
    for readout in (FullReadout, torch.nn.Linear(2, 2)):
        with pytest.raises(ValueError, match=r"readout: found \w+, expected a readout of one class per example"):
            ReadoutLoss(readout)


# In files and copies


def go_on(loss):
    """What three more steps make of it."""
    found = [loss(*batch(16, seed=50 + seed)).loss for seed in range(3)]
    for one in found:
        one.backward()
    return [one.item() for one in found], frozen(loss)


@pytest.mark.parametrize("more", [{"rate": 0.3}, {"optimiser": RowAdagrad(0.3), "biases": True}])
def test_a_net_goes_on_from_its_state_dict_with_the_same_bytes(make, more, tmp_path):
    net, again = (torch.nn.ModuleDict({"trunk": torch.nn.Linear(2, 2), "head": make(**more)}) for _ in range(2))
    trained(net["head"])
    assert "optimiser" not in more or {"head.squares", "head.biases"} < net.state_dict().keys()
    torch.save(net.state_dict(), tmp_path / "net.pt")
    assert again.load_state_dict(torch.load(tmp_path / "net.pt", weights_only=True)) == ([], [])
    assert frozen(again) == frozen(net) and go_on(again["head"]) == go_on(net["head"])


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


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda state: state.pop("nodes"), r'Missing key\(s\) in state_dict: "nodes"'),
        (lambda state: state.update(more=torch.zeros(1)), r'Unexpected key\(s\) in state_dict: "more"'),
        (lambda state: state.update(nodes=torch.zeros(3, 6)), r"nodes: found the shape \(3, 6\), expected \(36, 6\)"),
        (lambda state: state.update(nodes=np.zeros((36, WIDTH))), r"nodes: found ndarray, expected a tensor \(36, 6\)"),
        (lambda state: state["nodes"].fill_(np.nan), "nodes: found NaN or infinity"),
        (lambda state: state["squares"][1:2].fill_(-1), r"\bsquares: found -1.0, expected numbers of at least 0"),
        (lambda state: state["counts"].neg_(), r"counts\[0\]: found -37.0, expected a finite number of at least 0"),
    ],
)
def test_a_state_that_does_not_fit_is_named_and_nothing_is_written(change, told):
    loss = trained(TreeLoss(WIDTH, COUNTS))
    before, state = frozen(loss), {name: value.clone() for name, value in loss.state_dict().items()}
    change(state)
    with pytest.raises(RuntimeError, match=told):
        loss.load_state_dict(state)
    if "key" not in told:
        assert frozen(loss) == before


def test_without_strict_what_is_there_is_taken():
    loss, other = MAKE["full"](), trained(MAKE["full"]())
    state = other.state_dict() | {"more": torch.zeros(1)}
    assert loss.load_state_dict(state, strict=False) == ([], ["more"])
    assert frozen(loss) == frozen(other)
    assert loss.load_state_dict({}, strict=False) == (["weights"], [])
    assert loss.load_state_dict({"weights": other.state_dict()["weights"].half()}) == ([], [])
    torch.testing.assert_close(loss.state_dict()["weights"], other.state_dict()["weights"], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("average", "before"), [(None, 0), (torch.optim.swa_utils.get_ema_multi_avg_fn(0.99), 3)])
def test_an_average_without_the_readout_is_rejected_until_it_is_loaded(average, before):
    net = torch.nn.ModuleDict({"trunk": torch.nn.Linear(2, 2), "head": trained(MAKE["huffman"](rate=0.3), before)})
    averaged = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=average)
    averaged.module["head"](*batch(4))
    for seed in range(2):
        net["head"](*batch(16, seed=seed)).loss.backward()
        averaged.update_parameters(net)
    head = averaged.module["head"].eval()
    head.anchor.data.mul_(1 + 2**-20)  # averages are rounded
    for call in (lambda: head(*batch(4)), lambda: head.log_prob(batch(4)[0]), lambda: head.best(batch(4)[0], 2)):
        with pytest.raises(RuntimeError, match=r"Loss: found the parameters\(\) of another net copied or averaged in"):
            call()
    ours, theirs = head.state_dict(), net["head"].state_dict()
    floats = [name for name in ours if ours[name].is_floating_point()]
    mean = {name: ours[name].lerp(theirs[name], 0.5) for name in floats}  # as docs/plug-in.md says
    head.load_state_dict(theirs | mean)
    assert head(*batch(4)).loss.isfinite()


# Imported


def test_without_pytorch_the_remedy_is_named():
    script = "import sys; sys.modules['torch'] = None; import hybrid, hybrid.readout; import hybrid.torch"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert 'pip install "hybrid-engine[torch]" installs it' in done.stderr.splitlines()[-1]
