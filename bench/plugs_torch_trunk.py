"""A module of PyTorch as the trunk of an engine, beside the same loop written by hand: same module, rows, readout, losses."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import cpu  # noqa: F401  # says how threads wait, before PyTorch reads it
from bench.measure import Work, append, measure, show
from bench.peers import peer
from hybrid import Embedding, Engine, FullReadout, TreeReadout
from hybrid.feeds import Batch

RATE, ROWS_RATE, ADAM = 0.02, 0.1, 0.001


class Sizes(NamedTuple):
    """Of one model: an LSTM over windows of so many steps, or an MLP; which readout, over how many classes."""

    net: str
    readout: str
    classes: int
    windows: int
    steps: int
    width: int
    hidden: int

    @property
    def batch(self) -> int:
        return self.windows * self.steps


# A tree costs less than the LSTM before it; the full softmax of the last two about as much as the net.
FULL = (
    Sizes("lstm", "tree", 33_278, 32, 20, 128, 200),
    Sizes("lstm", "full", 4_000, 32, 20, 128, 200),
    Sizes("mlp", "full", 2_000, 512, 1, 256, 512),
)
QUICK = (Sizes("lstm", "tree", 1_000, 8, 5, 16, 16), Sizes("mlp", "full", 200, 64, 1, 16, 16))


def run(arguments) -> None:
    """Every model with its batch whole, and in two parts, which overlap."""
    if not peer("torch"):
        return
    for sizes in QUICK if arguments.quick else FULL:
        for parts in (1, 2):
            records = measure(
                list(_works(sizes, parts, arguments.threads, 2 if arguments.quick else 5)), arguments.repeat
            )
            show(records)
            append(arguments.json, records)


class Feed:
    """Ids and classes by Zipf's law, the same 16 batches again and again: windows of words, and the words that follow."""

    epochs, ticks_per_epoch = 1, 10**6

    def __init__(self, sizes: Sizes):
        self.rows = self.classes = sizes.classes
        self.batch = self.most_ids = sizes.batch
        self.counts = np.maximum(10**7 // np.arange(1, sizes.classes + 1), 1)
        rng = np.random.default_rng(0)
        drawn = rng.choice(sizes.classes, (16, 2, sizes.batch), p=self.counts / self.counts.sum()).astype(np.int32)
        self._batches = [Batch(ids, None, target) for ids, target in drawn]

    def __len__(self) -> int:
        return self.ticks_per_epoch

    def __getitem__(self, tick: int) -> Batch:
        return self._batches[tick % len(self._batches)]

    def describe(self) -> dict[str, Any]:
        return {"kind": "zipf"}


def _works(sizes: Sizes, parts: int, threads: int, ticks: int) -> Iterator[Work]:
    feed = Feed(sizes)
    expected: list[float] = []
    ways: tuple[tuple[str, bool | None], ...] = (
        ("by hand", None),
        ("ours, in turn", False),
        ("ours, overlapped", True),
    )
    for who, overlap in ways:
        if overlap and threads < 2:
            continue
        losses: list[float] = []
        run = _by_hand(sizes, feed, parts, threads) if overlap is None else _ours(sizes, feed, parts, threads, overlap)

        def turn(losses: list[float] = losses, run: Iterator[float] = run) -> None:
            losses.extend(next(run) for _ in range(ticks))

        def check(losses: list[float] = losses) -> None:
            expected[:] = expected or losses[:ticks]  # by hand comes first
            np.testing.assert_allclose(losses[:ticks], expected, rtol=1e-4)

        params = sizes._asdict() | {"parts": parts}
        yield Work("torch_trunk.step", who, params, ticks * sizes.batch, "examples/s", turn, check, threads=threads)


def _parts(sizes: Sizes) -> tuple[Any, Embedding, Any]:
    """The net, the rows and the readout, untrained."""
    import torch

    class Lstm(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(sizes.width, sizes.hidden, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.lstm(x)[0]

    torch.manual_seed(0)
    first, last = torch.nn.Linear(sizes.width, sizes.hidden), torch.nn.Linear(sizes.hidden, sizes.hidden)
    net = Lstm() if sizes.net == "lstm" else torch.nn.Sequential(first, torch.nn.Tanh(), last, torch.nn.Tanh())
    rows = Embedding(sizes.classes, sizes.width, rate=ROWS_RATE, spread=0.1)
    kind = {"tree": TreeReadout, "full": FullReadout}[sizes.readout]
    return net, rows, kind(Feed(sizes).counts, sizes.hidden, batch=sizes.batch, rate=RATE / 10)


def _ours(sizes: Sizes, feed: Feed, parts: int, threads: int, overlap: bool) -> Iterator[float]:
    import torch

    from hybrid import TorchTrunk

    net, rows, readout = _parts(sizes)
    adam = torch.optim.Adam(net.parameters(), lr=ADAM)
    sequence = sizes.steps if sizes.net == "lstm" else None
    trunk = TorchTrunk(net, sizes.width, sizes.hidden, optimiser=adam, sequence=sequence)
    settings = {"threads": threads, "overlap": overlap, "decay": False}
    engine = Engine(rows, trunk, readout, micro_batches=parts, **settings)
    for tick in engine.run(feed):
        yield tick.loss


def _by_hand(sizes: Sizes, feed: Feed, parts: int, threads: int) -> Iterator[float]:
    """As one would write it: rows, net, readout, backward, and the optimiser, one after another on all threads."""
    import numba
    import torch

    net, rows, readout = _parts(sizes)
    adam = torch.optim.Adam(net.parameters(), lr=ADAM)
    shape = (-1, sizes.steps, sizes.width) if sizes.net == "lstm" else (-1, sizes.width)
    x_of, grad_of = (np.empty((sizes.batch, size), np.float32) for size in (sizes.width, sizes.hidden))
    size = -(-sizes.windows // parts) * sizes.steps
    cuts = [slice(at, min(at + size, sizes.batch)) for at in range(0, sizes.batch, size)]
    for tick in range(len(feed)):
        numba.set_num_threads(threads)
        torch.set_num_threads(threads)
        batch, loss, kept = feed[tick], 0.0, []
        assert batch.ids is not None
        for cut in cuts:
            rows.forward(x_of[cut], None, batch.ids[cut])
            x = torch.from_numpy(x_of[cut]).requires_grad_()
            kept.append((cut, x, net(x.view(shape)).reshape(-1, sizes.hidden)))
        for cut, _, hidden in kept:
            count = cut.stop - cut.start
            loss += count * readout.step(grad_of[cut], hidden.detach().numpy(), batch.target[cut])
        adam.zero_grad()
        for cut, _, hidden in kept:
            hidden.backward(torch.from_numpy(grad_of[cut]) / sizes.batch)
        adam.step()
        for cut, x, _ in kept:
            rows.backward(None, batch.ids[cut], x.grad.numpy() * sizes.batch, 1.0)
        yield loss / sizes.batch
