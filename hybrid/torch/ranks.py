"""Several processes that train one net: all make the same step on the rows of all, as one process would."""

from typing import Any, NamedTuple

import torch
import torch.distributed as processes


class Rows(NamedTuple):
    """Rows to learn from: hidden (M, D) float32, target (M,) int32, factor (M,) float32."""

    hidden: Any
    target: Any
    factor: Any


def alone(group: Any) -> bool:
    """Whether there is but one process."""
    there = processes.is_available() and processes.is_initialized()
    return not there or processes.get_world_size(group) == 1


def together(own: Rows, group: Any) -> tuple[Rows, slice]:
    """The rows of all processes in the order of their ranks, the same in each, and where one's own are among them.

    Every process must call it, as often as the others; one may have no rows.
    """
    sizes = _sizes(len(own.hidden), own.hidden.device, group)
    width, most = own.hidden.shape[1], max(sizes)
    packed = own.hidden.new_zeros((most, width + 2), dtype=torch.int32)  # as bits: what is copied is not rounded
    packed[: len(own.hidden)] = torch.cat(
        [own.hidden.view(torch.int32), own.target[:, None], own.factor.view(torch.int32)[:, None]], dim=1
    )
    parts = [torch.empty_like(packed) for _ in sizes]
    processes.all_gather(parts, packed, group=group)
    every = torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])
    first = sum(sizes[: processes.get_rank(group)])
    hidden = every[:, :width].contiguous().view(torch.float32)
    factor = every[:, width + 1].contiguous().view(torch.float32)
    return Rows(hidden, every[:, width].contiguous(), factor), slice(first, first + len(own.hidden))


def _sizes(rows: int, device: Any, group: Any) -> list[int]:
    """How many rows each process has."""
    own = torch.tensor([rows], device=device)
    every = [torch.empty_like(own) for _ in range(processes.get_world_size(group))]
    processes.all_gather(every, own, group=group)
    return [int(size) for size in every]
