"""A training step of a language model: rows -> MLP -> readout, ours beside the same model in PyTorch."""

import math

import numpy as np

from bench.measure import Work, append, measure, show
from bench.peers import peer
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.engine.trunk.mlp import Trunk
from hybrid.feeds import Batch
from hybrid.readout import FullReadout, TreeReadout

CONTEXT, WIDTH, HIDDEN, OUTPUTS = 4, 64, 256, 128
RATE = 0.01


class ZipfFeed:
    """Random contexts and targets whose frequencies fall as 1 / rank; as many ticks as anyone asks for."""

    epochs = 1

    def __init__(self, classes: int, batch: int):
        self.classes = self.rows = classes
        self.batch, self.most_ids = batch, batch * CONTEXT
        self.counts = np.maximum(1e9 / np.arange(1, classes + 1), 1).astype(np.int64)
        self.ticks_per_epoch = 10**9
        share = np.cumsum(self.counts) / self.counts.sum()
        rng = np.random.default_rng(1)
        self._batches = []
        for _ in range(16):
            ids = np.searchsorted(share, rng.random((batch, CONTEXT + 1))).astype(np.int32)
            self._batches.append(Batch(ids[:, :-1].reshape(-1), None, np.ascontiguousarray(ids[:, -1])))

    def __len__(self):
        return self.ticks_per_epoch

    def __getitem__(self, tick):
        return self._batches[tick % len(self._batches)]

    def describe(self):
        """What it is."""
        return {"kind": "zipf", "classes": self.classes, "batch": self.batch}


def run(arguments) -> None:
    """Full softmax and tree, at 10 thousand and 100 thousand classes."""
    sizes = [(1_000, 512)] if arguments.quick else [(10_000, 512), (100_000, 512)]
    for classes, batch in sizes:
        feed = ZipfFeed(classes, batch)
        for readout in ("tree", "full"):
            steps = 2 if readout == "full" and classes > 10_000 else 16
            ours = _ours(feed, readout, steps, arguments.threads)
            records = measure([ours, *_torch(feed, readout, steps, arguments.threads)], arguments.repeat)
            show(records)
            append(arguments.json, records)


def _engine(feed: ZipfFeed, readout: str, threads: int) -> Engine:
    kind = {"tree": TreeReadout, "full": FullReadout}[readout]
    return Engine(
        Embedding(feed.rows, WIDTH, per_example=CONTEXT, rate=RATE, spread=0.1),
        Trunk(CONTEXT * WIDTH, HIDDEN, OUTPUTS, rate=RATE),
        kind(feed.counts, OUTPUTS, batch=feed.batch, rate=RATE),
        micro_batches=2,
        decay=False,
        threads=threads,
    )


def _ours(feed: ZipfFeed, readout: str, steps: int, threads: int) -> Work:
    engine = _engine(feed, readout, threads)
    ticks = engine.run(feed)
    losses: list[float] = []

    def step():
        losses.extend(next(ticks).loss for _ in range(steps))

    def check():
        # Before it has learned anything every class of the full softmax is as likely as any other.
        first = losses[0]
        if readout == "full" and abs(first - math.log(feed.classes)) > 0.02:
            raise AssertionError(f"first loss {first}, expected log V = {math.log(feed.classes)}")
        if not np.mean(losses[-4:]) < first:
            raise AssertionError(f"the loss does not fall: {losses}")

    work = _params(feed, readout)
    warm = 2 if steps > 2 else 12  # the engine measures how to spend the cores in its first 24 ticks
    return Work(
        "language.step", "ours", work, steps * feed.batch, "examples/s", step, check, threads=threads, warm=warm
    )


def _params(feed: ZipfFeed, readout: str) -> dict:
    return {"classes": feed.classes, "batch": feed.batch, "readout": readout, "width": OUTPUTS}


def _torch(feed: ZipfFeed, readout: str, steps: int, threads: int) -> list[Work]:
    """The same trunk in PyTorch: under a full softmax, or beside the tree under its adaptive softmax (a smaller model)."""
    torch = peer("torch")
    if not torch:
        return []
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    rows = torch.nn.Embedding(feed.rows, WIDTH, sparse=True)
    torch.nn.init.uniform_(rows.weight, -0.1, 0.1)
    trunk = torch.nn.Sequential(
        torch.nn.Linear(CONTEXT * WIDTH, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, OUTPUTS), torch.nn.Tanh()
    )
    if readout == "full":
        head = torch.nn.Linear(OUTPUTS, feed.classes, bias=False)
        torch.nn.init.zeros_(head.weight)
        name = "softmax"
    else:
        cutoffs = [cut for cut in (2_000, 20_000) if cut < feed.classes] or [feed.classes // 4]
        head = torch.nn.AdaptiveLogSoftmaxWithLoss(OUTPUTS, feed.classes, cutoffs)
        name = "adaptive softmax"
    optimiser = torch.optim.SGD([*rows.parameters(), *trunk.parameters(), *head.parameters()], lr=RATE)
    losses: list[float] = []
    position = iter(range(10**9))

    def one():
        batch = feed[next(position)]
        target = torch.from_numpy(batch.target).long()
        hidden = trunk(rows(torch.from_numpy(batch.ids).view(-1, CONTEXT)).flatten(1))
        if readout == "full":
            loss = torch.nn.functional.cross_entropy(head(hidden), target, reduction="sum")
        else:
            loss = -head(hidden, target).output.sum()
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

    who = f"torch {torch.__version__} {name}"
    params = _params(feed, readout)
    return [Work("language.step", who, params, steps * feed.batch, "examples/s", step, check, threads=threads)]
