"""Ranks that train an engine together, each beside the same engine in one process; arguments: what to do, a folder, and more.

    equal FOLDER MODEL...   losses, parameters, answers and checkpoints are those of one process; either goes on from its own
    failures FOLDER         all ranks say the same

What does not hold is raised, which ends all ranks.
"""

import math
import sys
from pathlib import Path

import numba
import numpy as np

from hybrid import SGD, Adagrad, AdamW, Pipeline
from hybrid.engine import Embedding, Engine
from hybrid.engine.embedding import Inputs
from hybrid.feeds import Batch
from hybrid.mpi.engine import ranked
from hybrid.mpi.group import Group
from hybrid.readout import FullReadout
from hybrid.trunk.mlp import MLP
from tests import cudasim
from tests.cudasim import cublas
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, Feed, engine, through

HALF = 4


class Uneven(Feed):
    """Some batches are short: they have fewer examples than micro-batches, or one."""

    sizes = (16, 16, 7, 16, 3, 16, 1, 16)
    whole = 1

    def __init__(self):
        super().__init__(ticks=len(self.sizes))

    def __getitem__(self, tick):
        batch, size = super().__getitem__(tick), self.sizes[tick] // self.whole * self.whole or self.whole
        return self._cut(batch, size)

    def _cut(self, batch, size):
        return Batch(batch.ids[: size * CONTEXT], None, batch.target[:size])


class Bags(Uneven):
    """The same in bags."""

    def _cut(self, batch, size):
        return Batch(batch.ids[: size * CONTEXT], np.arange(0, size * CONTEXT + 1, CONTEXT), batch.target[:size])


class Words(Uneven):
    """Sequences of four words, and the word after each."""

    whole, most_ids = 4, BATCH

    def _cut(self, batch, size):
        return Batch(batch.ids[:size], None, batch.target[:size])


class Points(Uneven):
    """Numbers in place of ids."""

    rows, width, most_ids = 0, 5, 0

    def _cut(self, batch, size):
        x = np.random.default_rng(int(batch.ids[0])).normal(size=(size, self.width)).astype(np.float32)
        return Batch(None, None, batch.target[:size], None, None, x)


def deep(**options):
    """Rows, a deep trunk with all that it may have, and a softmax."""
    settings = {"dropout": 0.3, "optimiser": AdamW(clip=1.0)}
    rows = Embedding(CLASSES, 4, per_example=CONTEXT, spread=0.3, optimiser=Adagrad(0.05))
    readout = FullReadout(Feed.counts, 6, batch=BATCH, optimiser=SGD(0.05))
    return Engine(rows, MLP((12, 12, 12, 350, 6), "relu", **settings), readout, **through(options))


def numbers(**options):
    """No rows."""
    readout = FullReadout(CLASSES, 6, batch=BATCH, optimiser=SGD(0.05))
    return Engine(Inputs(5), MLP((5, 9, 6), optimiser=SGD(0.1)), readout, **through(options))


def attention(**options):
    """A trunk of PyTorch."""
    from hybrid.trunk.attention import AttentionTrunk

    adam = AdamW(0.01, betas=(0.9, 0.98), decay=0.0, clip=1.0)
    trunk = AttentionTrunk(4, 6, length=4, blocks=1, threads=1, optimiser=adam)
    rows = Embedding(CLASSES, 4, spread=0.3, optimiser=SGD(0.05))
    readout = FullReadout(Feed.counts, 6, batch=BATCH, optimiser=SGD(0.05))
    return Engine(rows, trunk, readout, **through(options))


MODELS = {
    "tree": (engine, Uneven, {"micro_batches": 7}),
    "full": (lambda **options: engine("full", **options), Uneven, {"micro_batches": 4}),
    "sampled": (lambda **options: engine("sampled", bags=True, **options), Bags, {"micro_batches": 5}),
    "deep": (deep, Uneven, {"micro_batches": 6}),
    "overlapped": (deep, Uneven, {"micro_batches": 6, "overlap": True, "threads": 2}),
    "numbers": (numbers, Points, {"micro_batches": 4}),
    "attention": (attention, Words, {"micro_batches": 4}),
}
ON_GPU = {
    f"{model} on a GPU": (*MODELS[model][:2], MODELS[model][2] | {"device": "cuda:0"})
    for model in ("tree", "overlapped", "numbers")
}


def made(model, ranks=None):
    """An engine of a kind, and its feed."""
    make, feed, options = (MODELS | ON_GPU)[model]
    return make(**route(ranks), **({"threads": 1, "device": "cpu"} | options)), feed()


