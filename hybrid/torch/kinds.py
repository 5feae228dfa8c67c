"""A loss for each readout that learns: made from the width of the hidden vectors and how often each class is met."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .. import backend
from ..readout import FullReadout, HeadReadout, SampledReadout, TreeReadout
from .loss import ReadoutLoss

OPTIMISER = "adagrad"  # its best rate is about the same under Adam and SGD, that of plain SGD is not
RATES = {"sgd": 0.1, "row-adagrad": 0.3, "adagrad": 0.3}


class MadeLoss(ReadoutLoss):
    """A loss that makes its readout.

    in_features  D, numbers of a hidden vector
    classes      how often each class is met, (V,), or how many there are
    reduction, ignore_index, process_group  as of ReadoutLoss
    device       where the readout is and moves: "cpu", or "cuda:0" (torch.device too)
    optimiser    by which the readout's rows move, see hybrid/sparse.py
    rate         its step; None: 0.3, of "sgd" 0.1
    settings     of the readout: batch, decay, biases, ...

    Raises what the readout raises, ValueError for a device that cannot be used.
    """

    _made: Callable[..., Any]  # (counts, width, *, backend, **settings) -> the readout

    def __init__(
        self,
        in_features: int,
        classes: Any,
        *,
        reduction: str = "mean",
        ignore_index: int = -100,
        process_group: Any = None,
        device: Any = "cpu",
        optimiser: str = OPTIMISER,
        rate: float | None = None,
        **settings: Any,
    ) -> None:
        settings |= {"optimiser": optimiser, "rate": RATES.get(optimiser, 0.0) if rate is None else rate}
        readout = self._made(_numbers(classes), in_features, backend=_backend(device), **settings)
        super().__init__(readout, reduction=reduction, ignore_index=ignore_index, process_group=process_group)


class TreeLoss(MadeLoss):
    """Hierarchical softmax: a class costs as many rows as its path in a tree is long, log2 V of them or fewer.

    in_features  D, numbers of a hidden vector
    classes      how often each class is met, (V,), for a Huffman tree; or how many there are, for a balanced one
    reduction, ignore_index, process_group  as of ReadoutLoss
    device       where the tree is and moves: "cpu", or "cuda:0" (torch.device too)
    optimiser, rate  as of MadeLoss: "adagrad" and 0.3
    settings     of hybrid.TreeReadout: tree, mode, split, batch, ...

    Raises what hybrid.TreeReadout raises, ValueError for a device that cannot be used.
    """

    @staticmethod
    def _made(counts: Any, width: int, **settings: Any) -> Any:
        """The tree."""
        shape = "balanced" if isinstance(counts, int | np.integer) else "huffman"
        return TreeReadout(counts, width, **{"tree": shape, **settings})


class FullLoss(MadeLoss):
    """The full softmax, without an array of batch by classes: every class costs a row.

    Arguments as of TreeLoss; settings of hybrid.FullReadout: batch, ...
    """

    _made = FullReadout


class HeadLoss(MadeLoss):
    """A full softmax over the most frequent classes and clusters of the others, with a tree or a softmax in each cluster.

    Arguments as of TreeLoss; settings of hybrid.HeadReadout: head, clusters, tails, vectors, batch, ...
    """

    _made = HeadReadout


class SampledLoss(MadeLoss):
    """Sampled softmax or negative sampling: the classes of the batch and some that are drawn cost a row each.

    Arguments as of TreeLoss, but the only device is "cpu"; settings of hybrid.SampledReadout: loss, negatives, draws, batch,
    seed, ...

    In training mode output and loss are those of the drawn classes, which are less than those of all; after eval() they are
    the exact ones of all V classes, which cost as many rows. Both forward and backward use the draws of the next step.
    """

    _made = SampledReadout


def _numbers(classes: Any) -> Any:
    """Counts as a readout takes them: of a tensor, its array."""
    return classes.detach().cpu().numpy() if isinstance(classes, torch.Tensor) else classes


def _backend(device: Any) -> Any:
    """The backend of a device, by name or as PyTorch names it; "cuda" is the current one."""
    name = str(device)
    return backend.choose(f"cuda:{torch.cuda.current_device()}" if name == "cuda" else name)
