"""The loss of each row as a function that autograd differentiates: its backward is the readout's step."""

from typing import Any

import torch

from . import asked as ask
from . import ranks
from .asked import Asked
from .places import place

MOST = 4096.0  # times as far as a loss by itself moves parameters: what is more is a scale, not a weight


class Nats(torch.autograd.Function):
    """-log p(target | hidden) of each row, (N,) float32, of hidden vectors (N, D); 0 where a row has no class.

    anchor  a number that requires a gradient and gets none: so backward comes here where the hidden vectors need none too
    module  a ReadoutLoss
    """

    @staticmethod
    def forward(ctx: Any, hidden: Any, anchor: Any, module: Any, asked: Asked) -> Any:
        """The losses; nothing moves. FloatingPointError for hidden vectors or losses that are not finite."""
        ctx.save_for_backward(hidden)
        ctx.module, ctx.asked = module, asked
        rows = asked.of(hidden).to(torch.float32)
        ask.finite(rows, asked.kept)
        readout = place(module.readout, rows)
        losses = readout.losses(rows, asked.target) if asked.training else -readout.log_prob(rows, asked.target)
        return asked.among(_finite("loss", losses), len(hidden))

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        """The gradient of the hidden vectors; in training the readout moves.

        Raises RuntimeError where a graph of the gradient is asked for, and what `_factor` raises; then nothing has moved.
        """
        module, asked = ctx.module, ctx.asked
        if torch.is_grad_enabled():
            raise RuntimeError(
                f"{type(module).__name__}: found create_graph=True, expected a first derivative: the readout moves in "
                "backward, and its gradient cannot be differentiated again"
            )
        (hidden,) = ctx.saved_tensors
        scale = asked.unit * (1.0 if module.scaler is None else module.scaler.get_scale())
        own = ranks.Rows(
            asked.of(hidden).to(torch.float32), asked.target, _factor(asked.of(upstream[0]), scale, asked.kept)
        )
        grad = _moved(module, own) if asked.training else _still(module, own)
        return asked.among((grad * scale).to(hidden.dtype), len(hidden)), None, None, None


def _moved(module: Any, own: ranks.Rows) -> Any:
    """Learn from the rows of all processes; the gradient of one's own."""
    if ranks.alone(module.process_group):
        return place(module.readout, own.hidden).step(own.hidden, own.target, _weight(own.factor))
    every, mine = ranks.together(own, module.process_group)
    return place(module.readout, own.hidden).step(every.hidden, every.target, _weight(every.factor))[mine]


def _still(module: Any, own: ranks.Rows) -> Any:
    """The gradient of the rows; nothing moves."""
    return place(module.readout, own.hidden).still(own.hidden, own.target, _weight(own.factor))


def _factor(upstream: Any, scale: float, kept: Any) -> Any:
    """How far each row moves the readout, against a step of its own: its gradient over that of a loss not multiplied.

    Raises FloatingPointError where it is not finite, ValueError where it is below 0 or beyond any weight, naming the row.
    """
    factor = upstream.to(torch.float32) / upstream.new_tensor(scale, dtype=torch.float32)  # x / x is exactly 1
    _finite("upstream gradient", factor)
    bad = (factor < 0) | (factor > MOST)
    if bad.any():
        at = int(bad.int().argmax())
        row = at if kept is None else int(kept[at])
        raise ValueError(
            f"upstream gradient[{row}]: found {factor[at].item():g} times that of the loss itself, expected 0 to {MOST:g}: "
            "so many times as far the readout would move; of a GradScaler tell the module: its attribute scaler"
        )
    return factor


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
