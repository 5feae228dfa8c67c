"""The language model of `hybrid train language` in PyTorch under its adaptive softmax (Grave et al. 2017, arXiv:1609.04309).

The same feed and trunk. As in ours the loss of rows and output layer is the sum over a batch, that of the trunk the mean.
"""

import functools
import time
from collections.abc import Mapping
from typing import Any

import torch

from bench.contender import Figures, Run
from bench.training import Cut, Peak, finite
from hybrid.engine.scale import Scale
from hybrid.feeds.language import LanguageFeed

DIVIDED = 4.0  # by which the width of hidden vectors falls from cluster to cluster, PyTorch's default
OPTIMISERS = {
    "sgd": torch.optim.SGD,
    "momentum": functools.partial(torch.optim.SGD, momentum=0.9),
    "adagrad": torch.optim.Adagrad,
    "adam": torch.optim.Adam,
}


class Model(torch.nn.Module):
    """Rows of the words before -> MLP -> adaptive softmax, cut as its authors cut vocabularies; sizes are options."""

    def __init__(self, options: Mapping[str, Any], classes: int):
        super().__init__()
        width, inputs = options["readout_width"], options["context"] * options["width"]
        hidden, drop = options["hidden"], functools.partial(torch.nn.Dropout, options["dropout"])
        self.rows = torch.nn.Embedding(classes + 1, options["width"], sparse=True)
        torch.nn.init.uniform_(self.rows.weight, -0.1, 0.1)
        layers = torch.nn.Linear(inputs, hidden), torch.nn.Linear(hidden, width)
        self.trunk = torch.nn.Sequential(layers[0], torch.nn.Tanh(), drop(), layers[1], torch.nn.Tanh())
        cutoffs = [cut for cut in (2_000, 10_000) if cut < classes - 1] or [max(classes // 4, 1)]
        self.head = torch.nn.AdaptiveLogSoftmaxWithLoss(width, classes, cutoffs, div_value=DIVIDED)

    def forward(self, ids: Any, target: Any) -> Any:
        """The log-probability of each target."""
        rows = self.rows(ids)
        return self.head(self.trunk(rows.flatten(1)), target).output


def train(
    options: Mapping[str, Any], learned: LanguageFeed, valid: LanguageFeed, test: LanguageFeed, epochs: float
) -> Run:
    """Rates, optimisers and sizes by the names of `hybrid train`."""
    torch.set_num_threads(options["threads"])
    feed = Cut(learned, max(round(epochs * learned.ticks_per_epoch), 1))
    _step(*_made(options, feed), feed[0])  # whatever is done the first time
    peak = Peak()
    model, optimisers = _made(options, feed)
    scale, examples, rates = Scale("linear", len(feed)), 0, [one.param_groups[0]["lr"] for one in optimisers]
    start = time.perf_counter()
    for tick in range(len(feed)):
        for one, rate in zip(optimisers, rates, strict=True):
            one.param_groups[0]["lr"] = rate * scale(tick)
        batch = feed[tick]
        _step(model, optimisers, batch)
        examples += len(batch.target)
    seconds = time.perf_counter() - start
    size = sum(value.numel() for value in model.parameters())
    spent = {"epochs": len(feed) / feed.ticks_per_epoch, "seconds": seconds, "examples": examples}
    valid_, test_ = (functools.partial(_perplexity, model, feed) for feed in (valid, test))
    return Run(valid_, test_, **spent, parameters=size, memory=peak.bytes())


def _made(options: Mapping[str, Any], feed: Any) -> tuple[Model, list[Any]]:
    torch.manual_seed(options["seed"])
    model = Model(options, feed.classes)
    trunk = "momentum" if options["trunk_optimiser"] == "sgd" else options["trunk_optimiser"]
    asked = (
        (model.rows, options["rows_optimiser"], options["rows_rate"]),
        (model.trunk, trunk, options["trunk_rate"]),
        (model.head, options["readout_optimiser"], options["rate"]),
    )
    return model, [OPTIMISERS[name](part.parameters(), lr=rate) for part, name, rate in asked]


def _step(model: Model, optimisers: list[Any], batch: Any) -> None:
    ids, target = _tensors(batch)
    (-model(ids, target).sum()).backward()
    for parameter in model.trunk.parameters():
        parameter.grad /= len(target)
    for one in optimisers:
        one.step()
        one.zero_grad()


def _tensors(batch: Any) -> tuple[Any, Any]:
    target = torch.from_numpy(batch.target).long()
    return torch.from_numpy(batch.ids).view(len(target), -1), target


def _perplexity(model: Model, feed: LanguageFeed) -> Figures:
    """None where it is no number."""
    model.eval()
    total = 0.0
    with torch.no_grad():
        for tick in range(len(feed)):
            total -= float(model(*_tensors(feed[tick])).double().sum())
    model.train()
    return finite({"perplexity": float(torch.tensor(total / len(feed.corpus)).double().exp())})
