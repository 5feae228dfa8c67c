"""Rows and readout beside their trunk on the device: what crosses, what is refused, and the command line."""

import itertools

import numpy as np
import pytest

from hybrid import Engine, TreeReadout, backend
from hybrid.cli import main
from hybrid.engine.embedding import Embedding
from tests.gpu.test_engine import beside
from tests.support import points
from tests.support.placed_engine import Ragged, placed
from tests.support.ruled_engine import ruled
from tests.support.small_engine import BATCH, CLASSES, Feed, engine


@pytest.mark.parametrize(
    ("name", "crossing"),
    [
        ("tree", {"hidden", "grad"}),
        ("rows, bags", {"hidden", "grad"}),
        ("beside: tree", {"target", "weight", "losses"}),
        ("beside: head", {"hidden", "grad", "target", "weight", "losses"}),
    ],
)
def test_what_crosses_is_what_must(cuda, name, crossing):
    if name.startswith("beside"):
        trained, feed = beside(name.split()[1], cuda, micro_batches=2), Feed(5)
    elif name == "tree":
        trained, feed = engine(device=cuda, micro_batches=2), Feed(5)
    else:
        trained, feed = placed(bags=True, micro_batches=2), Ragged(5)
    list(trained.run(feed))
    assert set(trained.readout.buffers().crossing) == crossing
    assert trained.cores.line() == "dense and sparse stages overlapped"
    assert ("x" in trained.route.slot(4, 12)._buffers) == (not name.startswith("rows"))


@pytest.mark.parametrize("kind", ["full", "head"])
def test_a_loss_that_is_not_finite_names_its_tick(cuda, kind):
    trained = beside(kind, cuda, schedule="constant")
    ticks = trained.run(Feed(12))
    list(itertools.islice(ticks, 3))
    next(iter(trained.readout.parameters().values()))[0] = np.nan
    trained.readout.send()
    with pytest.raises(FloatingPointError, match=r"tick 3: loss\[0\]: found nan; the rates may be too high"):
        list(ticks)
    assert trained.tick == 3


def test_a_bad_id_is_refused_before_it_reaches_the_device(cuda):
    with pytest.raises(IndexError, match=r"ids\[2\]: found 30, expected 0 to 29"):
        placed().hidden([1, 2, 30])


def test_rows_that_were_filled_in_are_sent(cuda):
    embedding = placed().embedding
    embedding.table[:] = 7
    assert (embedding.parameters()["table"] < 1).all()  # fetched again: what is not sent is lost
    embedding.table[:] = 7
    embedding.send()
    assert (embedding.parameters()["table"] == 7).all()


def test_rows_are_added_on_the_device(cuda):
    embedding = placed().embedding
    before = embedding.vectors().copy()
    embedding.add_rows(4, 2)
    np.testing.assert_array_equal(np.delete(embedding.vectors(), np.r_[2:6], 0), before)
    np.testing.assert_array_equal(embedding.vectors()[2:6], Embedding(CLASSES + 4, 4, spread=0.3).table[CLASSES:])


def test_numbers_of_the_feed_are_copied_to_the_device(cuda):
    engines = [points.engine(True, overlap=True, device=device) for device in ("cpu", cuda)]
    losses = [[tick.loss for tick in each.run(points.Points(True))] for each in engines]
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_what_is_kept_beside_is_not_counted_as_learned(cuda):
    sizes = {name: ruled(optimiser=name).size for name in ("sgd", "row-adagrad", "adagrad")}
    assert len(set(sizes.values())) == 1


def without_trunk():
    embedding = Embedding(CLASSES, 6, backend=backend.choose("cuda:0"))
    return Engine(embedding, None, TreeReadout(Feed.counts, 6, batch=BATCH))


def for_word2vec():
    return Embedding(CLASSES, 6, backend=backend.choose("cuda:0"), bags="undivided")


def readout_without_trunk():
    readout = TreeReadout(Feed.counts, 12, batch=BATCH, backend=backend.choose("cuda:0"))
    return Engine(engine("tree", trunk=False).embedding, None, readout, device="cuda:0")


REFUSED = [
    (lambda: placed(trunk="cpu"), 'embedding: found one on "cuda:0", expected one on the CPU or on the trunk.s device'),
    (lambda: placed(trunk="cuda:0+tf32"), r'or give the engine device="cuda:0" \(--device\)'),
    (without_trunk, r"embedding: .* without a trunk the hidden vectors are rows.*--rows-device cpu"),
    (for_word2vec, 'bags: found "undivided" with rows on cuda:0'),
    (
        lambda: beside("tree", "cuda:0", device="cpu"),
        'on "cuda:0", expected one on the CPU or on the trunk.s device, "cpu"',
    ),
    (lambda: beside("tree", "cuda:0", device="cuda:0+tf32"), 'or give the engine device="cuda:0"'),
    (readout_without_trunk, "without a trunk the hidden vectors are rows"),
]


@pytest.mark.parametrize("make, message", REFUSED)
def test_parts_beside_another_trunk_are_refused(cuda, make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.fixture
def command(tmp_path):
    """A short `train language`, but for --out."""
    text = tmp_path / "text"
    text.write_text("the cat sat on the mat and the dog sat on the cat\n" * 40)
    sizes = {"width": 4, "hidden": 6, "readout-width": 5, "epochs": 2, "batch": 32, "threads": 2}
    small = [item for name, value in sizes.items() for item in (f"--{name}", str(value))]
    return ["train", "language", "--text", str(text), *small, "--readout", "tree", "--device", "cuda:0"]


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
