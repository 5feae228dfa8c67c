"""A FastHead in place of the final nn.Linear of a trained net."""

from typing import Any

import torch

from .. import check
from ..fast_head import FastHead
from .loss import _array, _tensor

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


class FastLinear(torch.nn.Module):
    """The result of `fast_head`: the k largest logits of a trained nn.Linear, on the CPU; others are -inf. No gradient.

    linear  the layer, which keeps the parameters; do not train it further without another `fast_head`
    head    hybrid.FastHead
    worth   recall, agreement@1 and the fraction of rows read, on the given hidden vectors; None without any
    """

    def __init__(self, linear: torch.nn.Linear, head: FastHead):
        super().__init__()
        self.linear, self.head, self.worth = linear, head, head.worth

    @property
    def weight(self) -> Any:
        """The weights of the layer."""
        return self.linear.weight

    @property
    def bias(self) -> Any:
        """The bias of the layer."""
        return self.linear.bias

    def _load_from_state_dict(self, state: Any, prefix: str, *more: Any) -> None:
        for name, value in self.linear.named_parameters():
            loaded = state.get(f"{prefix}linear.{name}")
            if loaded is not None and not torch.equal(loaded.to(value.dtype), value):
                raise ValueError(
                    f"{prefix}linear.{name}: found other numbers than those of the search; load, then call fast_head"
                )
        super()._load_from_state_dict(state, prefix, *more)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def best(self, hidden: Any, k: int | None = None) -> tuple[Any, Any]:
        """Returns the k largest logits of hidden vectors (..., D): ids (..., k) int64, logits (..., k) float32, largest first.

        hidden  a tensor, or a DLPack object, such as an array of NumPy, JAX or CuPy
        """
        if not isinstance(hidden, torch.Tensor) and hasattr(hidden, "__dlpack__"):
            hidden = torch.from_dlpack(hidden)
        if not isinstance(hidden, torch.Tensor) or not hidden.ndim or hidden.dtype not in (*FLOATS, torch.float64):
            found = f"{type(hidden).__name__} {getattr(hidden, 'dtype', '')} {tuple(getattr(hidden, 'shape', ()))}"
            raise ValueError(f"hidden: found {found}, expected a tensor (..., {self.head.width}) of floats")
        rows = _array(hidden.reshape(-1, hidden.shape[-1]).to(torch.float32))
        ids, logits = (_tensor(one, hidden) for one in self.head.best(rows, k))
        shape = (*hidden.shape[:-1], ids.shape[-1])
        return ids.long().reshape(shape), logits.reshape(shape)

    def forward(self, hidden: Any) -> Any:
        """Returns logits (..., V) in the dtype of hidden (..., D): those of the layer after top-k filtering."""
        ids, logits = self.best(hidden)
        every = hidden.new_full((*hidden.shape[:-1], self.head.classes), -torch.inf)
        return every.scatter_(-1, ids, logits.to(hidden.dtype))

    def sample(self, hidden: Any, *, temperature: float = 1.0, generator: Any = None) -> Any:
        """Draws a class from the softmax over the k largest logits divided by `temperature`: (...) int64."""
        if check.number("temperature", temperature, 0) == 0:
            return self.best(hidden, 1)[0][..., 0]
        ids, logits = self.best(hidden)
        likely = torch.softmax(logits / temperature, dim=-1).reshape(-1, logits.shape[-1])
        drawn = torch.multinomial(likely, 1, generator=generator).reshape(*ids.shape[:-1], 1)
        return ids.gather(-1, drawn)[..., 0]


def fast_head(linear: Any, *, k: int = 10, recall: float = 1.0, hidden: Any = None) -> FastLinear:
    """Replaces the head of a trained net by a search for its k largest logits, without a product with all weights.

        model.lm_head = fast_head(model.lm_head, k=50)

    linear  a torch.nn.Linear (D, V) on the CPU; float32 weights are shared, others copied
    recall  1: exact; below: the target fraction of the k largest, tuned on half of `hidden`
    hidden  (..., D), hidden vectors of the net: the recall and agreement@1 are measured on them, see `worth`

    Raises ValueError for another layer, and the errors of hybrid.FastHead.
    """
    if not isinstance(linear, torch.nn.Linear) or linear.weight.is_cuda or linear.weight.dtype not in FLOATS:
        weight = getattr(linear, "weight", None)
        found = type(linear).__name__ + ("" if weight is None else f" of {weight.dtype} on {weight.device}")
        raise ValueError(f"linear: found {found}, expected a torch.nn.Linear of float32, float16, bfloat16 on the CPU")
    bias = None if linear.bias is None else _array(linear.bias.to(torch.float32))
    if hidden is not None:
        hidden = torch.as_tensor(hidden)
        hidden = _array(hidden.reshape(-1, hidden.shape[-1]).to(torch.float32))
    weights = _array(linear.weight.to(torch.float32))
    return FastLinear(linear, FastHead(weights, bias, k=k, recall=recall, hidden=hidden))
