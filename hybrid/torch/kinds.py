"""A loss for each readout that learns: made from the width of the hidden vectors and how often each class is met."""

from typing import Any

import numpy as np
import torch

from .. import backend
from ..readout import FullReadout, SampledReadout, TreeReadout
from .loss import ReadoutLoss


class TreeLoss(ReadoutLoss):
    """Hierarchical softmax: a class costs as many rows as its path in a tree is long, log2 V of them or fewer.

    in_features  D, numbers of a hidden vector
    classes      how often each class is met, (V,), for a Huffman tree; or how many there are, for a balanced one
    reduction, ignore_index, process_group  as of ReadoutLoss
    device       where the tree is and moves: "cpu", or "cuda:0" (torch.device too)
    settings     of hybrid.TreeReadout: tree, mode, split, batch, rate, ...

    Raises what hybrid.TreeReadout raises, ValueError for a device that cannot be used.
    """

    def __init__(
        self,
        in_features: int,
        classes: Any,
        *,
        reduction: str = "mean",
        ignore_index: int = -100,
        process_group: Any = None,
        device: Any = "cpu",
        **settings: Any,
    ) -> None:
        counts = _numbers(classes)
        settings.setdefault("tree", "balanced" if isinstance(counts, int | np.integer) else "huffman")
        made = TreeReadout(counts, in_features, backend=_backend(device), **settings)
        super().__init__(made, reduction=reduction, ignore_index=ignore_index, process_group=process_group)


class FullLoss(ReadoutLoss):
    """The full softmax, without an array of batch by classes: every class costs a row.

    Arguments as of TreeLoss; settings of hybrid.FullReadout: batch, rate, ...
    """

    def __init__(
        self,
        in_features: int,
        classes: Any,
        *,
        reduction: str = "mean",
        ignore_index: int = -100,
        process_group: Any = None,
        device: Any = "cpu",
        **settings: Any,
    ) -> None:
        made = FullReadout(_numbers(classes), in_features, backend=_backend(device), **settings)
        super().__init__(made, reduction=reduction, ignore_index=ignore_index, process_group=process_group)


class SampledLoss(ReadoutLoss):
    """Sampled softmax or negative sampling: the classes of the batch and some that are drawn cost a row each.

    Arguments as of TreeLoss, without device: it is on the CPU; settings of hybrid.SampledReadout: loss, negatives, draws,
    batch, rate, seed, ...

    In training mode output and loss are those of the drawn classes, which are less than those of all; after eval() they are
    the exact ones of all V classes, which cost as many rows. Both forward and backward use the draws of the next step.
    """

    def __init__(
        self,
        in_features: int,
        classes: Any,
        *,
        reduction: str = "mean",
        ignore_index: int = -100,
        process_group: Any = None,
        **settings: Any,
    ) -> None:
        made = SampledReadout(_numbers(classes), in_features, **settings)
        super().__init__(made, reduction=reduction, ignore_index=ignore_index, process_group=process_group)


def _numbers(classes: Any) -> Any:
    """Counts as a readout takes them: of a tensor, its array."""
    return classes.detach().cpu().numpy() if isinstance(classes, torch.Tensor) else classes


def _backend(device: Any) -> Any:
    """The backend of a device, by name or as PyTorch names it; "cuda" is the current one."""
    name = str(device)
    return backend.choose(f"cuda:{torch.cuda.current_device()}" if name == "cuda" else name)
