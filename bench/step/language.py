"""A training step of a language model: rows -> MLP -> readout, ours and the same model in PyTorch."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.harness.measure import Work, append, measure, peer, show
from bench.step import softmax
from hybrid import SGD, Pipeline
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.engine.route import Route, routed
from hybrid.feeds import Batch
from hybrid.readout import FullReadout, HeadReadout, SampledReadout, TreeReadout
from hybrid.trunk.mlp import MLP

CONTEXT, WIDTH, HIDDEN, OUTPUTS = 4, 64, 256, 128
RATE = 0.01
READOUTS: dict[str, Any] = {"tree": TreeReadout, "full": FullReadout, "sampled": SampledReadout, "head": HeadReadout}
LARGE = 1024  # batch size from which the rate falls: gradients of a row or a node are summed
TURNS, EXAMPLES = 16, 8192  # minimum number of batches, and of examples, before the data repeats
CHUNK = 256  # examples whose logits PyTorch holds, in a chunked softmax


class ZipfFeed:
    """Random contexts and targets with frequencies proportional to 1 / rank; any number of ticks."""

    epochs = 1

    def __init__(self, classes: int, batch: int):
        self.classes = self.rows = classes
        self.batch, self.most_ids = batch, batch * CONTEXT
        self.counts = np.maximum(1e9 / np.arange(1, classes + 1), 1).astype(np.int64)
        self.ticks_per_epoch = 10**9
        share = np.cumsum(self.counts) / self.counts.sum()
        rng = np.random.default_rng(1)
        self._batches: list[Batch] = []
        for _ in range(max(TURNS, EXAMPLES // batch)):
            ids = np.searchsorted(share, rng.random((batch, CONTEXT + 1))).astype(np.int32)
            self._batches.append(Batch(ids[:, :-1].reshape(-1), None, np.ascontiguousarray(ids[:, -1])))

    def __len__(self):
        return self.ticks_per_epoch

    @property
    def turns(self) -> int:
        """The number of batches before the data repeats."""
        return len(self._batches)

    def __getitem__(self, tick):
        return self._batches[tick % self.turns]

    def describe(self):
        """Describes the feed."""
        return {"kind": "zipf", "classes": self.classes, "batch": self.batch}


def run(arguments) -> None:
    """Measures full softmax and tree, at 10 thousand and 100 thousand classes."""
    sizes = [(1_000, 512)] if arguments.quick else [(10_000, 512), (100_000, 512)]
    for classes, batch in sizes:
        feed = ZipfFeed(classes, batch)
        for readout in ("tree", "full"):
            steps = 2 if readout == "full" and classes > 10_000 else 16
            rivals = [ours(feed, readout, steps, arguments.threads)]
            if peer("torch"):
                kind = "softmax" if readout == "full" else "adaptive softmax"
                theirs = of_torch(feed, kind, steps, arguments.threads)
                theirs.params["readout"] = readout  # the readout of ours in the same table
                rivals.append(theirs)
            records = measure(rivals, arguments.repeat)
            show(records)
            append(arguments.json, records)


def make_engine(
    feed: ZipfFeed,
    readout: str,
    threads: int,
    width: int = OUTPUTS,
    *,
    micro_batches: int = 2,
    overlap: bool | None = None,
    route: Callable[[Engine], Route] = routed,
) -> Engine:
    """Builds the model under one of READOUTS; micro_batches, overlap, route: see Pipeline."""
    rate = RATE * min(1.0, LARGE / feed.batch)
    return Engine(
        Embedding(feed.rows, WIDTH, per_example=CONTEXT, spread=0.1, optimiser=SGD(rate)),
        MLP([CONTEXT * WIDTH, HIDDEN, width], optimiser=SGD(rate)),
        READOUTS[readout](feed.counts, width, batch=feed.batch, optimiser=SGD(rate)),
        schedule="constant",
        threads=threads,
        pipeline=Pipeline(micro_batches=micro_batches, overlap=overlap, route=route),
    )


def ours(
    feed: ZipfFeed, readout: str, steps: int, threads: int, width: int = OUTPUTS, overlap: bool | None = None
) -> Work:
    """Returns our work; a turn is `steps` steps; see make_engine."""
    engine = make_engine(feed, readout, threads, width, overlap=overlap)
    ticks = engine.run(feed)
    losses: list[float] = []

    def step():
        losses.extend(next(ticks).loss for _ in range(steps))

    def check():
        # At first all classes of the full softmax are equally likely.
        while len(losses) <= feed.turns:
            step()
        first, again = losses[0], losses[feed.turns]
        if readout == "full" and abs(first - math.log(feed.classes)) > 0.02:
            raise AssertionError(f"first loss {first}, expected log V = {math.log(feed.classes)}")
        if not (math.isfinite(again) and (again < first or readout == "sampled")):  # it draws other negatives
            raise AssertionError(f"the loss of the first batch does not fall: {losses}")

    params = {"classes": feed.classes, "batch": feed.batch, "width": width} | {"readout": readout}
    warm = 2 if steps > 2 or overlap is not None else 12  # the engine's first 24 ticks measure how to use the cores
    return Work(
        "language.step", "ours", params, steps * feed.batch, "examples/s", step, check, threads=threads, warm=warm
    )


def of_torch(feed: ZipfFeed, kind: str, steps: int, threads: int, width: int = OUTPUTS) -> Work:
    """Returns the same trunk in PyTorch, under a "softmax", one "in chunks", or its "adaptive softmax", a smaller model."""
    torch = peer("torch")
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    rows = torch.nn.Embedding(feed.rows, WIDTH, sparse=True)
    torch.nn.init.uniform_(rows.weight, -0.1, 0.1)
    trunk = torch.nn.Sequential(
        torch.nn.Linear(CONTEXT * WIDTH, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, width), torch.nn.Tanh()
    )
    head, sum_of_losses = _head(torch, kind, feed.classes, width)
    optimiser = torch.optim.SGD([*rows.parameters(), *trunk.parameters(), *head.parameters()], lr=RATE)
    losses: list[float] = []
    position = iter(range(10**9))

    def one():
        batch = feed[next(position)]
        target = torch.from_numpy(batch.target).long()
        hidden = trunk(rows(torch.from_numpy(batch.ids).view(-1, CONTEXT)).flatten(1))
        loss = sum_of_losses(hidden, target)
        optimiser.zero_grad()
        (loss / len(target)).backward()
        optimiser.step()
        losses.append(loss.item() / len(target))

    def step():
        for _ in range(steps):
            one()

    def check():
        expected = math.log(feed.classes)
        if not (all(map(math.isfinite, losses)) and losses[0] < 1.5 * expected):
            raise AssertionError(f"losses {losses}, expected to begin near log V = {expected}")

    who = f"torch {torch.__version__} {kind}"
    params = {"classes": feed.classes, "batch": feed.batch, "width": width}
    return Work("language.step", who, params, steps * feed.batch, "examples/s", step, check, threads=threads)


def _head(torch: Any, kind: str, classes: int, width: int) -> tuple[Any, Any]:
    """Returns PyTorch's output layer, and its summed losses of a batch."""
    if kind == "adaptive softmax":
        head = torch.nn.AdaptiveLogSoftmaxWithLoss(width, classes, softmax.cutoffs(classes))
        return head, lambda hidden, target: -head(hidden, target).output.sum()
    head = torch.nn.Linear(width, classes, bias=False)
    torch.nn.init.zeros_(head.weight)
    loss = softmax.chunked(CHUNK) if kind == "softmax in chunks" else softmax.cross_entropy
    return head, lambda hidden, target: loss(hidden, head.weight, target)
