"""Ranks learn together what one process learns, to the byte; what they cannot do is refused; a failure is the same on all."""

import json
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid import Pipeline
from hybrid.engine import Embedding, Engine
from hybrid.mpi.engine import ranked
from hybrid.readout import FullReadout
from hybrid.trunk.torch import TorchTrunk
from tests.support.rank_engine import ALONE, HALF, MODELS, Uneven, diverging, go_on, learned, made, said, train
from tests.support.ranks import ended, started
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, engine
from tests.support.torch_engine import WIDTH, adam
from tests.support.torch_engine import engine as torch_engine
from tests.support.toys.linear import LinearTrunk

RANKS = "tests.support.rank_engine"
TWO = ranked(SimpleNamespace(size=2, rank=0, greatest=lambda *numbers: numbers))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The folder in which one process has trained all models, and what it found."""
    folder = tmp_path_factory.mktemp("ranks")
    return folder, {model: train(model, folder / model / ALONE) for model in MODELS}


def test_ranks_learn_what_one_process_does(alone):
    """What they find, what they save, and what goes on from either."""
    folder, expected = alone
    assert ended(started("train", str(folder), *expected, ranks=3, module=RANKS), 480) == (0, "", "")
    for model, whole in expected.items():
        resumed = whole | {"losses": whole["losses"][HALF:]}
        for rank in range(3):
            assert json.loads((folder / f"{model}.3.{rank}.json").read_text()) == [whole, resumed], (model, rank)
        for part in ("half", "end"):
            ours, theirs = (folder / model / who / part / "checkpoint.json" for who in ("3", ALONE))
            assert ours.read_bytes() == theirs.read_bytes()
        assert go_on(model, folder / model / "3" / "half") == resumed


def test_a_span_crosses_before_backward_of_the_layers_before_it_ends(tmp_path):
    losses = learned(*made("overlapped"))
    assert ended(started("spans", str(tmp_path), ranks=2, module=RANKS), 240) == (0, "", "")
    for rank in range(2):
        found, noted = json.loads((tmp_path / f"{rank}.json").read_text())
        assert found == losses
        at = {(stage, tick): (start, end) for _, stage, tick, _, start, end in noted}
        first = [tick for stage, tick in at if stage == "backward 0"]  # a short batch leaves rank 1 without any
        assert len(first) >= len(Uneven.sizes) - 2
        for tick in first:
            begun, over = at["gradient 0 to all", tick]
            assert at["backward 0", tick][1] <= begun and over <= at["backward 1", tick][1], (rank, tick)
            assert over <= at["gradient 1 to all", tick][0] <= at["update", tick][0]


def test_a_failure_is_the_same_on_all_ranks(tmp_path):
    (tmp_path / "file").write_text("taken")
    assert ended(started("failures", str(tmp_path), ranks=2, module=RANKS), 120) == (0, "", "")
    first, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert other == first
    assert first["diverging"] == first["diverging, overlapped"] == said(diverging(None, False))
    assert first["diverging"][0] == "FloatingPointError" and first["diverging"][1].startswith("tick 1: ")
    assert first["unlike"][1].startswith("ranks: found engines made of different arguments, expected the same")
    assert first["unsaved"][0] == "OSError" and "file" in first["unsaved"][1]


def linear():
    embedding = Embedding(CLASSES, 4, per_example=CONTEXT)
    return Engine(
        embedding,
        LinearTrunk(12, 6),
        FullReadout(CLASSES, 6, batch=BATCH),
        pipeline=Pipeline(micro_batches=2, route=TWO),
    )


REFUSED = [
    (lambda: engine(trunk=False, micro_batches=2, route=TWO), "ranks: found 2 and no trunk, expected one"),
    (lambda: engine(micro_batches=1, route=TWO), "micro_batches: found 1 with 2 ranks, expected 2 at least"),
    (lambda: engine(micro_batches=2, delay=1, route=TWO), "delay: found 1 with 2 ranks, expected 0"),
    (
        lambda: torch_engine(micro_batches=2, route=TWO),
        "ranks: found 2, expected 1: the module keeps 1.running_mean, which",
    ),
    (linear, "ranks: found 2, expected 1: the trunk has no gradient that ranks could add"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_ranks_cannot_do_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_threads_of_pytorch_are_the_same_on_all_ranks_or_said():
    """Its last bits depend on them."""
    told = []
    ranks = SimpleNamespace(size=2, rank=0, greatest=lambda *numbers: told.append(numbers[0]) or numbers)
    for own in (None, 1):
        for threads in (1, 2):
            trunk = TorchTrunk(torch.nn.Linear(WIDTH, 6), WIDTH, 6, optimiser=adam, threads=own)
            torch_engine(trunk=trunk, micro_batches=2, route=ranked(ranks), threads=threads)
    assert told[0] != told[1] and told[2] == told[3]
