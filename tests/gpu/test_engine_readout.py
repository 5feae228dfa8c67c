"""A readout beside its trunk on the device: the numbers of the CPU, the same bytes in any order, refusals, the command line."""

import functools
import itertools

import numpy as np
import pytest

from hybrid import backend
from hybrid.cli import main
from hybrid.engine import Engine
from hybrid.readout import FullReadout, HeadReadout, TreeReadout
from hybrid.readout.split_tree import SplitTreeReadout
from tests import cudasim
from tests.support.small_engine import BATCH, Feed, assert_same_bits, engine, parameters


@pytest.fixture
def cuda(gpu):
    """The name of the device; under simulation its asynchronous work runs in an order drawn from a seed."""
    yield "cuda:0"
    if gpu.simulated:
        cudasim.fail("")


MADE = {
    "tree": TreeReadout,
    "split": functools.partial(TreeReadout, split=9),
    "device split": functools.partial(TreeReadout, split=9, split_tail="device"),
    "full": FullReadout,
    "head": functools.partial(HeadReadout, head=7, clusters=3),
}


def beside(kind="tree", readout_device="cuda:0", **options):
    """The engine of the other tests, its readout placed anew; "split": a tree whose first 9 nodes are placed."""
    trained = engine("full" if kind == "full" else "tree", **({"device": "cuda:0"} | options))
    settings = {"batch": BATCH, "rate": 0.05, "backend": backend.choose(readout_device)}
    readout = MADE[kind](Feed.counts, trained.readout.width, **settings)
    settings = {name: getattr(trained, name) for name in ("threads", "micro_batches", "delay", "overlap", "decay")}
    return Engine(trained.embedding, trained.trunk, readout, device=trained.dense.name, **settings)


def run(trained, ticks=12, **feed):
    return [tick.loss for tick in trained.run(Feed(ticks, **feed))], parameters(trained)


@pytest.mark.parametrize("bags", [False, True])
@pytest.mark.parametrize("kind", MADE)
def test_beside_the_trunk_the_numbers_are_those_of_the_cpu(cuda, kind, bags):
    found, expected = beside(kind, bags=bags), beside(kind, "cpu", bags=bags, device="cpu")
    losses, arrays = run(found, bags=bags)
    others, wanted = run(expected, bags=bags)
    np.testing.assert_allclose(losses, others, rtol=1e-5)
    for name, array in wanted.items():
        np.testing.assert_allclose(arrays[name], array, rtol=1e-3, atol=1e-5, err_msg=name)
    assert found.evaluate(Feed(2, bags=bags)) == pytest.approx(expected.evaluate(Feed(2, bags=bags)), rel=1e-5)
    if not bags:
        ids = Feed(1)[0].ids
        np.testing.assert_allclose(found.hidden(ids), expected.hidden(ids), rtol=1e-3, atol=1e-5)
        for one, other in zip(found.best(ids, 3), expected.best(ids, 3), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3)


@pytest.mark.parametrize("kind", ["tree", "split", "full", "head"])
@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("micro_batches", [3])
def test_beside_the_trunk_overlapped_equals_serial_bit_for_bit(gpu, cuda, kind, delay, micro_batches):
    options = {"delay": delay, "micro_batches": micro_batches}
    losses, expected = run(beside(kind, overlap=False, **options))
    for seed in range(4 if gpu.simulated else 3):
        if gpu.simulated:
            cudasim.seed(seed)
        others, found = run(beside(kind, **options))
        assert others == losses
        assert_same_bits(found, expected)


