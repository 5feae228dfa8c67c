"""Engines that ranks train, each a little model of its kind; every rank keeps what it found, for the tests to compare.

    rank_engine.py train FOLDER MODEL...   trains each model, saving it half-way and at the end, and goes on from FOLDER/alone
    rank_engine.py spans FOLDER            losses and trace of backward that waits in its last layers until a span has crossed
    rank_engine.py failures FOLDER         what each failure said

What a rank found is in FOLDER/MODEL.RANKS.RANK.json, or FOLDER/RANK.json; checkpoints are in FOLDER/MODEL/RANKS.
"""

import hashlib
import json
import math
import sys
import time
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
ALONE = "alone"


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
    settings = {"dropout": 0.3, "layer_norm": True, "residual": True, "optimiser": AdamW(clip=1.0)}
    rows = Embedding(CLASSES, 4, per_example=CONTEXT, spread=0.3, optimiser=Adagrad(0.05))
    readout = FullReadout(Feed.counts, 6, batch=BATCH, optimiser=SGD(0.05))
    return Engine(rows, MLP((12, 12, 12, 350, 6), "gelu", **settings), readout, **through(options))


def numbers(**options):
    """No rows."""
    return Engine(
        Inputs(5),
        MLP((5, 9, 6), optimiser=SGD(0.1)),
        FullReadout(CLASSES, 6, batch=BATCH, optimiser=SGD(0.05)),
        **through(options),
    )


def attention(**options):
    """A trunk of PyTorch."""
    from hybrid.trunk.attention import AttentionTrunk

    trunk = AttentionTrunk(
        4, 6, length=4, blocks=1, threads=1, optimiser=AdamW(0.01, betas=(0.9, 0.98), decay=0.0, clip=1.0)
    )
    rows, readout = (
        Embedding(CLASSES, 4, spread=0.3, optimiser=SGD(0.05)),
        FullReadout(Feed.counts, 6, batch=BATCH, optimiser=SGD(0.05)),
    )
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
    f"{model} on a GPU": (make, feed, options | {"device": "cuda:0"})
    for model, (make, feed, options) in MODELS.items()
    if model in ("tree", "overlapped", "numbers")
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


def told(trained, feed):
    """Digests of what an engine knows, and of what it answers."""
    batch = feed[0]
    asked = {"ids": batch.ids, "bag_at": batch.bag_at, "x": batch.x}
    asked = {name: value for name, value in asked.items() if value is not None}
    answers = [trained.hidden(**asked), *trained.best(k=3, **asked), trained.scores(**asked)]
    found = {name: _digest(array) for name, array in trained.parameters().items()}
    return found | {"answers": [_digest(answer) for answer in answers], "loss": trained.evaluate(feed).hex()}


def _digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def train(model, folder, ranks=None):
    """Half a run, a save, the other half, a save; returns what was found."""
    trained, feed = made(model, ranks)
    losses = learned(trained, feed, HALF)
    trained.save(folder / "half", {"of": model})
    losses += learned(trained, feed)
    trained.save(folder / "end")
    return {"losses": losses, "size": trained.size} | told(trained, feed)


def go_on(model, half, ranks=None):
    """From a save to the end."""
    _, feed, options = (MODELS | ON_GPU)[model]
    machine = {"threads": 1, "device": options.get("device", "cpu")}
    trained, feed = Engine.load(half, **machine, **route(ranks))[0], feed()
    return {"losses": learned(trained, feed), "size": trained.size} | told(trained, feed)


def diverging(ranks, overlap):
    """The trunk's weights leave the numbers in the first tick."""
    trained = engine("full", rate=0.1, threads=2, overlap=overlap, device="cpu", micro_batches=4, **route(ranks))
    trained.trunk.optimiser.rate = math.inf
    return lambda: list(trained.run(Uneven()))


def unlike(ranks):
    """Rank 1 draws other weights."""
    base = engine()
    trunk = MLP([12, 10, 6], seed=ranks.rank)
    return lambda: Engine(
        base.embedding,
        trunk,
        base.readout,
        threads=1,
        device="cpu",
        pipeline=Pipeline(micro_batches=4, route=ranked(ranks)),
    )


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


PATIENCE = 30.0  # seconds; where nothing crosses meanwhile, the trace says so


def crossed(trace, slot):
    """Whether the first span of a tick's gradient has crossed."""
    return any((i.stage, i.tick) == ("gradient 0 to all", slot.tick) for i in list(trace.recent))


def waiting(trained):
    """Let backward of whole layers be as it is, and the last span of each tick wait for the first."""
    fall, gradient = trained.trunk.falling, trained.route.gradient

    def falling(slot):
        for begin in fall(slot):
            end = time.monotonic() + PATIENCE
            while begin == 0 and gradient.is_last(slot) and not crossed(trained.trace, slot) and time.monotonic() < end:
                time.sleep(1e-3)
            yield begin

    trained.trunk.falling = falling


def failures(folder, ranks):
    return {
        "diverging": said(diverging(ranks, False)),
        "diverging, overlapped": said(diverging(ranks, True)),
        "unlike": said(unlike(ranks)),
        "unsaved": said(unsaved(ranks, folder / "file")),
    }


def spans(ranks):
    numba.set_num_threads(1)
    trained, feed = made("overlapped", ranks)
    waiting(trained)
    return [learned(trained, feed), list(trained.trace.recent)]


def train_all(folder, models, ranks):
    if ON_GPU.keys() & set(models):
        cublas.use()
        cudasim.seed(ranks.rank)  # each in an order of its own
    numba.set_num_threads(1)
    for model in models:
        found = [train(model, folder / model / str(ranks.size), ranks)]
        found.append(go_on(model, folder / model / ALONE / "half", ranks))
        found += [cudasim.problems()] if model in ON_GPU else []
        (folder / f"{model}.{ranks.size}.{ranks.rank}.json").write_text(json.dumps(found))


def main() -> None:
    what, folder, models, ranks = sys.argv[1], Path(sys.argv[2]), sys.argv[3:], Group()
    if what == "train":
        return train_all(folder, models, ranks)
    found = spans(ranks) if what == "spans" else failures(folder, ranks)
    (folder / f"{ranks.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
