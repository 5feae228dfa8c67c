"""The packages that we are measured beside: each is used where it is installed, and said to be missing once where it is not."""

import functools
import importlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np


@functools.cache
def peer(module: str) -> Any:
    """The module of a rival; None where it cannot be imported, which is said: ours is then measured without it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        print(f"{module} is not measured: {error}; pip install 'hybrid-engine[bench]'", flush=True)
        return None


def adaptive_softmax(hidden, targets, classes: int, cutoffs, rate: float) -> tuple[str, Callable, Callable]:
    """PyTorch's AdaptiveLogSoftmaxWithLoss under SGD: another, smaller model of the same targets, with a dense gradient.

    hidden   (batches, B, D); targets, as many of (B,)

    Returns its name, a step on the next batch, and a check that it is normalised.
    """
    torch = peer("torch")
    model = torch.nn.AdaptiveLogSoftmaxWithLoss(hidden.shape[-1], classes, cutoffs, div_value=4)
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    vectors = [torch.from_numpy(batch.copy()).requires_grad_() for batch in hidden]
    turn = itertools.cycle(zip(vectors, (torch.from_numpy(ids).long() for ids in targets), strict=True))

    def step():
        batch, target = next(turn)
        optimiser.zero_grad()
        batch.grad = None
        (model(batch, target).loss * len(batch)).backward()  # summed over the batch, as ours
        optimiser.step()

    def check():
        with torch.no_grad():
            np.testing.assert_allclose(model.log_prob(vectors[0][:2]).exp().sum(1).numpy(), 1, rtol=1e-3)

    return f"torch {torch.__version__} adaptive softmax", step, check
