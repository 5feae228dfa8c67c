"""A collection of small MLPs as a layer of a PyTorch net."""

from typing import Any

import torch

from .. import check
from ..units import Units
from .loss import _array, _tensor


class UnitsModule(torch.nn.Module):
    """A layer of hybrid.Units: `backward` returns the gradient of its inputs, and updates the units by their own fused SGD.

    units  hybrid.Units, on any device; they have the momentum
    rate   of their SGD, along the upstream gradient: a mean over the batch divides it; may be set between two calls

    x is (U, n) or (B, U, n) as in `Units`, of floats; outputs are float32 on the device of x. Nothing is updated after eval()
    or requires_grad_(False), nor in `forward`. The gradient is that of the weights at the time of backward. The weights are no
    torch.nn.Parameter: optimisers, `to` and `half` ignore them. The state_dict has them.

    anchor  the only Parameter, (1,): the units learn if it requires a gradient, which is always 0
    """

    def __init__(self, units: Units, rate: float = 0.1):
        super().__init__()
        if not isinstance(units, Units):
            raise ValueError(f"units: found {type(units).__name__}, expected hybrid.Units")
        self.units, self.rate = units, check.number("rate", rate, 0)
        self.anchor = torch.nn.Parameter(torch.zeros(1))

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            raise ValueError(f"x: found {getattr(x, 'dtype', type(x).__name__)}, expected a tensor of floats")
        return _Through.apply(x, self.anchor, self)

    def get_extra_state(self) -> dict[str, Any]:
        """Returns copies of the weights and the velocity, for state_dict."""
        return {name: torch.from_numpy(values) for name, values in self.units.parameters().items()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restores them; ValueError for those of other units, which change nothing."""
        self.units.restore({name: values.detach().cpu().numpy() for name, values in state.items()})


class _Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, anchor: Any, module: UnitsModule) -> Any:
        ctx.save_for_backward(x)
        ctx.module, ctx.moves, ctx.place = module, module.training and anchor.requires_grad, anchor.device
        return _tensor(module.units(_array(x.to(torch.float32))), x)

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        if torch.is_grad_enabled():
            raise RuntimeError("UnitsModule: found create_graph=True, expected none: units move in backward")
        (x,) = ctx.saved_tensors
        rate = ctx.module.rate if ctx.moves else None
        gradient = ctx.module.units.backward(_array(x.to(torch.float32)), _array(upstream), rate)
        return _tensor(gradient, x).to(x.dtype), torch.zeros(1, device=ctx.place) if ctx.moves else None, None