def route(ranks):
    """The argument of an engine that ranks share; None: one process has it."""
    return {"route": ranked(ranks)} if ranks else {}


def learned(trained, feed, stop=None):
    """The losses of the ticks up to `stop`, or the end, to the last bit."""
    losses = []
    for tick in trained.run(feed):
        losses.append(tick.loss.hex())
        if trained.tick == stop:
            break
    return losses


def answers(trained, feed):
    """All that an engine knows, as bytes, and what it answers."""
    batch = feed[0]
    asked = {"ids": batch.ids, "bag_at": batch.bag_at, "x": batch.x}
    asked = {name: value for name, value in asked.items() if value is not None}
    arrays = trained.hidden(**asked), *trained.best(k=3, **asked), trained.scores(**asked)
    found = {name: array.tobytes() for name, array in trained.parameters().items()}
    return found, [array.tobytes() for array in arrays], trained.evaluate(feed).hex(), trained.size


def equal(folder, *models):
    group = Group()
    if ON_GPU.keys() & set(models):
        cublas.use()
        cudasim.seed(group.rank)  # each in an order of its own
    numba.set_num_threads(1)
    for model in models:
        trained = [made(model, ranks) for ranks in (group, None)]
        folders = [folder / model / "shared", folder / model / f"alone {group.rank}"]
        _same(model, [learned(*one, HALF) for one in trained])
        _saved(model, [one for one, _ in trained], [where / "half" for where in folders])
        losses = [learned(*one) for one in trained]
        _same(model, losses)
        _same(model, [answers(*one) for one in trained])
        _saved(model, [one for one, _ in trained], [where / "end" for where in folders])
        # Ranks go on from what one process has saved, and one process from what ranks have
        resumed = [_loaded(model, folders[1], group), _loaded(model, folders[0], None)]
        _same(model, [losses[0], *(learned(*one) for one in resumed)])
        _same(model, [answers(*one) for one in (*resumed, trained[0])])
    assert not ON_GPU.keys() & set(models) or cudasim.problems() == []


def _loaded(model, folder, ranks):
    _, feed, options = (MODELS | ON_GPU)[model]
    machine = {"threads": 1, "device": options.get("device", "cpu")}
    return Engine.load(folder / "half", **machine, **route(ranks))[0], feed()


def _saved(model, engines, folders):
    for one, folder in zip(engines, folders, strict=True):
        one.save(folder, {"of": model})
    _same(model, [(folder / "checkpoint.json").read_bytes() for folder in folders])


def _same(model, found):
    assert all(one == found[0] for one in found), model


def diverging(ranks, overlap):
    """The trunk's weights leave the numbers in the first tick."""
    trained = engine("full", rate=0.1, threads=2, overlap=overlap, device="cpu", micro_batches=4, **route(ranks))
    trained.trunk.optimiser.rate = math.inf
    return lambda: list(trained.run(Uneven()))


def unlike(ranks):
    """Rank 1 draws other weights."""
    base = engine()
    parts = base.embedding, MLP([12, 10, 6], seed=ranks.rank), base.readout
    shared = Pipeline(micro_batches=4, route=ranked(ranks))
    return lambda: Engine(*parts, threads=1, device="cpu", pipeline=shared)


def unsaved(ranks, file):
    """A file stands where the folder would be."""
    return lambda: made("tree", ranks)[0].save(file)


def said(work):
    """What an error says, with its notes."""
    try:
        work()
    except (ValueError, OSError, FloatingPointError) as error:
        return [type(error).__name__, str(error), getattr(error, "__notes__", [])]
    return []


def failures(folder):
    ranks = Group()
    expected = said(diverging(None, False))
    assert expected[0] == "FloatingPointError" and expected[1].startswith("tick 1: ")
    for overlap in (False, True):
        assert said(diverging(ranks, overlap)) == expected
    kind, message, _ = said(unlike(ranks))
    assert message.startswith("ranks: found engines made of different arguments, expected the same"), (kind, message)
    (folder / f"taken {ranks.rank}").write_text("by a file")
    kind, message, _ = said(unsaved(ranks, folder / "taken 0"))
    assert kind == "OSError" and "taken 0" in message, (kind, message)


def main() -> None:
    what, folder, *models = sys.argv[1:]
    next(work for work in (equal, failures) if work.__name__ == what)(Path(folder), *models)


if __name__ == "__main__":
    main()
