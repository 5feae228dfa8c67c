"""The rivals of `bench softmax` in PyTorch: each a function that makes a step from (hidden, targets) to the mean loss.

All move the weights in place by the gradient, as cheaply as PyTorch can.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.peers import peer

Step = Callable[[int], float]  # of batch b: its mean loss before the step

CHUNKS = (64, 128, 256, 512)  # examples, of which the fastest counts


class Batches:
    """Hidden vectors, targets and shared negatives as tensors."""

    def __init__(self, hidden: np.ndarray, targets: np.ndarray, negatives: np.ndarray):
        torch = peer("torch")
        self.hidden = [torch.from_numpy(batch.copy()).requires_grad_() for batch in hidden]
        self.targets = [torch.from_numpy(ids).long() for ids in targets]
        self.negatives = [torch.from_numpy(ids).long() for ids in negatives]


def full(batches: Batches, weights: Any, rate: float, loss: Callable[[Any, Any, Any], Any]) -> Step:
    """A full softmax by one of PyTorch's losses, summed over the batch."""
    torch = peer("torch")

    def step(b: int) -> float:
        hidden = batches.hidden[b]
        hidden.grad = weights.grad = None
        found = loss(hidden, weights, batches.targets[b])
        found.backward()
        with torch.no_grad():
            weights.add_(weights.grad, alpha=-rate)
        return float(found.detach()) / len(hidden)

    return step


def cross_entropy(hidden: Any, weights: Any, target: Any) -> Any:
    """Of all logits at once."""
    torch = peer("torch")
    return torch.nn.functional.cross_entropy(torch.nn.functional.linear(hidden, weights), target, reduction="sum")


def chunked(size: int) -> Callable[[Any, Any, Any], Any]:
    """`linear_cross_entropy` by so many examples at a time."""
    torch = peer("torch")
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=size)

    def loss(hidden: Any, weights: Any, target: Any) -> Any:
        given = {"reduction": "sum", "options": options}
        return torch.nn.functional.linear_cross_entropy(hidden, weights, target, **given)

    return loss


def sampled(batches: Batches, weights: Any, rate: float, lower: np.ndarray) -> Step:
    """Sampled softmax by hand: rows are gathered, and their gradients added where they belong; negatives come for nothing.

    lower  (V,): the log of how often each class is expected among the negatives, which its logit is lowered by
    """
    torch = peer("torch")
    lowered = torch.from_numpy(lower)

    def step(b: int) -> float:
        hidden, target, negatives = batches.hidden[b], batches.targets[b], batches.negatives[b]
        hidden.grad = weights.grad = None
        ids = torch.cat((target, negatives))
        rows = weights.detach().index_select(0, ids).requires_grad_()
        own, others = rows[: len(target)], rows[len(target) :]
        score = (hidden * own).sum(1, keepdim=True) - lowered[target, None]
        logits = (hidden @ others.T - lowered[negatives]).masked_fill(target[:, None] == negatives, -torch.inf)
        found = (torch.cat((score, logits), 1).logsumexp(1) - score[:, 0]).sum()
        found.backward()
        with torch.no_grad():
            weights.index_add_(0, ids, rows.grad, alpha=-rate)
        return float(found.detach()) / len(hidden)

    return step


def adaptive(batches: Batches, classes: int, cutoffs: list[int], rate: float, div_value: float) -> Step:
    """AdaptiveLogSoftmaxWithLoss; div_value: by what the vectors of each next band are narrower."""
    torch = peer("torch")
    model = torch.nn.AdaptiveLogSoftmaxWithLoss(batches.hidden[0].shape[1], classes, cutoffs, div_value=div_value)
    parameters = list(model.parameters())

    def step(b: int) -> float:
        hidden = batches.hidden[b]
        for tensor in (hidden, *parameters):
            tensor.grad = None
        found = model(hidden, batches.targets[b]).loss
        (found * len(hidden)).backward()
        with torch.no_grad():
            torch._foreach_add_(parameters, [tensor.grad for tensor in parameters], alpha=-rate)
        return float(found.detach())

    return step
