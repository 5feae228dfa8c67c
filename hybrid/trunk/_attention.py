"""Causal self-attention with learned positions, as a PyTorch module."""

from typing import Any

import torch
from torch.nn import functional


class Block(torch.nn.Module):  # type: ignore[misc]  # PyTorch is not typed here
    """One layer: norm -> attention -> +, norm -> linear -> ReLU -> linear -> +; (B, T, width) to the same."""

    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before_attention, self.before_net = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.asked, self.mixed = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.inner, self.outer = torch.nn.Linear(width, width), torch.nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        x = x + self._drop(self._attend(self.before_attention(x)))
        inner = self._drop(functional.relu(self.inner(self.before_net(x))))
        return x + self._drop(self.outer(inner))

    def _attend(self, x: Any) -> Any:
        batch, length, width = x.shape
        query, key, value = self.asked(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        dropped = self.dropout if self.training else 0.0
        mixed = functional.scaled_dot_product_attention(query, key, value, dropout_p=dropped, is_causal=True)
        return self.mixed(mixed.transpose(1, 2).reshape(batch, length, width))

    def _drop(self, x: Any) -> Any:
        return functional.dropout(x, self.dropout, self.training)


class Attention(torch.nn.Module):  # type: ignore[misc]
    """Learned positions -> blocks -> norm; a linear map if `outputs` is another width.

    every  True: (B, T, width) -> (B, T, outputs). False: (B, T * width), side by side, -> (B, outputs) of the last position
    """

    def __init__(self, width: int, outputs: int, *, length: int, every: bool, blocks: int, heads: int, dropout: float):
        super().__init__()
        self.width, self.length, self.every, self.dropout = width, length, every, dropout
        self.place = torch.nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = torch.nn.ModuleList(Block(width, heads, dropout) for _ in range(blocks))
        self.norm = torch.nn.LayerNorm(width)
        self.map = torch.nn.Linear(width, outputs) if outputs != width else torch.nn.Identity()

    def forward(self, x: Any) -> Any:
        x = functional.dropout(x.view(-1, self.length, self.width) + self.place, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        return self.map(self.norm(x if self.every else x[:, -1]))