@pytest.mark.parametrize("places", [("cuda:0", "cuda:0"), ("cpu", "cuda:0"), ("cuda:0", "cpu")])
@pytest.mark.parametrize("kind", ["tree", "split", "full"])
@pytest.mark.parametrize("delay", [1])
def test_a_checkpoint_goes_on_with_the_readout_on_either_device(cuda, tmp_path, kind, delay, places):
    first, second = places
    options = {"delay": delay, "micro_batches": 2}
    _, expected = run(beside(kind, first, **options), 20)
    begun = beside(kind, first, **options)
    list(itertools.islice(begun.run(Feed(20)), 7))
    begun.save(tmp_path / "checkpoint")
    resumed, _ = Engine.load(tmp_path / "checkpoint", device=cuda, readout_device=second)
    here, there = {"hidden", "grad"}, {"target", "weight", "losses"}
    crossing = here if second == "cpu" else here | there if kind in ("split", "head") else there
    assert set(resumed.readout.buffers().crossing) == crossing
    _, found = run(resumed, 20)
    if first == second:
        assert_same_bits(found, expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-3, atol=1e-5, err_msg=name)
    home, _ = Engine.load(tmp_path / "checkpoint", device="cpu")
    assert_same_bits(parameters(home), parameters(begun))


@pytest.mark.parametrize("kind", ["tree", "split"])
def test_beside_the_trunk_saving_and_asking_between_two_ticks_changes_nothing(cuda, tmp_path, kind):
    plain, saved = beside(kind, delay=1), beside(kind, delay=1)
    list(plain.run(Feed(10)))
    for _ in saved.run(Feed(10)):
        saved.save(tmp_path / "checkpoint")
        saved.evaluate(Feed(2))
        saved.best(Feed(1)[0].ids, 3)
    assert_same_bits(parameters(plain), parameters(saved))


def test_hidden_vectors_stay_beside_the_readout(cuda):
    trained = beside(micro_batches=2)
    list(trained.run(Feed(5)))
    stages = {(interval.queue, interval.stage) for interval in trained.trace.recent}
    assert stages == {
        ("feed", "feed"),
        ("sparse", "gather"),
        ("copy in", "x in"),
        ("dense", "forward"),
        ("copy in", "target in"),
        ("dense", "readout"),
        ("copy out", "losses out"),
        ("sparse", "loss"),
        ("dense", "backward"),
        ("copy out", "x_grad out"),
        ("sparse", "scatter"),
        ("dense", "update"),
    }
    slot = trained.route.slot(4, 12)
    assert set(slot._buffers) == {
        *("ids", "x", "x_grad", "target", "target_at", "weight", "weight_dev", "losses"),
        *("x_dev", "x_grad_dev", "target_dev", "losses_dev", "hidden_dev", "grad_dev", "inner_dev", "inner_grad_dev"),
    }


def test_the_tail_of_a_split_tree_is_before_its_top(cuda):
    trained = beside("split")
    list(trained.run(Feed(5)))
    stages = {(interval.queue, interval.stage) for interval in trained.trace.recent}
    assert {("sparse", "readout"), ("dense", "top"), ("copy in", "grad in"), ("copy out", "losses out")} < stages


@pytest.mark.parametrize("kind", ["tree", "split", "full"])
def test_beside_the_trunk_nothing_is_allocated_after_the_first_ticks(gpu, cuda, kind):
    if not gpu.simulated:
        pytest.skip("the simulated driver counts allocations")
    ticks = beside(kind, micro_batches=2, delay=1).run(Feed(12))
    list(itertools.islice(ticks, 3))
    before = cudasim.counts()
    list(itertools.islice(ticks, 6))
    after = cudasim.counts()
    assert (after["alloc"], after["host_alloc"]) == (before["alloc"], before["host_alloc"])
    assert after["launch"] > before["launch"]
    list(ticks)


@pytest.mark.parametrize("kind", ["full", "split"])
@pytest.mark.parametrize("delay", [0, 1])
def test_a_loss_that_is_not_finite_names_its_tick(cuda, delay, kind):
    trained = beside(kind, delay=delay, decay=False)
    ticks = trained.run(Feed(12))
    list(itertools.islice(ticks, 3))
    next(iter(trained.readout.parameters().values()))[0] = np.nan
    trained.readout.send()
    with pytest.raises(FloatingPointError, match=r"tick 3: loss\[0\]: found nan.*the rates may be too high"):
        list(ticks)
    assert trained.tick == 3


BESIDE_WHAT = [
    (
        lambda: beside(device="cpu"),
        'on "cuda:0", expected one on the CPU or on the trunk.s device, "cpu"; make it without',
    ),
    (lambda: beside(device="cuda:0+tf32"), 'or give the engine device="cuda:0"'),
    (lambda: beside(trunk=False), "without a trunk the hidden vectors are rows"),
]


