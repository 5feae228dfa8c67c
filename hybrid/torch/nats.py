"""The loss of each row as a function that autograd differentiates: its backward is the readout's step."""

from typing import Any

import torch

from . import asked as ask
from . import ranks
from .asked import Asked
from .places import place

MOST = 4096.0  # times as far as a loss by itself moves parameters: what is more is a scale, not a weight


class Nats(torch.autograd.Function):
    """-log p(target | hidden) of each row, (N,) float32, and the same times its weight; 0 where a row has no class.

    hidden  (N, D)
    weight  (N,) float32, or None: 1
    anchor  a number that requires a gradient and gets none: so backward comes here where nothing else needs one
    module  a ReadoutLoss
    """

    @staticmethod
    def forward(ctx: Any, hidden: Any, weight: Any, anchor: Any, module: Any, asked: Asked) -> Any:
        """The losses; nothing moves. FloatingPointError for hidden vectors or losses that are not finite."""
        rows = asked.of(hidden).to(torch.float32)
        ask.finite(rows, asked.kept)
        readout = place(module.readout, rows)
        losses = readout.losses(rows, asked.target) if asked.training else -readout.log_prob(rows, asked.target)
        nats = asked.among(_finite("loss", losses), len(hidden))
        ctx.save_for_backward(hidden, weight, nats)
        ctx.module, ctx.asked = module, asked
        return nats, nats.clone() if weight is None else weight * nats

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        """The gradients of the hidden vectors and of the weights; in training the readout moves.

        Raises RuntimeError where a graph of the gradient is asked for, and what `_factor` raises; then nothing has moved.
        """
        module, asked = ctx.module, ctx.asked
        if torch.is_grad_enabled():
            raise RuntimeError(
                f"{type(module).__name__}: found create_graph=True, expected a first derivative: the readout moves in "
                "backward, and its gradient cannot be differentiated again"
            )
        hidden, weight, nats = ctx.saved_tensors
        scale = asked.unit * (1.0 if module.scaler is None else module.scaler.get_scale())
        factor = _factor(upstream[0], upstream[1], weight, scale)
        own = ranks.Rows(asked.of(hidden).to(torch.float32), asked.target, asked.of(factor))
        grad = _moved(module, own) if asked.training else _still(module, own)
        of_hidden = asked.among((grad * scale).to(hidden.dtype), len(hidden))
        return of_hidden, None if weight is None else upstream[1] * nats, None, None, None


def _moved(module: Any, own: ranks.Rows) -> Any:
    """Learn from the rows of all processes; the gradient of one's own."""
    if ranks.alone(module.process_group):
        return place(module.readout, own.hidden).step(own.hidden, own.target, _weight(own.factor))
    every, mine = ranks.together(own, module.process_group)
    return place(module.readout, own.hidden).step(every.hidden, every.target, _weight(every.factor))[mine]


def _still(module: Any, own: ranks.Rows) -> Any:
    """The gradient of the rows; nothing moves."""
    return place(module.readout, own.hidden).still(own.hidden, own.target, _weight(own.factor))


def _factor(of_nats: Any, of_losses: Any, weight: Any, scale: float) -> Any:
    """How far each row moves the readout, against a step of its own.

    Raises FloatingPointError where a gradient is not finite, ValueError where it is below 0 or beyond MOST times that of a loss
    which was not multiplied, naming the row.
    """
    unit = of_nats.new_tensor(scale)
    of_nats, of_losses = (
        of_nats / unit,
        of_losses / unit,
    )  # x / x is exactly 1: only then a row moves by exactly its weight
    both = _finite("upstream gradient", of_nats + of_losses)
    bad = (both < 0) | (both > MOST)
    if bad.any():
        row = int(bad.int().argmax())
        raise ValueError(
            f"upstream gradient[{row}]: found {both[row].item():g} times that of the loss itself, expected 0 to {MOST:g}: "
            "so many times as far the readout would move; of a GradScaler tell the module: its attribute scaler"
        )
    return both if weight is None else of_nats + weight * of_losses


def _weight(factor: Any) -> Any:
    """The weights of a step; None where all are 1, which a step of the readout alone would have."""
    return None if (factor == 1).all() else factor


def _finite(name: str, values: Any) -> Any:
    """`values` (M,) themselves; FloatingPointError, naming the first bad one, unless all are finite."""
    good = torch.isfinite(values)
    if not good.all():
        at = int(good.int().argmin())
        raise FloatingPointError(f"{name}[{at}]: found {values[at].item()}; a lower rate may help")
    return values
