"""An LSTM language model in PyTorch, the output layers that one line of it swaps, and the tokens that it learns from.

The sizes are those of word_language_model in pytorch/examples: two layers of 200 numbers, 20 streams of text, 35 tokens at a
time, dropout 0.2, SGD, gradients of the LSTM cut to a norm of 0.25. The input table has sparse gradients under every output
layer: a dense gradient of it would hide what the output layers cost.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from hybrid import SGD
from hybrid.torch import SampledLoss, TreeLoss

WIDTH, LAYERS, STREAMS, STEPS, DROPOUT, CLIP = 200, 2, 20, 35, 0.2, 0.25


class Tokens(NamedTuple):
    """Ids of a text by falling frequency, and counts by id."""

    name: str
    train: Any
    counts: np.ndarray


class Head(NamedTuple):
    """An output layer and how it is made: make(counts, rate) is a module, called (hidden, target) -> (output, loss).

    rate  of ours for each example, of PyTorch's SGD for the mean over a batch
    own   whether its parameters are moved by its own backward
    """

    make: Callable[[np.ndarray, float], Any]
    rate: float
    own: bool = False


def wikitext() -> Tokens | None:
    """WikiText-2 from HYBRID_DATA: words between white space, and <eos> at the end of a line; None where it is not there."""
    folder = Path(os.environ.get("HYBRID_DATA", "data")) / "wikitext-2"
    if not (folder / "train.txt").exists():
        return None
    words = (folder / "train.txt").read_text("utf-8").replace("\n", " <eos> ").split()
    counted = Counter(words).most_common()
    number = {word: at for at, (word, _) in enumerate(counted)}
    ids = torch.tensor([number[word] for word in words])
    return Tokens("WikiText-2", ids, np.array([count for _, count in counted]))


def zipf(classes: int, tokens: int) -> Tokens:
    """Ids drawn by Zipf's law."""
    counts = np.maximum(1e9 / np.arange(1, classes + 1), 1)
    share = np.cumsum(counts) / counts.sum()
    drawn = np.searchsorted(share, np.random.default_rng(0).random(tokens))
    return Tokens(f"Zipf ids, {classes:,} of them", torch.from_numpy(np.minimum(drawn, classes - 1)), counts)


class Dense(torch.nn.Module):
    """A linear layer under F.cross_entropy: an array of tokens by classes."""

    def __init__(self, classes: int):
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, classes, bias=False)
        torch.nn.init.uniform_(self.linear.weight, -0.1, 0.1)  # as the example does

    def forward(self, hidden, target):
        """Nothing, and the mean loss."""
        return None, torch.nn.functional.cross_entropy(self.linear(hidden), target)


class Chunked(Dense):
    """The same by F.linear_cross_entropy, which cuts the tokens into chunks."""

    def forward(self, hidden, target):
        """As of Dense."""
        made = getattr(torch.nn, "LinearCrossEntropyOptions", None)  # the first releases of the function had none
        chunks = {"options": made()} if made else {}
        return None, torch.nn.functional.linear_cross_entropy(hidden, self.linear.weight, target, **chunks)


def adaptive(counts: np.ndarray, rate: float) -> Any:
    """PyTorch's adaptive softmax, cut as its authors cut such vocabularies; a smaller model."""
    cuts = [cut for cut in (2_000, 10_000, 200_000) if cut < len(counts) - 1] or [len(counts) // 2]
    return torch.nn.AdaptiveLogSoftmaxWithLoss(WIDTH, len(counts), cuts)


def heads() -> dict[str, Head]:
    """Ours first, then what they are measured beside; all that this PyTorch has."""
    version = f"torch {torch.__version__}"
    dense = 1.0
    found = {
        "ours": Head(lambda counts, rate: TreeLoss(WIDTH, counts, optimiser=SGD(rate)), 0.02, own=True),
        "SampledLoss": Head(lambda counts, rate: SampledLoss(WIDTH, counts, optimiser=SGD(rate)), 0.005, own=True),
        f"{version} Linear + cross_entropy": Head(lambda counts, rate: Dense(len(counts)), dense),
        f"{version} linear_cross_entropy": Head(lambda counts, rate: Chunked(len(counts)), dense),
        f"{version} adaptive softmax": Head(adaptive, dense),
    }
    if not hasattr(torch.nn.functional, "linear_cross_entropy"):
        del found[f"{version} linear_cross_entropy"]
    return found


class Model(torch.nn.Module):
    """Rows of tokens, an LSTM, an output layer; and how it learns.

    lr    of SGD, for rows and LSTM
    rate  of the output layer
    """

    def __init__(self, head: Head, counts: np.ndarray, lr: float, rate: float):
        super().__init__()
        torch.manual_seed(0)
        self.rows = torch.nn.Embedding(len(counts), WIDTH, sparse=True)
        torch.nn.init.uniform_(self.rows.weight, -0.1, 0.1)
        self.lstm = torch.nn.LSTM(WIDTH, WIDTH, LAYERS, dropout=DROPOUT)
        self.head = head.make(counts, rate)
        self.drop = torch.nn.Dropout(DROPOUT)
        self.state: Any = None
        groups: list[dict[str, Any]] = [{"params": [*self.rows.parameters(), *self.lstm.parameters()]}]
        groups += [] if head.own else [{"params": self.head.parameters(), "lr": rate}]
        self.optimiser = torch.optim.SGD(groups, lr=lr)

    def forward(self, ids, target):
        """(output, loss) of a segment: ids and target (T, B)."""
        hidden, state = self.lstm(self.drop(self.rows(ids)), self.state)
        self.state = tuple(part.detach() for part in state)
        return self.head(self.drop(hidden).reshape(-1, WIDTH), target.reshape(-1))

    def step(self, ids, target) -> float:
        """Forward, backward, optimiser's step; the loss."""
        loss = self(ids, target)[1]
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.lstm.parameters(), CLIP)
        self.optimiser.step()
        return float(loss.detach())

    def bytes(self) -> int:
        """Of all that is learned; SGD keeps nothing else."""
        return sum(value.numel() * value.element_size() for value in self.state_dict().values())


def segments(ids, streams: int) -> Iterator[tuple[Any, Any]]:
    """A text in `streams` columns, STEPS tokens at a time: (ids, the tokens after them), each (T, streams)."""
    columns = ids[: len(ids) // streams * streams].view(streams, -1).t().contiguous()
    for at in range(0, len(columns) - 1, STEPS):
        target = columns[at + 1 : at + 1 + STEPS]
        yield columns[at : at + len(target)], target