@pytest.mark.parametrize("make, message", BESIDE_WHAT)
def test_a_readout_beside_another_trunk_is_refused(cuda, make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.fixture
def command(tmp_path):
    """A short `train language`, but for --out."""
    text = tmp_path / "text"
    text.write_text("the cat sat on the mat and the dog sat on the cat\n" * 40)
    sizes = {"width": 4, "hidden": 6, "readout-width": 5, "epochs": 2, "batch": 32, "threads": 2}
    small = [item for name, value in sizes.items() for item in (f"--{name}", str(value))]
    return ["train", "language", "--text", str(text), *small, "--device", "cuda:0"]


@pytest.mark.parametrize("part", ["readout", "rows"])
def test_the_command_line_puts_a_part_on_the_device_and_keeps_it_there(cuda, command, tmp_path, capsys, part):
    out, text = tmp_path / "run", command[3]
    assert main([*command, "--out", str(out), f"--{part}-device", cuda]) == 0
    for file in ("run.json", "report.json"):
        assert f'"{part}_device": "cuda:0"' in (out / file).read_text()
    assert main(["export", str(out), str(tmp_path / "vectors")]) == 0
    assert main(["eval", str(out), "--text", text]) == 0
    for epochs, place in (("3", []), ("4", [f"--{part}-device", "cpu"])):
        assert main(["train", "--resume", str(out), "--epochs", epochs, *place]) == 0
    assert f'"{part}_device": "cpu"' in (out / "report.json").read_text()
    capsys.readouterr()
    assert main(["train", "words", "--text", text, f"--{part}-device", cuda]) == 2
    assert f"--{part}-device: not used by `train words" in capsys.readouterr().err
    assert main([*command[:-1], "cpu", "--out", str(tmp_path / "other"), f"--{part}-device", cuda]) == 2
    assert f"make it without backend (--{part}-device cpu)" in capsys.readouterr().err


def test_a_sampled_readout_is_refused_on_the_device(cuda, command, tmp_path, capsys):
    assert main([*command, "--out", str(tmp_path / "other"), "--readout", "sampled", "--readout-device", cuda]) == 2
    assert 'found "cuda:0", expected "cpu": a sampled readout' in capsys.readouterr().err


def test_the_command_line_splits_a_tree_and_keeps_the_split(cuda, command, tmp_path, capsys):
    out = tmp_path / "run"
    assert main([*command, "--out", str(out), "--readout-device", cuda, "--split", "3"]) == 0
    assert '"split": 3' in (out / "run.json").read_text()
    resumed, _ = Engine.load(out / "checkpoint", device=cuda, readout_device=cuda)
    assert type(resumed.readout) is SplitTreeReadout and resumed.readout.split == 3
    assert main(["train", "--resume", str(out)]) == 0
    capsys.readouterr()
    assert main(["train", "--resume", str(out), "--split", "2"]) == 2
    assert "--split: --resume goes on with the options" in capsys.readouterr().err
    assert main([*command, "--out", str(tmp_path / "other"), "--readout-device", cuda, "--split", "99"]) == 2
    assert "split: found 99, expected a whole number from 0 to" in capsys.readouterr().err


class Weighted(Feed):
    """Examples that count 0, 1 and 2, in turn, but for every third batch, which has no weights."""

    def __getitem__(self, tick):
        weight = (np.arange(BATCH) % 3).astype(np.float32)
        return super().__getitem__(tick)._replace(weight=weight if tick % 3 else None)


def test_weights_reach_the_device(cuda):
    found = []
    for place in ("cpu", cuda):
        host = engine("full", device=cuda)
        readout = FullReadout(Feed.counts, 6, batch=BATCH, rate=0.05, backend=backend.choose(place))
        trained = Engine(host.embedding, host.trunk, readout, device=cuda, threads=2, micro_batches=2, overlap=True)
        found.append([tick.loss for tick in trained.run(Weighted(6))])
    np.testing.assert_allclose(*found, rtol=1e-4)
