"""Readouts as the last layer of a PyTorch net: `torch.nn.Module`s, called as torch.nn.AdaptiveLogSoftmaxWithLoss.

    from hybrid.torch import TreeLoss
    criterion = TreeLoss(200, counts)            # in place of AdaptiveLogSoftmaxWithLoss(200, V, cutoffs)
    output, loss = criterion(hidden, target)
    loss.backward()                              # writes the gradient of hidden and updates the tree

See docs/plug-in.md. `import hybrid` does not import this package, the only one that needs PyTorch on import.
"""

import cpu  # noqa: F401  # says how threads wait, those of PyTorch too

try:
    import torch  # noqa: F401
except ImportError as missing:
    raise ImportError(
        f'hybrid.torch: PyTorch cannot be imported ({missing}); pip install "hybrid-engine[torch]" installs it'
    ) from missing

from .fast_head import FastLinear, fast_head
from .loss import FullLoss, HeadLoss, Judged, ReadoutLoss, SampledLoss, TreeLoss
from .units import UnitsModule

__all__ = [
    "FastLinear",
    "FullLoss",
    "HeadLoss",
    "Judged",
    "ReadoutLoss",
    "SampledLoss",
    "TreeLoss",
    "UnitsModule",
    "fast_head",
]
