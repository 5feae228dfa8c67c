"""Ranks learn together what one process learns, to the byte; what they cannot do is refused; a failure is the same on all."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid import Pipeline
from hybrid.engine import Embedding, Engine
from hybrid.mpi.engine import ranked
from hybrid.readout import FullReadout
from hybrid.trunk.torch import TorchTrunk
from tests.support.rank_engine import MODELS
from tests.support.ranks import succeed
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, engine
from tests.support.torch_engine import WIDTH, adam
from tests.support.torch_engine import engine as torch_engine
from tests.support.toys.linear import LinearTrunk

RANKS = "tests.support.rank_engine"
TWO = ranked(SimpleNamespace(size=2, rank=0, greatest=lambda *numbers: numbers))


def test_ranks_learn_what_one_process_does(tmp_path):
    """What they find, what they save, and what goes on from either."""
    succeed(RANKS, "equal", tmp_path, *MODELS, ranks=3, limit=480)


def test_a_failure_is_the_same_on_all_ranks(tmp_path):
    succeed(RANKS, "failures", tmp_path, ranks=2)


def linear():
    embedding, readout = Embedding(CLASSES, 4, per_example=CONTEXT), FullReadout(CLASSES, 6, batch=BATCH)
    return Engine(embedding, LinearTrunk(12, 6), readout, pipeline=Pipeline(micro_batches=2, route=TWO))


REFUSED = [
    (lambda: engine(trunk=False, micro_batches=2, route=TWO), "ranks: found 2 and no trunk, expected one"),
    (lambda: engine(micro_batches=1, route=TWO), "micro_batches: found 1 with 2 ranks, expected 2 at least"),
    (lambda: torch_engine(micro_batches=2, route=TWO), "ranks: found 2, expected 1: the module keeps 1.running_mean"),
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
