"""An LSTM language model of PyTorch under a readout of ours, trained by truncated back-propagation; its state is carried on.

Two layers, dropout that is the same at every step of a segment (Gal and Ghahramani 2016, arXiv:1512.05287), Adam, rates that
fall linearly to the end of the training.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from bench.contender import Figures, Run
from bench.training import Peak
from hybrid.engine.scale import Scale
from hybrid.torch import ReadoutLoss

WIDTH, LAYERS, STREAMS, STEPS, CLIP = 256, 2, 32, 35, 1.0
SPREAD = 0.1
# The products of the LSTM in bfloat16, where the processor has them: 2.9 times as fast on a Zen 5.
BFLOAT16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()


class Texts(NamedTuple):
    """Ids of three running texts, (T,) int32 each; counts of V words; eos: the id that stands before their first words."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    counts: np.ndarray
    eos: int


class Model(torch.nn.Module):
    """Rows of tokens -> LSTM -> a readout, as ReadoutLoss."""

    def __init__(self, readout: Any, dropout: float):
        super().__init__()
        self.rows = torch.nn.Embedding(readout.classes, WIDTH, sparse=True)
        torch.nn.init.uniform_(self.rows.weight, -SPREAD, SPREAD)
        self.layers = torch.nn.ModuleList(torch.nn.LSTM(WIDTH, WIDTH) for _ in range(LAYERS))
        self.loss, self.dropout = ReadoutLoss(readout), dropout
        self.state: list[Any] = [None] * LAYERS

    def forward(self, ids: Any, target: Any) -> Any:
        """ReadoutLoss's (output, loss) of a segment, ids and target (T, B); the next one goes on from its state."""
        x = self._dropped(self.rows(ids))
        with torch.autocast("cpu", torch.bfloat16, enabled=BFLOAT16):
            for number, layer in enumerate(self.layers):
                x, state = layer(x, self.state[number])
                self.state[number] = tuple(part.detach() for part in state)
                x = self._dropped(x)
        return self.loss(x.float().flatten(0, 1), target.flatten())

    def _dropped(self, x: Any) -> Any:
        """With numbers set to 0, the same at every step."""
        if not (self.training and self.dropout):
            return x
        kept = torch.empty_like(x[:1]).bernoulli_(1 - self.dropout)
        return x * (kept / (1 - self.dropout))


def train(
    texts: Texts, make: Callable[[], Any], settings: Mapping[str, Any], seed: int, epochs: float, threads: int
) -> Run:
    """Learn for so many passes over the text. make() is the untrained readout; what it takes is on the clock."""
    torch.set_num_threads(threads)
    ticks = max(round(epochs * _ticks(texts.train)), 1)
    _learn(Model(make(), settings["dropout"]), texts, settings, seed, 1)  # kernels are compiled off the clock
    torch.manual_seed(seed)
    peak, start = Peak(), time.perf_counter()
    model = Model(make(), settings["dropout"])
    whole = _learn(model, texts, settings, seed, ticks)
    seconds = time.perf_counter() - start
    size = sum(array.size for array in model.loss.readout.parameters().values()) + sum(
        one.numel() for one in model.parameters()
    )
    spent: dict[str, Any] = {"epochs": ticks / _ticks(texts.train), "seconds": seconds}
    spent["examples"] = ticks * STREAMS * STEPS
    return Run(
        lambda: perplexity(model, texts.valid, texts.eos) if whole else {},
        lambda: perplexity(model, texts.test, texts.eos) if whole else {},
        **spent,
        parameters=size,
        memory=peak.bytes(),
    )


def _learn(model: Model, texts: Texts, settings: Mapping[str, Any], seed: int, ticks: int) -> bool:
    """So many steps; whether their losses are finite."""
    optimisers = [
        torch.optim.Adam(model.layers.parameters(), lr=settings["lr"]),
        torch.optim.SparseAdam(model.rows.parameters(), lr=settings["rows_rate"]),
    ]
    scale, first = Scale("linear", ticks), [one.param_groups[0]["lr"] for one in optimisers]
    for tick, (ids, target, begins) in zip(range(ticks), _segments(texts.train, seed), strict=False):
        for one, lr in zip(optimisers, first, strict=True):
            one.param_groups[0]["lr"] = lr * scale(tick)
        model.loss.rate_scale = scale(tick)
        if begins:
            model.state = [None] * LAYERS
        try:
            model(ids, target).loss.backward()
        except FloatingPointError:
            return False
        torch.nn.utils.clip_grad_norm_(model.layers.parameters(), CLIP)
        for one in optimisers:
            one.step()
            one.zero_grad()
    return True


def _ticks(ids: np.ndarray) -> int:
    """Whole segments of a pass, whatever its first token."""
    return max((len(ids) - STEPS) // STREAMS - 1, STEPS) // STEPS


def _segments(ids: np.ndarray, seed: int) -> Iterator[tuple[Any, Any, bool]]:
    """Passes without end: (ids, the tokens after them, whether a pass begins), each of the first two (STEPS, STREAMS).

    Every pass begins at another token, so that segments do not always end at the same ones.
    """
    rng, ticks = np.random.default_rng([seed, 7]), _ticks(ids)
    while True:
        begin = rng.integers(STEPS)
        length = (len(ids) - begin) // STREAMS
        columns = torch.from_numpy(ids[begin : begin + length * STREAMS].reshape(STREAMS, length).T.astype(np.int64))
        for tick in range(ticks):
            at = tick * STEPS
            yield columns[at : at + STEPS], columns[at + 1 : at + 1 + STEPS], tick == 0


def perplexity(model: Model, ids: np.ndarray, eos: int, piece: int = 1000) -> Figures:
    """Of every token of a text, read in one stream from its beginning."""
    given, target = (torch.from_numpy(each.astype(np.int64))[:, None] for each in (np.append(eos, ids[:-1]), ids))
    kept, total = model.state, 0.0
    model.state = [None] * LAYERS
    model.eval()
    with torch.no_grad():
        for at in range(0, len(ids), piece):
            total -= float(model(given[at : at + piece], target[at : at + piece]).output.double().sum())
    model.train()
    model.state = kept
    return {"perplexity": math.exp(total / len(ids))} if total / len(ids) < 700 else {}
