"""What ranks cannot do is refused; a failure of a tick or a save is the same on all. (hybrid/engine/ranked/__init__.py)"""

import json
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid.engine import Embedding, Engine
from hybrid.engine.trunk.mlp import MLP
from hybrid.engine.trunk.torch import TorchTrunk
from hybrid.ranks.group import Group
from hybrid.readout import FullReadout
from hybrid.sharded.embedding import ShardedEmbedding
from tests.support.rank_engine_failures import diverging, diverging_shards, said
from tests.support.ranks import ended, started
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, engine
from tests.support.torch_engine import WIDTH, adam
from tests.support.torch_engine import engine as torch_engine
from tests.support.toys.linear import LinearTrunk

TWO = SimpleNamespace(size=2, rank=0, greatest=lambda *numbers: numbers)
GPU = SimpleNamespace(name="cuda:0", device=SimpleNamespace(host_memory=False))


def test_a_failure_is_the_same_on_all_ranks(tmp_path):
    (tmp_path / "file").write_text("taken")
    assert ended(started(str(tmp_path), ranks=3, module="tests.support.rank_engine_failures"), 120) == (0, "", "")
    first, *others = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(3))
    assert others == [first, first]
    assert first["diverging"] == first["diverging, overlapped"] == said(diverging(None, False))
    assert first["diverging"][0] == "FloatingPointError" and first["diverging"][1].startswith("tick 1: ")
    assert first["diverging in shards"] == said(diverging_shards(None))
    assert first["diverging in shards"][:1] == ["FloatingPointError"]
    assert (
        first["shards of others"][1]
        == "ranks: found 1, and the readout in shards of 3 ranks, expected those; pass their group"
    )
    assert first["unlike"][1].startswith("ranks: found engines made of different arguments, expected the same")
    assert first["unsaved"][0] == "OSError" and "file" in first["unsaved"][1]


def tied():
    rows, tree = ShardedEmbedding(Group(), CLASSES, 6), FullReadout(CLASSES, 6, batch=BATCH)
    return Engine(rows, MLP((6, 6)), tree, tied=True)


def linear():
    embedding = Embedding(CLASSES, 4, per_example=CONTEXT)
    return Engine(embedding, LinearTrunk(12, 6), FullReadout(CLASSES, 6, batch=BATCH), micro_batches=2, ranks=TWO)


REFUSED = [
    (lambda: engine(trunk=False, micro_batches=2, ranks=TWO), "ranks: found 2 and no trunk, expected one"),
    (lambda: engine(micro_batches=1, ranks=TWO), "micro_batches: found 1 with 2 ranks, expected 2 at least"),
    (lambda: engine(micro_batches=2, delay=1, ranks=TWO), "delay: found 1 with 2 ranks, expected 0"),
    (
        lambda: torch_engine(micro_batches=2, ranks=TWO),
        "ranks: found 2, expected 1: the module keeps 1.running_mean, which",
    ),
    (tied, "tied: found an embedding in shards, expected one that each rank has"),
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
            torch_engine(trunk=trunk, micro_batches=2, ranks=ranks, threads=threads)
    assert told[0] != told[1] and told[2] == told[3]
