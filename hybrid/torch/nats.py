"""The loss of each row as a function that autograd differentiates: its backward is the readout's step."""

from typing import Any

import torch

from . import asked as ask
from . import ranks
from .asked import Asked
from .places import place


class Nats(torch.autograd.Function):
    """-log p(target | hidden) of each row, (N,) float32, and the same times its weight; 0 where a row has no class.

    hidden  (N, D)
    weight  (N,) float32, or None: 1
    anchor  the module's parameter, whose gradient is 0: so backward comes here where nothing else needs one
    module  a ReadoutLoss
    """

    @staticmethod
    def forward(ctx: Any, hidden: Any, weight: Any, anchor: Any, module: Any, asked: Asked) -> Any:
        """The losses; nothing moves. FloatingPointError for hidden vectors or losses that are not finite."""
        rows = asked.of(hidden).to(torch.float32)
        ask.finite(rows, asked.kept)
        readout = place(module.readout, rows)
        losses = readout.losses(rows, asked.target) if asked.learns else -readout.log_prob(rows, asked.target)
        nats = asked.among(_finite("loss", losses), len(hidden))
        ctx.save_for_backward(hidden, weight, nats)
        ctx.module, ctx.asked = module, asked
        return nats, nats.clone() if weight is None else weight * nats

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        """The gradients of the hidden vectors and of the weights; a readout that learns moves.

        Raises RuntimeError where a graph of the gradient is asked for, and what `_factor` raises; then nothing has moved.
        """
        module, asked = ctx.module, ctx.asked
        if torch.is_grad_enabled():
            raise RuntimeError(
                f"{type(module).__name__}: found create_graph=True, expected a first derivative: the readout moves in "
                "backward, and its gradient cannot be differentiated again"
            )
        hidden, weight, nats = ctx.saved_tensors
        of_nats, of_losses = (_finite("upstream gradient", values) for values in upstream)
        rows = asked.of(hidden).to(torch.float32)
        if asked.learns:
            scale = _scale(asked.of(of_nats + of_losses))
            factor = _factor(of_nats / scale, of_losses / scale, weight)
            grad = _moved(module, ranks.Rows(rows, asked.target, asked.of(factor))) * scale
        else:
            factor = of_nats + (of_losses if weight is None else weight * of_losses)
            grad = place(module.readout, rows).still(rows, asked.target, None) * asked.of(factor)[:, None]
        of_hidden = asked.among(grad.to(hidden.dtype), len(hidden))
        of_anchor = torch.zeros_like(module.anchor) if ctx.needs_input_grad[2] else None
        return of_hidden, None if weight is None else of_losses * nats, of_anchor, None, None


class Unlearned(torch.autograd.Function):
    """What a readout answers about hidden vectors: numbers that say so where somebody differentiates them."""

    @staticmethod
    def forward(ctx: Any, hidden: Any, module: Any, answer: Any) -> Any:
        """The answers."""
        ctx.module, found = module, answer(hidden)
        ctx.mark_non_differentiable(*(array for array in found if not array.is_floating_point()))
        return found

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        """RuntimeError."""
        raise RuntimeError(
            f"{type(ctx.module).__name__}: found a backward through log_prob or best, expected one through the output or loss "
            "of a call, which have a gradient; log_prob(hidden).detach() takes these as numbers"
        )


def _moved(module: Any, own: ranks.Rows) -> Any:
    """Learn from the rows of all processes; the gradient of one's own."""
    module.learning()
    if ranks.alone(module.process_group):
        return place(module.readout, own.hidden).step(own.hidden, own.target, _weight(own.factor))
    every, mine = ranks.together(own, module.process_group)
    return place(module.readout, own.hidden).step(every.hidden, every.target, _weight(every.factor))[mine]


def _scale(both: Any) -> Any:
    """By what the loss was multiplied or divided: the mean of the upstream gradients (M,), without those of 0."""
    there = both[both != 0]
    if not len(there):
        return both.new_tensor(1)
    least, most = there.aminmax()
    return (
        least.abs() if least == most else there.abs().mean()
    )  # x / x is exactly 1: only then a row moves by its very weight


def _factor(of_nats: Any, of_losses: Any, weight: Any) -> Any:
    """How far each row moves the readout, against a step of its own; ValueError, naming the row, for one below 0."""
    factor = of_nats + (of_losses if weight is None else weight * of_losses)
    if (factor < 0).any():
        row = int((factor < 0).int().argmax())
        raise ValueError(
            f"upstream gradient[{row}]: found one below 0, expected at least 0: a readout only learns to raise the probability "
            "of a target; eval() or requires_grad_(False) keeps it still, and takes any sign"
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
